package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Choices completes the values of a flag, which are all that it takes.
func Choices(cmd *cobra.Command, flag string, values ...string) {
	complete(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Lists completes the values of a flag that takes several, separated by commas.
func Lists(cmd *cobra.Command, flag string, values ...string) {
	complete(cmd, flag, func(_ *cobra.Command, _ []string, begun string) (
		[]cobra.Completion, cobra.ShellCompDirective,
	) {
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		var all []cobra.Completion
		for _, v := range values {
			all = append(all, before+v)
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

func complete(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // the command has no such flag
	}
}
