package verdict

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// What a condition says of doubts is short, however many there are and whatever their numbers: the messages are in the
// list of doubts.
func TestDoubtsAreShortInACondition(t *testing.T) {
	essay := strings.Repeat("load pod 1 did not run for 34.15s of the measured time (341 times, at most 1.2s); ", 5)
	doubts := []impact.Doubt{
		{Reason: "LoadGeneratorSaturated", Message: essay},
		{Reason: impact.IntervalsMissing, Message: essay},
		{Reason: impact.IntervalsMissing, Message: essay},
		{Reason: "Unheard", Message: "it was not there; " + essay},
	}
	j := judge(nil, doubts, "", "")
	if want := "the load generator was too slow; a part of the record is missing; it was not there"; j.Verdict !=
		v1alpha1.VerdictInconclusive || j.Message != want {
		t.Errorf("%s: %q, want %q", j.Verdict, j.Message, want)
	}
}

// Every reason for doubt that the code has, has a phrase.
func TestEveryReasonHasAPhrase(t *testing.T) {
	found := map[string]bool{}
	for _, folder := range []string{"../../../controllers", "../../../internal", "../../../cmd"} {
		if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
				!strings.Contains(path, "internal/testing") {
				reasonsIn(t, path, found)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []string{"UsersQueue", impact.RecoveryUnknown, "ClockDrift", "CutShort"} {
		if !found[one] {
			t.Errorf("%s was not found among %v", one, found)
		}
	}
	for reason := range found {
		if known := reasons[reason]; known.phrase == "" || known.about == 0 {
			t.Errorf("%s has no phrase, or is about nothing: %+v", reason, known)
		}
	}
}

// reasonsIn collects the reasons of doubts that a file names: Doubt{Reason: "..."}, r.Doubt("...", and the constants of
// package impact.
func reasonsIn(t *testing.T, path string, reasons map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	add := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ := strconv.Unquote(l.Value)
			reasons[text] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Doubt" && len(n.Args) > 1 {
				add(n.Args[0])
			}
		case *ast.CompositeLit:
			if f, ok := n.Type.(*ast.SelectorExpr); ok && f.Sel.Name == "Doubt" {
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Reason" {
						add(kv.Value)
					}
				}
			}
		case *ast.ValueSpec:
			if strings.HasSuffix(path, "impact/doubts.go") && len(n.Values) == 1 {
				add(n.Values[0])
			}
		}
		return true
	})
}
