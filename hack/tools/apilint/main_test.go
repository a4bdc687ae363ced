package main

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

func TestRules(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, "./testdata")
	if err != nil || packages.PrintErrors(loaded) > 0 {
		t.Fatal(err)
	}
	analyzers, err := newAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(loaded[0].Syntax[0], func(n ast.Node) bool {
		typ, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		for _, field := range typ.Type.(*ast.StructType).Fields.List {
			var found, want []string
			for _, action := range graph.Roots {
				for _, d := range action.Diagnostics {
					if d.Pos >= min(field.Doc.Pos(), field.Pos()) && d.Pos <= field.End() {
						found = append(found, action.Analyzer.Name)
					}
				}
			}
			if typ.Name.Name != "good" {
				want = []string{strings.ToLower(strings.TrimRight(field.Names[0].Name, "23"))}
			}
			if !slices.Equal(found, want) {
				t.Errorf("%s.%s: findings of %v, want %v", typ.Name, field.Names[0], found, want)
			}
		}
		return false
	})
}
