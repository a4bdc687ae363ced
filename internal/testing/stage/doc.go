// Package stage lets every kind of fault act on a real Redis under load, beside an operator in a
// process of its own. It shows from outside what a fault has changed.
package stage
