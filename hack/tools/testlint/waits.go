package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// The rules.
const (
	ruleSleep = "sleep" // a test lets time pass only by await.Pass, which says what has that length
	ruleAsk   = "ask"   // what Prometheus answers at one instant depends on the last scrape
	ruleLimit = "limit" // a machine that stalls exceeds it
	ruleBound = "bound" // an upper bound on a measured time
)

// least is the shortest limit that a test may set, unless the limit itself is tested.
const least = 5 * time.Second

// module is the path of the module, and awaiting that of the package of all waits.
const (
	module   = "github.com/redquake/redquake"
	awaiting = module + "/internal/testing/await"
)

// waits reports the rules' violations. The category of a diagnostic is its rule.
var waits = &analysis.Analyzer{
	Name: "waits",
	Doc:  "find in tests with other processes what fails on a slow machine: sleeps, single questions, short limits",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range pass.Files {
			if name := filepath.ToSlash(pass.Fset.File(file.FileStart).Name()); inScope(file, name) {
				c := check{Pass: pass}
				c.walk(file)
			}
		}
		return nil, nil
	},
}

// inScope reports whether a file is built for tests with other processes only, by its constraint or
// because its whole folder is. In test/virtual time is virtual.
func inScope(file *ast.File, name string) bool {
	if strings.HasSuffix(name, "_test.go") && strings.Contains(name, "/test/") {
		return !strings.Contains(name, "/test/virtual/")
	}
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, line := range group.List {
			if expr, err := constraint.Parse(line.Text); err == nil && namesTests(expr) {
				return true
			}
		}
	}
	return false
}

func namesTests(expr constraint.Expr) (is bool) {
	expr.Eval(func(tag string) bool {
		is = is || tag == "integration" || tag == "e2e"
		return true
	})
	return is
}

// check is the check of one file.
type check struct {
	*analysis.Pass
	around []ast.Node // the nodes around the current one, from the file on
}

func (c *check) report(rule string, at ast.Node, format string, args ...any) {
	c.Report(analysis.Diagnostic{
		Pos:      at.Pos(),
		Category: rule,
		Message:  fmt.Sprintf(format, args...),
	})
}

func (c *check) walk(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			c.around = c.around[:len(c.around)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			c.call(n)
			c.flags(n.Args)
		case *ast.CompositeLit:
			c.flags(n.Elts)
		case *ast.KeyValueExpr:
			c.named(n.Key, n.Value)
		case *ast.AssignStmt:
			for i := range min(len(n.Lhs), len(n.Rhs)) {
				c.named(n.Lhs[i], n.Rhs[i])
			}
		case *ast.ValueSpec:
			for i := range min(len(n.Names), len(n.Values)) {
				c.named(n.Names[i], n.Values[i])
			}
		case *ast.BasicLit:
			c.text(n)
		case *ast.BinaryExpr:
			c.compared(n)
		}
		c.around = append(c.around, n)
		return true
	})
}

// limits are names of parameters, fields, variables and options that limit how long something may
// take.
var limits = regexp.MustCompile(
	`(?i)(timeout|deadline|patience|within|atmost|leaseduration|^limit)(seconds)?$`)

// call checks the call of a function.
func (c *check) call(n *ast.CallExpr) {
	f, _ := typeutil.Callee(c.TypesInfo, n).(*types.Func)
	if f == nil {
		return
	}
	name := f.FullName()
	switch {
	case name == "time.Sleep":
		c.report(ruleSleep, n,
			"wait with await.Until for what the test needs, or let time pass with await.Pass")
		return
	case name == "(*"+module+"/internal/testing/prometheustest.Server).Ask" && !c.awaited():
		c.report(ruleAsk, n, "Prometheus is asked once: ask with Has, HasNot or within an await")
	case name == "time.After" && c.inSelect() && c.short(n.Args[0]):
		c.report(ruleLimit, n, "a limit below %s", least)
		return
	}
	signature := f.Signature()
	for i, arg := range n.Args {
		p := signature.Params().At(min(i, signature.Params().Len()-1))
		at, deadline := c.afterNow(arg)
		if limits.MatchString(p.Name()) && c.short(arg) ||
			deadline && limits.MatchString(f.Name()) && c.short(at) {
			c.report(ruleLimit, arg, "a limit below %s: %s of %s", least, p.Name(), f.Name())
		}
	}
}

// afterNow returns d of time.Now().Add(d).
func (c *check) afterNow(n ast.Expr) (d ast.Expr, is bool) {
	add, is := n.(*ast.CallExpr)
	if !is || len(add.Args) != 1 {
		return nil, false
	}
	f, _ := typeutil.Callee(c.TypesInfo, add).(*types.Func)
	return add.Args[0], f != nil && f.FullName() == "(time.Time).Add"
}

// pollers are the methods by which packages of tests wait. Each calls await, or the functions that
// it gets when something has changed.
var pollers = []string{"eventually", "until", "within", "watched"}

// awaited reports whether the current node is in a function that a wait repeats.
func (c *check) awaited() bool {
	for i := 1; i < len(c.around); i++ {
		outer, is := c.around[i-1].(*ast.CallExpr)
		if _, function := c.around[i].(*ast.FuncLit); !function || !is {
			continue
		}
		f, _ := typeutil.Callee(c.TypesInfo, outer).(*types.Func)
		if f != nil && f.Pkg() != nil &&
			(f.Pkg().Path() == awaiting || slices.Contains(pollers, f.Name())) {
			return true
		}
	}
	return false
}

// inSelect reports whether the current node is what a case of a select receives.
func (c *check) inSelect() bool {
	for i := len(c.around) - 1; i >= 0 && i >= len(c.around)-3; i-- {
		if _, is := c.around[i].(*ast.CommClause); is {
			return true
		}
	}
	return false
}

