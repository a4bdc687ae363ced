package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"shop/a.go": "// Package shop sells.\npackage shop\n\nimport \"example.com/redquake/internal/shop\"\n\n// T " +
			"has three fields.\ntype T struct {\n\ta, b int // two\n\tshop.U\n}\n",
		"shop/b.go":      "package shop\n\nvar text = `a\n// no comment\n`\n\n/* a\ncomment */\nfunc f() { type T struct{ a int } }\n",
		"shop/a_test.go": "package shop\n\nvar many = 1\n",
		"hack/c.go":      "package hack\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := measure(root)
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[measured]int{
		{"shop", lines}:    11,
		{"shop", files}:    2,
		{"shop", name}:     1,
		{"shop.T", fields}: 3,
	} {
		if found[m] != want {
			t.Errorf("%+v: %d, want %d", m, found[m], want)
		}
	}
	if len(found) != 4 {
		t.Errorf("%+v", found)
	}
}

func TestJudge(t *testing.T) {
	large, small := measured{"a", lines}, measured{"b", files}
	for name, c := range map[string]struct {
		found, excepted map[measured]int
		want            string
	}{
		"within":   {map[measured]int{large: mostLines, small: mostFiles}, nil, ""},
		"larger":   {map[measured]int{large: mostLines + 1}, nil, "a: lines of code: 2001, at most 2000\n"},
		"excepted": {map[measured]int{large: 3000}, map[measured]int{large: 3000}, ""},
		"has grown": {
			map[measured]int{large: 3001},
			map[measured]int{large: 3000},
			"a: lines of code: 3001, at most 3000\n",
		},
		"has shrunk": {
			map[measured]int{large: 2999},
			map[measured]int{large: 3000},
			"a: lines of code: 2999, and the exception is 3000: lower it\n",
		},
		"small now": {
			map[measured]int{small: 20},
			map[measured]int{small: 21},
			"b: files: 20 is within the limit of 20: remove the exception\n",
		},
		"gone": {
			nil,
			map[measured]int{small: 21},
			"b: files: there is no such package or struct: remove the exception\n",
		},
	} {
		var out strings.Builder
		if err := judge(&out, c.found, c.excepted); out.String() != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, %q", name, err, out.String())
		}
	}
}
