package loadflags

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groups are the groups of flags in the help, each with its title and the first of its flags in the
// order of registration.
var groups = []struct{ title, first string }{
	{"Input and output", "file"},
	{"Redis", "address"},
	{"Authentication and TLS", "username"},
	{"Load", "users"},
	{"Objectives", "min-throughput"},
	{"Requests", "command"},
	{"Client", "connections"},
	{"Recording", "interval"},
	{"Verification of acknowledged writes", "verify-writes"},
}

// helpWidth is the maximum width of the help's lines.
const helpWidth = 130

// Group lists the flags in the command's help under titles.
func Group(cmd *cobra.Command) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n\n%s", cmd.UseLine(),
			cmd.Example, grouped(cmd.Flags()))
		return err
	})
}

func grouped(all *pflag.FlagSet) string {
	var b strings.Builder
	next := 0
	var group *pflag.FlagSet
	end := func() {
		if group != nil {
			b.WriteString(group.FlagUsagesWrapped(helpWidth))
		}
	}
	all.VisitAll(func(f *pflag.Flag) {
		if next < len(groups) && f.Name == groups[next].first {
			end()
			if next > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%s:\n", groups[next].title)
			group = pflag.NewFlagSet("", pflag.ContinueOnError)
			group.SortFlags = false
			next++
		}
		if group != nil && f.Name != "help" { // obvious to the reader of the help
			group.AddFlag(f)
		}
	})
	end()
	return b.String()
}
