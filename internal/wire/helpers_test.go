package wire

// A redisError is what a server says.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