// short reports whether an expression is a constant duration below the least limit; 0 is none.
func (c *check) short(n ast.Expr) bool {
	d, is := c.duration(n)
	return is && d > 0 && d < least
}

func (c *check) duration(n ast.Expr) (time.Duration, bool) {
	value, is := c.TypesInfo.Types[n]
	if !is || value.Value == nil || value.Type == nil || value.Type.String() != "time.Duration" {
		return 0, false
	}
	d, exact := constant.Int64Val(constant.ToInt(value.Value))
	return time.Duration(d), exact
}

// nameOf is the name of a field, a variable or a constant.
func nameOf(to ast.Expr) string {
	switch to := to.(type) {
	case *ast.Ident:
		return to.Name
	case *ast.SelectorExpr:
		if inner, is := to.X.(*ast.SelectorExpr); is && to.Sel.Name == "Duration" { // a metav1.Duration
			return inner.Sel.Name
		}
		return to.Sel.Name
	}
	return ""
}

// isFigure reports whether a value is a duration of a status: it was measured, and limits nothing.
func (c *check) isFigure(value ast.Expr) bool {
	t := c.TypesInfo.TypeOf(value)
	return t != nil && strings.HasSuffix(t.String(), "/api/v1alpha1.Duration")
}

// named checks what a field, a variable or a constant is set to.
func (c *check) named(to, value ast.Expr) {
	name := nameOf(to)
	if !limits.MatchString(name) || c.isFigure(value) {
		return
	}
	if strings.HasSuffix(strings.ToLower(name), "seconds") {
		value = c.wrapped(value)
		if v := c.TypesInfo.Types[value].Value; v != nil && v.Kind() == constant.Int {
			if n, exact := constant.Int64Val(v); exact && n > 0 && n < int64(least/time.Second) {
				c.report(ruleLimit, value, "a limit below %s: %s", least, name)
			}
		}
		return
	}
	ast.Inspect(value, func(n ast.Node) bool {
		if _, function := n.(*ast.FuncLit); function {
			return false
		}
		if e, is := n.(ast.Expr); is {
			if _, known := c.duration(e); known {
				if c.short(e) {
					c.report(ruleLimit, e, "a limit below %s: %s", least, name)
				}
				return false
			}
		}
		return true
	})
}

// wrapped returns the last argument of calls such as new(int32(1)).
func (c *check) wrapped(n ast.Expr) ast.Expr {
	for {
		call, is := n.(*ast.CallExpr)
		if !is || len(call.Args) != 1 || c.TypesInfo.Types[n].Value != nil {
			return n
		}
		n = call.Args[0]
	}
}

// option is a limit in the text of a configuration, a spec or a command line.
var option = regexp.MustCompile(
	`(?i)([a-z_-]*(?:timeout|deadline)(?:seconds)?)["']?(?:: *|=)["']?([0-9.]+)(us|ms|s|)\b`)

// text checks a string.
func (c *check) text(n *ast.BasicLit) {
	if n.Kind != token.STRING {
		return
	}
	if strings.Contains(n.Value, "/api/v1/query?") && !c.awaited() {
		c.report(ruleAsk, n, "Prometheus is asked once: ask within an await")
	}
	for _, found := range option.FindAllStringSubmatch(n.Value, -1) {
		name, value, unit := found[1], found[2], found[3]
		if unit == "" && !strings.HasSuffix(strings.ToLower(name), "seconds") {
			continue
		} else if unit == "" {
			unit = "s"
		}
		if d, err := time.ParseDuration(value + unit); err == nil && d > 0 && d < least {
			c.report(ruleLimit, n, "a limit below %s: %s", least, name)
		}
	}
}

// flags checks pairs of arguments such as "--timeout", "1s".
func (c *check) flags(args []ast.Expr) {
	for i := 1; i < len(args); i++ {
		flag, is := args[i-1].(*ast.BasicLit)
		value, also := args[i].(*ast.BasicLit)
		if !is || !also || flag.Kind != token.STRING || value.Kind != token.STRING {
			continue
		}
		name := strings.Trim(flag.Value, "\"`")
		d, err := time.ParseDuration(strings.Trim(value.Value, "\"`"))
		if strings.HasPrefix(name, "-") && limits.MatchString(name) && err == nil && d > 0 && d < least {
			c.report(ruleLimit, value, "a limit below %s: %s", least, name)
		}
	}
}

// measuring are the functions whose result is a measured time.
var measuring = []string{"time.Since", "(time.Time).Sub"}

// compared checks comparisons of a measured time: too long is what a slow machine makes of any.
func (c *check) compared(n *ast.BinaryExpr) {
	measured, limit := n.X, n.Y
	switch n.Op {
	case token.GTR, token.GEQ:
	case token.LSS, token.LEQ:
		measured, limit = n.Y, n.X
	default:
		return
	}
	call, is := measured.(*ast.CallExpr)
	if !is {
		return
	}
	f, _ := typeutil.Callee(c.TypesInfo, call).(*types.Func)
	if f != nil && slices.Contains(measuring, f.FullName()) && c.short(limit) {
		c.report(ruleBound, n, "an upper bound below %s on a measured time", least)
	}
}

// functionAt is the declared function around a position.
func functionAt(files []*ast.File, pos token.Pos) string {
	for _, file := range files {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || pos < f.Pos() || pos > f.End() {
				continue
			}
			if f.Recv == nil {
				return f.Name.Name
			}
			return types.ExprString(f.Recv.List[0].Type) + "." + f.Name.Name
		}
	}
	return ""
}
