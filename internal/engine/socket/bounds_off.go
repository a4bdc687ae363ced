//go:build nobounds

package socket

// Bounded: see bounds_on.go.
const Bounded = false
