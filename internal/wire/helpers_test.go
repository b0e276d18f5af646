package wire

// A redisError is an error that a server sent.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
