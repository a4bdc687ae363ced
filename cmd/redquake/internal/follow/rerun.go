package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/internal/written"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/live"
)

const rerunHelp = `Create an object of the cluster again, with the same spec and a new name: an object runs once, as a
Job does.

NAME is a load test, a fault or an experiment, also as KIND/NAME. With a load test the faults on it
are created again, too, on the new load test; a fault alone only if it has a load of its own, or if
its load test is not over. The names of the new objects are written to standard output, one a line,
as kubectl takes them. They begin with the old name; the annotation redquake.dev/rerun-of holds that
of the first object of such a chain. A run of a schedule is an experiment: created again, it is none
of the schedule's.`

const rerunExamples = `  # a load test with its faults
  {name} rerun checkout-cache -n shop

  # and follow it to its verdict, as run does
  {name} rerun checkout-cache -n shop --follow`

// rerunFlags are the flags of `redquake rerun`.
type rerunFlags struct {
	cluster cluster.Flags
	alone   bool
	follow  bool
	plain   bool
	timeout time.Duration
}

// NewRerun returns the command rerun. name is that of the program, as users call it.
func NewRerun(name string, io cli.Streams) *cobra.Command {
	var flags rerunFlags
	cmd := &cobra.Command{
		Use:               "rerun NAME [flags]",
		Short:             "Run a load test with its faults, a fault or an experiment again",
		Long:              rerunHelp,
		Example:           strings.ReplaceAll(rerunExamples, "{name}", name),
		Args:              cli.One("what is over, as redisloadtest/checkout-cache"),
		ValidArgsFunction: flags.cluster.Names((*kube.Object).Finished, kube.AllKinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.timeout < 0 {
				return errors.New("--timeout: must not be negative")
			}
			cli.OutliveReaders()
			return cli.AsFailure(flags.run(context.WithoutCancel(cmd.Context()), name, args[0], io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&flags.alone, "without-faults", false, "a load test without the faults on it")
	f.BoolVar(&flags.follow, "follow", false,
		"show what happens, and end with the verdict, as run does")
	f.BoolVar(&flags.plain, "plain", false, "with --follow: lines of text instead of a page")
	f.DurationVar(&flags.timeout, "timeout", 0,
		"with --follow: `time` after which everything is aborted (default: none)")
	flags.cluster.Register(f)
	return cmd
}

func (f *rerunFlags) run(ctx context.Context, name, arg string, io cli.Streams) error {
	client, err := f.cluster.Connect()
	if err != nil {
		return err
	}
	o, err := client.Find(ctx, arg, kube.AllKinds...)
	if err != nil {
		return err
	}
	all, err := f.again(ctx, client, o, name)
	if err != nil {
		return err
	}
	c := &creator{
		client: client,
		notes:  io.Err,
		name:   name,
		rerun:  true,
	}
	var made []*kube.Object
	renamed := map[string]string{}
	for _, w := range all {
		was := w.Content.GetName()
		renew(w.Content, w.Kind)
		if to, ok := renamed[loadTestRef(w.Content)]; ok {
			_ = unstructured.SetNestedField(w.Content.Object, to, "spec", "loadTestRef", "name")
		}
		created, err := client.Apply(ctx, w.Content, false)
		if err != nil {
			return errors.Join(kube.Explain(err, "create "+w.Ref()), c.abort(ctx, made))
		}
		if w.Kind == kube.LoadTest {
			renamed[was] = created.GetName()
		}
		o, err := kube.ObjectOf(created)
		if err != nil {
			return err
		}
		made = append(made, o)
		fmt.Fprintln(io.Out, o.Ref())
	}
	if f.follow {
		return followToTheEnd(ctx, client, made, nil, name, f.timeout, f.plain, io)
	}
	fmt.Fprintf(io.Err, "To follow it: %s watch -n %s %s\n", name, client.Namespace, made[0].Ref())
	return nil
}

// again are the objects that are created once more: those of an object that has run.
func (f *rerunFlags) again(
	ctx context.Context, client *kube.Client, o *kube.Object, name string,
) ([]*written.Object, error) {
	if o.IsSchedule() {
		return nil, fmt.Errorf(
			"%s runs its template itself, at each of its times; what can be run again is one of its runs%s",
			o.Ref(), kube.SuchAs(kube.LastRun(o.Schedule)))
	}
	if !o.Finished() {
		reason, _ := o.State()
		return nil, fmt.Errorf("%s is not over (%s): abort it first (%s stop %s), or let it end", o.Ref(),
			reason, name, o.Ref())
	}
	objects, err := f.with(ctx, client, o, name)
	if err != nil {
		return nil, err
	}
	var all []*written.Object
	for _, o := range objects {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(o.Kind.Name))
		u.SetName(o.Meta().Name)
		there, err := client.Get(ctx, u)
		if err != nil || there == nil {
			return nil, errors.Join(fmt.Errorf("%s was deleted meanwhile", o.Ref()), err)
		}
		all = append(all, &written.Object{Content: there, Kind: o.Kind})
	}
	slices.SortStableFunc(all, func(a, b *written.Object) int { return a.Rank() - b.Rank() })
	return all, nil
}

// with is an object with those without which it makes no sense: a load test with its faults.
func (f *rerunFlags) with(
	ctx context.Context, client *kube.Client, o *kube.Object, name string,
) ([]*kube.Object, error) {
	objects := []*kube.Object{o}
	switch {
	case o.Fault != nil && o.Fault.Spec.LoadTestRef != nil:
		test, err := client.Read(ctx, kube.LoadTest, o.Fault.Spec.LoadTestRef.Name)
		if err != nil {
			return nil, err
		}
		if test == nil || test.Finished() {
			return nil, fmt.Errorf(
				"%s measures nothing without a load: its RedisLoadTest %s is over; run both again: %s rerun redisloadtest/%s",
				o.Ref(), o.Fault.Spec.LoadTestRef.Name, name, o.Fault.Spec.LoadTestRef.Name)
		}
	case o.Test != nil && !f.alone:
		faults, err := client.All(ctx, kube.Fault, client.Namespace)
		if err != nil {
			return nil, err
		}
		for _, fault := range faults {
			if fault.Fault.Spec.LoadTestRef != nil && live.LoadOf(fault.Fault) == o.Test.Name {
				objects = append(objects, fault)
			}
		}
	}
	return objects, nil
}
