package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// rule is what is measured.
type rule string

// The rules.
const (
	lines  rule = "lines of code"
	files  rule = "files"
	fields rule = "fields"
	name   rule = "imports of packages with its own name"
)

// measured is a measure of a package, by its folder, or of a struct, such as internal/engine.loop.
type measured struct {
	at   string
	rule rule
}

// skipped are folders without code of the product, and the API, which is one package by Kubernetes'
// conventions and has a field for each member.
var skipped = []string{"api", "bin", "build", "hack", "testdata", "node_modules"}

// measure measures the packages in a folder, without their tests.
func measure(root string) (map[measured]int, error) {
	found := map[measured]int{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root &&
			(strings.HasPrefix(entry.Name(), ".") || slices.Contains(skipped, entry.Name())):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
			strings.HasPrefix(entry.Name(), "zz_generated"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		return add(found, filepath.ToSlash(at), text)
	})
	return found, err
}

// add adds a file to the measures of its package.
func add(found map[measured]int, at string, text []byte) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, at, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	found[measured{at, files}]++
	found[measured{at, lines}] += codeLines(text)
	for _, imported := range parsed.Imports {
		from := strings.Trim(imported.Path.Value, `"`)
		if path.Base(from) == parsed.Name.Name && strings.Contains(from, "/redquake/") {
			found[measured{at, name}]++
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if of, is := spec.Type.(*ast.StructType); is {
			// functions and files of other systems may have one of the same name
			m := measured{at + "." + spec.Name.Name, fields}
			found[m] = max(found[m], of.Fields.NumFields())
		}
		return true
	})
	return nil
}

// codeLines counts the lines with code.
func codeLines(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	counted := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(counted)
		}
		if tok == token.SEMICOLON && literal == "\n" { // which the scanner adds
			continue
		}
		for line := file.Line(pos); line <= file.Line(pos)+strings.Count(literal, "\n"); line++ {
			counted[line] = true
		}
	}
}
