//go:build nobounds

package engine

const bounded = false
