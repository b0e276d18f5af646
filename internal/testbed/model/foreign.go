package model

import "github.com/quorumlock/redlock/internal/wire"

// The scripts of other Redlock clients, which they send whole. They call no waiter.
const (
	CompareAndDelete = wire.Set + 1 + iota // deletes the key if it has the token
	CompareAndExpire                       // makes its TTL whole again if it has the token
)

// compare carries out one of them. The reply is 1 if the key had the token, and 0 otherwise.
func (n *store) compare(c *Call) (any, error) {
	key := c.Keys[0]
	switch e, there := n.lookup(key); {
	case there && (e.foreign || e.set != nil):
		return nil, wrongType
	case !there || e.token != c.Token:
		return int64(0), nil
	case n.readOnly:
		return nil, readOnly
	case c.Op == CompareAndDelete:
		delete(n.keys, key)
	default:
		e.expires = n.now() + c.TTL
		n.keys[key] = e
	}
	return int64(1), nil
}
