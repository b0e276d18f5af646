//go:build !unix

package redisnode

import "net"

// look shows nothing on this system: stands sends a PING.
func look(net.Conn) sight { return blind }
