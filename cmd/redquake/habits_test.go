package main

import (
	"regexp"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
)

// What is said instead of a flag of another program can be typed: each flag in it is one of load, or of results.
func TestInsteadOfFlagsOfOthers(t *testing.T) {
	root := newRoot("redquake", cli.Streams{})
	names := regexp.MustCompile(`(?:^|[ '(])(--?[a-zA-Z][a-z-]*)`)
	for _, name := range loadflags.Others() {
		for _, flag := range names.FindAllStringSubmatch(loadflags.Instead(name), -1) {
			known := false
			for _, command := range []string{"load", "results"} {
				cmd, _, err := root.Find([]string{command})
				if err != nil {
					t.Fatal(err)
				}
				trimmed := regexp.MustCompile("^--?").ReplaceAllString(flag[1], "")
				known = known || cmd.Flags().Lookup(trimmed) != nil ||
					len(trimmed) == 1 && cmd.Flags().ShorthandLookup(trimmed) != nil
			}
			if !known {
				t.Errorf("%s: %q names %s, which is no flag", name, loadflags.Instead(name), flag[1])
			}
		}
	}
}
