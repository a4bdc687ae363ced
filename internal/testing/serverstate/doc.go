// Package serverstate says what a server of Redis shows from outside: what a fault has changed, and
// what its revert must restore.
package serverstate
