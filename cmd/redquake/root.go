package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// execute runs the command line in args, the program's name first, and returns the exit code.
func execute(ctx context.Context, args []string, io streams) int {
	root := newRoot(args[0], io)
	root.SetArgs(args[1:])
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if f, ok := errors.AsType[*failure](err); ok {
		if f.err != nil {
			fmt.Fprintf(io.err, "%s: %v\n", called.CommandPath(), f.err)
		}
		return f.code
	}
	// Everything else came from cobra or from reading flags and files.
	fmt.Fprintf(io.err, "%s: %v\nSee '%s --help'.\n", called.CommandPath(), err, called.CommandPath())
	return exitUsage
}

// newRoot makes the command tree. program is how the process was called.
func newRoot(program string, io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "redquake",
		Short: "Load Redis, and measure what its clients live through",
		Long: `Load Redis, and measure what its clients live through.

Exit codes:
  0    it worked
  1    it was tried and failed: Redis was not reached, a command was refused, no request succeeded
  2    it was not tried: a flag or a file is wrong
  130  it was interrupted; what was measured until then was written`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	// As a kubectl plugin it shows itself as people call it.
	if strings.HasPrefix(filepath.Base(program), "kubectl-redquake") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl redquake"}
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.AddCommand(newAgent(io), newLoad(root.DisplayName(), io), newVersion(io))
	return root
}
