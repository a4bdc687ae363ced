package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/fault/declared"
)

const markHelp = `Say that something else has just broken Redis, to a fault of type External: what follows is measured
like the effect of any other fault.

NAME is a RedisFault of type External that waits for its mark (WaitingForMark). The instant is the
one at which the operator reads the mark, by its own clock, within a fraction of a second; --at sets
another one, such as that of a log. It cannot be changed afterwards. Without a mark the first
anomaly of the load counts.

The command waits until the operator has taken the mark, and writes the instant.`

const markExamples = `  # now, after a failover by hand
  redis-cli -p 26379 sentinel failover mymaster && {name} mark failover-drill -n shop

  # the instant at which the log of the cloud says that the node was replaced
  {name} mark failover-drill -n shop --at 2026-11-23T13:08:30.136Z`

// markFlags are the flags of `redquake mark`.
type markFlags struct {
	cluster cluster.Flags
	at      string
}

// NewMark returns the command mark. name is that of the program, as users call it.
func NewMark(name string, io cli.Streams) *cobra.Command {
	var flags markFlags
	waits := func(o *kube.Object) bool {
		reason, _ := o.State()
		return reason == v1alpha1.ReasonWaitingForMark || reason == v1alpha1.ReasonInvalidMark
	}
	cmd := &cobra.Command{
		Use:               "mark NAME [flags]",
		Short:             "Mark the instant at which something else broke Redis",
		Long:              markHelp,
		Example:           strings.ReplaceAll(markExamples, "{name}", name),
		Args:              cli.One("the fault of type External that has begun"),
		ValidArgsFunction: flags.cluster.Names(waits, kube.Fault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.at != "" {
				_, err := time.Parse(time.RFC3339Nano, flags.at)
				if err != nil {
					return fmt.Errorf("--at: %q is no instant such as 2026-11-23T13:08:30.136Z", flags.at)
				}
			}
			return cli.AsFailure(flags.run(cmd.Context(), args[0], io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.at, "at", "",
		"`instant` in RFC 3339 (default: when the operator reads the mark)")
	flags.cluster.Register(f)
	return cmd
}

// markedWithin is how long the operator may take to read a mark.
const markedWithin = 30 * time.Second

func (f *markFlags) run(ctx context.Context, arg string, io cli.Streams) error {
	client, err := f.cluster.Connect()
	if err != nil {
		return err
	}
	o, err := client.Find(ctx, arg, kube.Fault)
	if err != nil {
		return err
	}
	reason, message := o.State()
	switch s := &o.Fault.Status; {
	case !declared.IsExternal(&o.Fault.Spec):
		return fmt.Errorf(
			"%s is of type %s: only a fault of type External is marked, the others break Redis themselves",
			o.Ref(), o.Fault.Spec.Action.Type)
	case s.InjectedAt != nil:
		return fmt.Errorf("%s is marked already, at %s (%s)", o.Ref(),
			s.InjectedAt.UTC().Format(time.RFC3339Nano), s.MarkedBy)
	case reason != v1alpha1.ReasonWaitingForMark && reason != v1alpha1.ReasonInvalidMark:
		return fmt.Errorf("%s does not wait for a mark (%s: %s)", o.Ref(), reason, message)
	}
	value := f.at
	if value == "" {
		value = "now"
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationMark: value}},
	})
	if err != nil {
		return err
	}
	err = client.Patch(ctx, kube.Fault.GVR(), o.Meta().Namespace, o.Meta().Name, string(patch))
	if err != nil {
		return kube.Explain(err, "annotate "+o.Ref())
	}
	marked, err := f.taken(ctx, client, o, value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Out, "%s: marked at %s\n", o.Ref(), marked.UTC().Format(time.RFC3339Nano))
	return err
}

// taken is the instant that the operator has taken, or why it has not.
func (f *markFlags) taken(
	ctx context.Context, client *kube.Client, fault *kube.Object, value string,
) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, markedWithin)
	defer cancel()
	m := fault.Meta()
	err = client.FollowUntil(ctx, kube.Fault, m.Namespace, m.Name, []types.UID{m.UID},
		func(o *kube.Object) (bool, error) {
			reason, message := o.State()
			switch {
			case o.Fault.Status.InjectedAt != nil:
				at = o.Fault.Status.InjectedAt.Time
				return true, nil
			case reason == v1alpha1.ReasonInvalidMark && strings.Contains(message, value):
				return false, fmt.Errorf("%s: %s", o.Ref(), message)
			case o.Finished():
				return false, fmt.Errorf("%s ended (%s: %s)", o.Ref(), reason, message)
			}
			return false, nil
		})
	if errors.Is(err, context.DeadlineExceeded) {
		return at, fmt.Errorf(
			"the annotation is set, and the operator has not read it within %s: is it running?",
			markedWithin)
	}
	return at, err
}
