package scenario

import "time"

// A Dialect is how one of the other libraries does what https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
// describes. All of them set the key with SET NX PX, and delete it, and make its TTL whole again, by scripts that compare
// the token. All subtract 1 % and 2 ms from the validity.
type Dialect struct {
	Name     string
	Token    string        // its form: "bytes", "hex", "base64", "letters", "uuid"
	Tries    int           // how often it tries to acquire a lock before it gives up
	Same     bool          // all tries have one token
	Keeps    bool          // between two tries it releases nothing
	Extends  bool          // it extends locks
	Granted  bool          // it releases a lock only on the nodes that have granted it
	InTurn   bool          // it asks one node after the other, and not all at once
	Patience time.Duration // how long it waits for an answer
}

// Dialects has those of which a plan has some. One that is impatient must have a token for each try: a request that it has
// given up may be carried out later, and a late release would delete the key of the next try (docs/peers.md).
var Dialects = []Dialect{
	{Name: "the Redlock page", Token: "bytes", Tries: 1, Extends: true, Patience: 50 * ms},
	{Name: "redsync", Token: "base64", Tries: 8, Same: true, Extends: true, Patience: 3 * time.Second},
	{Name: "node-redlock", Token: "hex", Tries: 4, Same: true, Keeps: true, Extends: true, Patience: 3 * time.Second},
	{Name: "redlock-py", Token: "letters", Tries: 3, Same: true, InTurn: true, Patience: 3 * time.Second},
	{Name: "redlock-rb", Token: "uuid", Tries: 4, Extends: true, InTurn: true, Patience: 100 * ms},
	{Name: "a few lines of one's own", Token: "uuid", Tries: 1, Granted: true, Patience: 50 * ms},
}
