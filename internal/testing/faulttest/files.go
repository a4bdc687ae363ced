//go:build integration

package faulttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// FileOf is the server's configuration file as it is now.
func FileOf(t *testing.T, server *redistest.Server) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(server.Dir, "redis.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
