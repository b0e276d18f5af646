package judge

// memoryCases are histories about memory in use, and about tokens on the nodes, for TestJudgeTable.
var memoryCases = []struct{ name, run, history, want string }{
	{"as many keys as there may be", "keys=3", "5 - weighed keys=3 bytes=99 requests=99", ""},
	{"too many keys", "keys=3", "5 - weighed keys=4; 6 - weighed keys=2; 7 - weighed keys=9", "bounded 5 [0]; bounded 7 [2]"},
	{"too many bytes", "bytes=3", "5 - weighed keys=99 bytes=4 requests=99", "bounded 5 [0]"},
	{"too many requests in a lane", "requests=3", "5 1 weighed requests=4; 6 1 weighed requests=3; 7 2 weighed requests=5", "bounded 5 [0]; bounded 7 [2]"},
	{"too much of everything", "keys=1 bytes=1 requests=1", "5 - weighed keys=2 bytes=2 requests=2", "bounded 5 [0]; bounded 5 [0]; bounded 5 [0]"},
	{"no bound", "", "5 - weighed keys=99 bytes=99 requests=99", ""},
	{"nothing was weighed", "keys=1", "5 - weighed nothing=", "well-formed 5 [0]"},

	{"found on a quorum", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 2 1/1 found value=2; 9 1/1 told", ""},
	{"found on all nodes", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 2 1/1 found value=3; 9 1/1 told", ""},
	{"found on too few", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 2 1/1 found value=1; 9 1/1 told", "on a quorum 2 [1 2]"},
	{"found nowhere", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 found; 9 1/1 told", "on a quorum 3 [1 2]"},
	{"found on some, and others do not say", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 2 1/1 found value=1 was=1; 9 1/1 told", ""},
	{"found on none, and one does not say", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 2 1/1 found was=1; 9 1/1 told", "on a quorum 2 [1 2]"},
	{"looked for when it was over", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 9 1/1 found; 9 1/1 told", ""},
	{"looked for just before it was over", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 8 1/1 found; 9 1/1 told", "on a quorum 8 [1 2]"},
	{"looked for when it was given back", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 release; 4 1/1 found; 4 1/1 released", ""},
	{"looked for when it was lost", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 told; 4 1/1 found", ""},
	{"looked for when it was extended", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 extended until=20; 12 1/1 found value=1; 20 1/1 told", "on a quorum 12 [1 4]"},
	{"looked for by the dead", "nodes=3", "1 1/1 ask; 2 1/1 got until=9; 3 1 crashed; 4 1/1 found", ""},
	{"looked for by a client that did not get it", "nodes=3", "1 1/1 ask; 2 1/1 denied; 3 1/1 found", "well-formed 3 [2]"},
	{"looked for by a client that did not ask", "nodes=3", "3 1/1 found", "well-formed 3 [0]"},
}

// stallCases are histories of a computer that did not run the servers.
var stallCases = []struct{ name, run, history, want string }{
	{"no client has it for long, and the computer stood still for as much as it was too long", "idle=5", "0 1/1 ask; 2 - stalled until=4; 7 1/1 denied", ""},
	{"it stood still for less", "idle=5", "0 1/1 ask; 2 - stalled until=4; 8 1/1 denied", "idle 7 [0]"},
	{"it stood still all the time", "idle=5", "0 1/1 ask; 0 - stalled until=20; 20 1/1 denied", ""},
	{"it stood still again and again", "idle=5", "0 1/1 ask; 1 - stalled until=3; 2 - stalled until=4; 3 - stalled until=3; 6 - stalled until=8; 10 1/1 denied", ""},
	{"it stood still again and again, and not for long enough", "idle=5", "0 1/1 ask; 1 - stalled until=3; 2 - stalled until=4; 6 - stalled until=8; 11 1/1 denied", "idle 10 [0]"},
	{"it stood still before", "idle=5", "0 - stalled until=4; 4 1/1 ask; 10 1/1 denied", "idle 9 [1]"},
	{"it stood still from before on", "idle=5", "0 - stalled until=5; 4 1/1 ask; 10 1/1 denied", ""},
	{"it stood still later", "idle=5", "0 1/1 ask; 6 - stalled until=9; 9 1/1 denied", "idle 5 [0]"},
	{"it stood still from the last moment on", "idle=5", "0 1/1 ask; 5 - stalled until=9; 9 1/1 denied", ""},
	{"it stood still while a client had it", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=30; 1 1/1 ask; 3 - stalled until=6; 8 2/1 release until=30; 8 2/1 released; 14 1/1 denied", "idle 13 [2]"},
	{"one of three servers stood still", "nodes=3 idle=5", "0 1/1 ask; 2 - stalled until=9; 9 1/1 denied", "idle 5 [0]"},
	{"the same server twice", "nodes=3 idle=5", "0 1/1 ask; 2 - stalled until=9; 3 - stalled until=9; 9 1/1 denied", "idle 5 [0]"},
	{"two of three servers stood still", "nodes=3 idle=5", "0 1/1 ask; 1 - stalled until=4; 2 - stalled value=1 until=9; 7 1/1 denied", ""},
	{"two of three servers stood still, for less", "nodes=3 idle=5", "0 1/1 ask; 1 - stalled until=4; 2 - stalled value=1 until=9; 8 1/1 denied", "idle 7 [0]"},
	{"one of three servers stood still, and then another", "nodes=3 idle=5", "0 1/1 ask; 1 - stalled until=3; 3 - stalled value=1 until=5; 7 1/1 denied", "idle 5 [0]"},
	{"one of three servers stood still, and another was dead", "nodes=3 idle=5", "0 1/1 ask; 1 - struck node=1 for=90; 2 - stalled until=4; 7 1/1 denied", ""},
	{"a server stood still that was dead", "nodes=3 idle=5", "0 1/1 ask; 1 - struck node=1 for=90; 2 - stalled value=1 until=4; 7 1/1 denied", "idle 5 [0]"},
	{"overtaken while a server stood still", "settle=4", "0 1/1 ask; 4 2/1 ask; 5 - stalled until=7; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"overtaken before a server stood still", "settle=4", "0 1/1 ask; 4 2/1 ask; 5 2/1 got until=9; 6 - stalled until=7; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 1 2]"},
	{"overtaken after a server stood still", "settle=4", "0 - stalled until=1; 2 1/1 ask; 6 2/1 ask; 7 2/1 got until=9; 8 2/1 release; 8 2/1 released; 20 - calm", "order 7 [1 2 3]"},
	{"a server was slow, and no other", "idle=5", "0 1/1 ask; 2 - measured error=slow; 7 1/1 denied", "idle 5 [0]"},
	{"it excuses nothing else", "", "0 1/1 ask limit=5; 2 - stalled until=9; 9 1/1 denied", "in time 7 [0 2]"},
	{"it stood still until before it did", "", "3 - stalled until=2", "well-formed 3 [0]"},
}
