package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/markdown"
)

var updateContents = flag.Bool("update-contents", false, "write the contents of long pages")

const (
	contentsWord = "On this page: "
	// longPage is the number of words from which a page lists its sections: about five screens.
	longPage = 1500
)

// A long page begins with a list of its sections. `go test ./docs -run TestContents -update-contents` writes it.
func TestContents(t *testing.T) {
	long := 0
	for _, p := range pages(t) {
		if len(strings.Fields(p.Text)) < longPage || strings.HasPrefix(p.Text, "<!-- Generated") ||
			p.Path == "docs/api.md" || strings.Contains(p.Path, "/reports/") { // generated, with contents of its own
			continue
		}
		want, got := contents(p), ""
		if want == "" {
			continue
		}
		long++
		for _, line := range p.Prose {
			if strings.HasPrefix(line, contentsWord) {
				got = line
			}
		}
		if got == want {
			continue
		}
		if !*updateContents {
			t.Errorf("the contents of %s are %q, want %q", p.Path, got, want)
			continue
		}
		text := p.Text
		if got != "" {
			text = strings.Replace(text, got+"\n\n", "", 1)
		}
		first := strings.Index(text, "\n## ") + 1
		text = text[:first] + want + "\n\n" + text[first:]
		if err := os.WriteFile(filepath.Join(root, p.Path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if long < 5 {
		t.Errorf("only %d long pages were found", long)
	}
}

// contents are links to the sections of a page, on one line; "" for one without sections.
func contents(p markdown.Page) string {
	var links []string
	for _, line := range p.Prose {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			links = append(links, "["+title+"](#"+slug(title)+")")
		}
	}
	if len(links) == 0 {
		return ""
	}
	return contentsWord + strings.Join(links, " · ")
}
