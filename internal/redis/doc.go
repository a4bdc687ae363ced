// Package redis is the client for control traffic: it dials, logs in, sends commands, follows what is published, and reads INFO. Load goes past
// it: the engine takes over the connections that Dialer makes, and reads and writes them itself.
//
// It stands on package resp, not on go-redis. A server that is down or silent is what this project measures, so nothing may be retried, dialled
// at a pace of its own or sent unasked. go-redis does all three, and switching them off took more code than there is here; commands that stay
// queued at a server (Client.Queue) and the stage at which a dial failed (DialError) it does not offer at all. It remains as a driver under test.
//
// Connections speak RESP2 unless Dialer.Setup says otherwise.
package redis
