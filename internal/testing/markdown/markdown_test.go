package markdown

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	p := Parse("x.md", "a `b`\n<!-- file: f.yaml -->\n```yaml\nk: v\n```\nc\n```\nd\n```\n")
	if len(p.Blocks) != 2 || p.Blocks[0] != (Block{Line: 4, Language: "yaml", Text: "k: v\n", File: "f.yaml"}) ||
		p.Blocks[1].Text != "d\n" {
		t.Errorf("blocks are %+v", p.Blocks)
	}
	if got := strings.Join(p.Prose, "|"); got != "a `b`|<!-- file: f.yaml -->|c|" {
		t.Errorf("prose is %q", got)
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string][]string{
		"sh\na b   # c\n\n# d\ne \\\n  f\n": {"a b   # c", "e \\\n  f"},
		"sh\nfor i in 1 2; do for k in 3; do\n  a\ndone; done\nb\n": {
			"for i in 1 2; do for k in 3; do\n  a\ndone; done", "b",
		},
		"sh\nfor i in 1; do a; done\nb\n": {"for i in 1; do a; done", "b"},
		"console\n$ a b\nout\n$ c\n":      {"a b", "c"},
		"yaml\na: b\n":                    nil,
	} {
		if got := Parse("x.md", "```"+text+"```\n").Blocks[0].Commands(); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
