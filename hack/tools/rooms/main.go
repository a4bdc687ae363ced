// Command rooms holds packages to a size that one can keep in mind: at most 2,000 lines of code and
// 20 files, structs of at most 20 fields, and no package with the name of one that it imports. It
// exits with 1 if there is anything larger that exceptions.go does not list, or if an exception is
// larger than it needs to be.
//
//	rooms FOLDER
package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// The limits.
const (
	mostLines  = 2000 // of code: without comments and blank lines
	mostFiles  = 20
	mostFields = 20 // of a struct; embedded ones count as one
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := measure(root)
	if err == nil {
		err = judge(os.Stdout, found, exceptions)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
}

// judge prints what is too large and not excepted, and exceptions that are larger than what they
// are about. Of both it counts how many there are.
func judge(out io.Writer, found map[measured]int, excepted map[measured]int) error {
	problems := 0
	for _, m := range slices.SortedFunc(maps.Keys(found), compare) {
		limit := map[rule]int{
			lines:  mostLines,
			files:  mostFiles,
			fields: mostFields,
			name:   0,
		}[m.rule]
		allowed, is := excepted[m]
		switch is := is; {
		case found[m] <= limit && is:
			fmt.Fprintf(out, "%s: %s: %d is within the limit of %d: remove the exception\n", m.at, m.rule,
				found[m], limit)
		case found[m] <= limit:
			continue
		case found[m] > max(limit, allowed):
			fmt.Fprintf(out, "%s: %s: %d, at most %d\n", m.at, m.rule, found[m], max(limit, allowed))
		case found[m] < allowed:
			fmt.Fprintf(out, "%s: %s: %d, and the exception is %d: lower it\n", m.at, m.rule, found[m],
				allowed)
		default:
			continue
		}
		problems++
	}
	for _, m := range slices.SortedFunc(maps.Keys(excepted), compare) {
		if _, is := found[m]; !is {
			fmt.Fprintf(out, "%s: %s: there is no such package or struct: remove the exception\n", m.at,
				m.rule)
			problems++
		}
	}
	if problems > 0 {
		return fmt.Errorf("%d findings: divide what is too large, see CONTRIBUTING.md", problems)
	}
	return nil
}

func compare(a, b measured) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rule, b.rule))
}
