//go:build !nobounds

package socket

// Bounded is false in a build with the tag nobounds, which has no receive stamps and no gap logs:
// `make bench` measures what they cost.
const Bounded = true
