package clitest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
)

// Saved reads a run of this name of the reports' tests.
func Saved(t *testing.T, name string) *archive.Run {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("the test does not run inside the module")
		}
		root = filepath.Dir(root)
	}
	text, err := os.ReadFile(filepath.Join(root, "internal/report/run/testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := archive.ReadRun(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return saved
}
