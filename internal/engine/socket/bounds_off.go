//go:build nobounds

package socket

const bounded = false
