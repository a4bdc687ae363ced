package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/markdown"
)

var (
	link       = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	inlineCode = regexp.MustCompile("`([^`]+)`")
	heading    = regexp.MustCompile(`^#+ +(.*)$`)
	target     = regexp.MustCompile(`(?m)^([A-Za-z0-9_./-]+):`)
)

// Every relative link points to an existing file and, if it has an anchor, to a heading in it.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for _, p := range all {
		anchors[p.Path] = anchorsOf(p)
	}
	checked := 0
	for _, p := range all {
		for _, line := range p.Prose {
			for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				to, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(to, ":") {
					continue // another site
				}
				checked++
				file := p.Path
				if to != "" {
					file = path.Join(path.Dir(p.Path), to)
				}
				if _, err := os.Stat(filepath.Join(root, file)); err != nil {
					t.Errorf("%s links to %s, which is not there", p.Path, m[1])
				} else if known, ok := anchors[file]; anchor != "" && (!ok || !slices.Contains(known, anchor)) {
					t.Errorf("%s links to %s: no such heading", p.Path, m[1])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links were found", checked)
	}
}

// anchorsOf are the names that GitHub gives to a page's headings.
func anchorsOf(p markdown.Page) []string {
	var found []string
	for _, line := range p.Prose {
		if m := heading.FindStringSubmatch(line); m != nil {
			found = append(found, slug(m[1]))
		}
	}
	return found
}

func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(title))
}

func TestSlug(t *testing.T) {
	for title, want := range map[string]string{
		"Why it failed, and what to do": "why-it-failed-and-what-to-do",
		"`redquake load`":               "redquake-load",
		"1. A Redis":                    "1-a-redis",
	} {
		if got := slug(title); got != want {
			t.Errorf("slug(%q) = %q, want %q", title, got, want)
		}
	}
}

// Every make target that a page mentions is in the Makefile.
func TestMakeTargets(t *testing.T) {
	var known []string
	for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		known = append(known, m[1])
	}
	checked := 0
	for _, p := range pages(t) {
		for _, name := range madeTargets(p) {
			checked++
			if !slices.Contains(known, name) {
				t.Errorf("%s: the Makefile has no target %s", p.Path, name)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d targets were found", checked)
	}
}

// madeTargets are the targets in a page's commands: lines of blocks and inline code that begin with make.
func madeTargets(p markdown.Page) []string {
	var commands []string
	for _, b := range p.Blocks {
		commands = append(commands, strings.Split(b.Text, "\n")...)
	}
	for _, line := range p.Prose {
		for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
			commands = append(commands, m[1])
		}
	}
	var found []string
	for _, command := range commands {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(command), "$ "), "make ")
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest, "#")
		for word := range strings.FieldsSeq(rest) {
			if !strings.Contains(word, "=") {
				found = append(found, word)
			}
		}
	}
	return found
}
