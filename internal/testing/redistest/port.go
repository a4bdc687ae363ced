package redistest

import "testing"

// FreePort is a port of 127.0.0.1 for a server that a test runs by itself. Nobody else in this process gets it.
func FreePort(t testing.TB) int {
	t.Helper()
	return freePort(t)
}
