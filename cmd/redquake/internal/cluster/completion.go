package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/kube"
)

// completionWithin is how long a shell waits for names at most.
const completionWithin = 2 * time.Second

// AnyState is a condition of Names that holds for all objects.
func AnyState(*kube.Object) bool {
	return true
}

// Names completes the names of objects in the cluster that a condition holds for, with their
// states. Nothing is completed if the cluster does not answer.
func (f *Flags) Names(which func(*kube.Object) bool, kinds ...kube.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string,
		_ string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		client, err := f.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWithin)
		defer cancel()
		count := map[string]int{}
		var all []*kube.Object
		for _, kind := range kinds {
			some, err := client.All(ctx, kind, client.Namespace)
			if err != nil {
				continue
			}
			for _, o := range some {
				count[o.Meta().Name]++
				if which(o) {
					all = append(all, o)
				}
			}
		}
		var found []cobra.Completion
		for _, o := range all {
			name := o.Meta().Name
			if count[name] > 1 {
				name = o.Ref()
			}
			if slices.Contains(args, name) {
				continue
			}
			reason, _ := o.State()
			found = append(found, cobra.CompletionWithDesc(name, o.Kind.Name+", "+reason))
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// OrFiles completes files as well: of commands that take either.
func OrFiles(names cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string,
		begun string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, _ := names(cmd, args, begun)
		return found, cobra.ShellCompDirectiveDefault
	}
}
