// Package stage lets every kind of fault act on a real Redis under load, beside an operator in a process of its own,
// which tests kill at any call or cut off from its API server. It shows from outside what a fault has changed.
package stage
