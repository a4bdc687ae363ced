package docs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, from this package's folder.
const root = ".."

// page is a Markdown file.
type page struct {
	path   string // from the root
	text   string
	blocks []block
	prose  []string // the lines outside blocks
}

// block is a fenced block of code.
type block struct {
	line     int    // of its first line, from 1
	language string // "" = none
	text     string
	file     string // what <!-- file: PATH --> in front of it claims
}

var fileClaim = regexp.MustCompile(`^<!-- file: (\S+) -->$`)

// pages are the README and the other pages at the top, all of docs, and the lab's.
func pages(t *testing.T) []page {
	t.Helper()
	paths := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "hack/lab/README.md"}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			paths = append(paths, filepath.Join("docs", path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := make([]page, len(paths))
	for i, path := range paths {
		found[i] = parse(path, read(t, path))
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

func parse(path, text string) page {
	p := page{path: path, text: text}
	var open *block
	claimed := ""
	for i, line := range strings.Split(text, "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 2, language: language, file: claimed}
			claimed = ""
		case fence:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			p.prose = append(p.prose, line)
			claimed = ""
			if m := fileClaim.FindStringSubmatch(line); m != nil {
				claimed = m[1]
			}
		}
	}
	return p
}

func TestParse(t *testing.T) {
	p := parse("x.md", "a `b`\n<!-- file: f.yaml -->\n```yaml\nk: v\n```\nc\n```\nd\n```\n")
	if len(p.blocks) != 2 || p.blocks[0] != (block{line: 4, language: "yaml", text: "k: v\n", file: "f.yaml"}) ||
		p.blocks[1].text != "d\n" {
		t.Errorf("blocks are %+v", p.blocks)
	}
	if got := strings.Join(p.prose, "|"); got != "a `b`|<!-- file: f.yaml -->|c|" {
		t.Errorf("prose is %q", got)
	}
}

// A block that claims to be a file is that file.
func TestQuotedFiles(t *testing.T) {
	quoted := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.file == "" {
				continue
			}
			quoted++
			if !bytes.Equal([]byte(b.text), []byte(read(t, b.file))) {
				t.Errorf("%s:%d is not what %s holds", p.path, b.line, b.file)
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
		for i, line := range strings.Split(p.text, "\n") {
			if local.MatchString(line) {
				t.Errorf("%s:%d names a path of one machine: %s", p.path, i+1, line)
			}
		}
	}
}
