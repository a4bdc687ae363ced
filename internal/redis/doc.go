// Package redis is the client for control traffic: it dials, logs in, sends commands, subscribes to
// channels, and reads INFO. Load does not use it: the engine takes over the connections that Dialer
// establishes, and reads and writes them itself.
//
// It is based on package resp, not on go-redis. This project measures servers that are down or do
// not respond, so the client must not retry, redial or send commands on its own. go-redis does all
// three, and disabling them took more code than this package; it supports neither commands that
// stay queued at a server (Client.Queue) nor the stage at which a dial failed (DialError). It
// remains as a driver under test.
//
// Connections use RESP2 unless Dialer.Setup changes that.
package redis
