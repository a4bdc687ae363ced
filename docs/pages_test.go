package docs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/markdown"
)

// root is the repository, from this package's folder.
const root = ".."

// pages are the README and the other pages at the top, all of docs, and the lab's.
func pages(t *testing.T) []markdown.Page {
	t.Helper()
	paths := []string{
		"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "RELEASE.md", "charts/redquake/README.md",
		"hack/lab/README.md",
	}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			paths = append(paths, filepath.Join("docs", path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := make([]markdown.Page, len(paths))
	for i, path := range paths {
		found[i] = markdown.Parse(path, read(t, path))
	}
	return found
}

// read is a file's text; path is from the root.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A block that claims to be a file is that file.
func TestQuotedFiles(t *testing.T) {
	quoted := 0
	for _, p := range pages(t) {
		for _, b := range p.Blocks {
			if b.File == "" {
				continue
			}
			quoted++
			if !bytes.Equal([]byte(b.Text), []byte(read(t, b.File))) {
				t.Errorf("%s:%d is not what %s holds", p.Path, b.Line, b.File)
			}
		}
	}
	if quoted == 0 {
		t.Error("no page quotes a file: the marker is not found any more")
	}
}

// No page names a folder of the machine that it was written on.
func TestNoLocalPaths(t *testing.T) {
	local := regexp.MustCompile(`(^|[\s"'(])/(work|root|home|tmp)/`)
	for _, p := range pages(t) {
		for i, line := range strings.Split(p.Text, "\n") {
			if local.MatchString(line) {
				t.Errorf("%s:%d names a path of one machine: %s", p.Path, i+1, line)
			}
		}
	}
}
