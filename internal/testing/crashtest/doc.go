// Package crashtest runs an operator in a process of its own, which tests kill at any call that
// changes something, or pause there.
package crashtest
