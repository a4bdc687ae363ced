package clitest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
)

// Output runs a command without the program around it, and returns what it writes to standard
// output. An error, or a word on standard error, fails the test.
func Output(
	t *testing.T, command func(name string, io cli.Streams) *cobra.Command, args ...string,
) string {
	t.Helper()
	var out, said bytes.Buffer
	cmd := command("redquake", cli.Streams{In: strings.NewReader(""), Out: &out, Err: &said})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil || said.Len() > 0 {
		t.Fatalf("%s %q: %v\n%s", cmd.Name(), args, err, said.String())
	}
	return out.String()
}
