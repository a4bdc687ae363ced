// Package operatortest runs the operator in tests as main does, by package controllers: in a World,
// a cluster in memory whose time is virtual, or in a Place on a real API server. It has the Redis,
// the load pods and the objects around it, and waits for what they become.
package operatortest
