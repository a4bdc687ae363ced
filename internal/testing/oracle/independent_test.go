package oracle

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheTruthIsIndependent: only figures.go, which asks the analysis what it says, knows of it.
func TestTheTruthIsIndependent(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		if name == "figures.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if strings.Contains(i.Path.Value, "internal/analysis") || strings.Contains(i.Path.Value, "internal/result") {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}
