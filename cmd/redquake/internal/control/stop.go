// Package control has the commands that act on what runs in a cluster: stop and mark.
package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
)

const stopHelp = `End faults, load tests and experiments now, suspend schedules, and wait until what they broke is
reverted.

With NAMEs each of these objects is aborted (spec.abort), which cannot be taken back. A schedule has
no end: redisexperimentschedule/NAME is suspended (spec.suspend), which can be taken back, and its
run that is under way is aborted.

With --all the namespace gets the annotation redquake.dev/stop=true: all faults in it are reverted
and end as Stopped, those of everybody, and none begins while the annotation is set. --all -A does
the same for all namespaces, by the annotation of the operator's namespace. --all --allow removes
it. Whoever may not annotate the namespace ends the faults of the namespace by aborting each; new
ones can begin then.

Load tests are not ended by --all: they break nothing. --all --runs aborts load tests and
experiments as well as faults, as before the operator is uninstalled, and annotates no namespace.
Schedules go on: it also aborts what they create while it waits, and ends when nothing runs.

The command ends when nothing acts any more. The operator reverts without it, too: Ctrl-C only ends
the wait.`

const stopExamples = `  # one fault, and the load that measures it
  {name} stop redisfault/kill-primary redisloadtest/checkout-cache -n shop

  # a schedule, with its run
  {name} stop redisexperimentschedule/nightly -n shop

  # everything that is broken in a namespace; later, let faults begin again
  {name} stop --all -n shop
  {name} stop --all --allow -n shop

  # everything that runs in a namespace
  {name} stop --all --runs -n shop

  # everything that is broken in the cluster
  {name} stop --all -A`

// stopFlags are the flags of `redquake stop`.
type stopFlags struct {
	cluster    cluster.Flags
	all        bool
	everywhere bool
	runs       bool
	namespaces []string // with runs: instead of the one of the cluster's flags
	allow      bool
	wait       time.Duration
}

// NewStop returns the command stop. name is that of the program, as users call it.
func NewStop(name string, io cli.Streams) *cobra.Command {
	var flags stopFlags
	cmd := &cobra.Command{
		Use:               "stop NAME... | --all [flags]",
		Short:             "End faults, load tests and experiments, suspend schedules, and revert what was broken",
		Long:              stopHelp,
		Example:           strings.ReplaceAll(stopExamples, "{name}", name),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: flags.cluster.Names(stoppable, kube.AllKinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(args); err != nil {
				return err
			}
			return cli.AsFailure(flags.run(cmd.Context(), args, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&flags.all, "all", false, "all faults of the namespace")
	f.BoolVarP(&flags.everywhere, "all-namespaces", "A", false, "with --all: those of all namespaces")
	f.BoolVar(&flags.runs, "runs", false, "with --all: load tests and experiments, too, each by spec.abort")
	f.StringSliceVar(&flags.namespaces, "namespaces", nil,
		"with --runs: those of these `NAMESPACE,...` instead of --namespace")
	f.BoolVar(&flags.allow, "allow", false, "with --all: let faults begin again")
	f.DurationVar(&flags.wait, "wait", 2*time.Minute,
		"`time` to wait until everything is reverted; 0: do not wait")
	flags.cluster.Register(f)
	cmd.MarkFlagsMutuallyExclusive("namespaces", "all-namespaces")
	cmd.MarkFlagsMutuallyExclusive("runs", "allow") // what is aborted cannot be allowed again
	return cmd
}

// check refuses flags that do not go together.
func (f *stopFlags) check(args []string) error {
	switch {
	case !f.all && len(args) == 0:
		return errors.New("name what to stop, as redisloadtest/checkout-cache, or set --all")
	case f.all && len(args) > 0:
		return errors.New("--all stops all faults of the namespace: name no object beside it")
	case (f.everywhere || f.allow || f.runs) && !f.all:
		return errors.New("--all-namespaces, --runs and --allow: need --all")
	case len(f.namespaces) > 0 && !f.runs:
		return errors.New("--namespaces: needs --runs")
	case f.wait < 0:
		return errors.New("--wait: must not be negative")
	}
	return nil
}

// stoppable reports whether there is something of an object to end.
func stoppable(o *kube.Object) bool {
	if o.IsSchedule() {
		return !o.Schedule.Spec.Suspend || o.Schedule.Status.Active != ""
	}
	return !o.Finished()
}

func (f *stopFlags) run(ctx context.Context, args []string, io cli.Streams) error {
	client, err := f.cluster.Connect()
	if err != nil {
		return err
	}
	switch {
	case f.runs:
		return f.abortAll(ctx, client, io)
	case f.all:
		return f.stopAll(ctx, client, io)
	}
	var all, schedules []*kube.Object
	for _, arg := range args {
		o, err := client.Find(ctx, arg, kube.AllKinds...)
		switch {
		case err != nil:
			return err
		case o.IsSchedule():
			schedules = append(schedules, o)
		default:
			all = append(all, o)
		}
	}
	suspended, runs, err := suspend(ctx, client, schedules, io)
	err = errors.Join(err, f.abort(ctx, client, client.Namespace, append(all, runs...), io))
	return errors.Join(err, f.abortLater(ctx, client, suspended, runs, io))
}

// suspend suspends schedules, and returns them with their runs that are not over.
func suspend(
	ctx context.Context, client *kube.Client, schedules []*kube.Object, io cli.Streams,
) (suspended, runs []*kube.Object, err error) {
	for _, s := range schedules {
		if failed := client.Suspend(ctx, s); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		fmt.Fprintf(io.Out, "%s suspended\n", s.Ref())
		suspended = append(suspended, s)
	}
	runs, failed := runsOf(ctx, client, suspended)
	return suspended, runs, errors.Join(err, failed)
}

// runsOf are the runs of schedules that are not over.
func runsOf(
	ctx context.Context, client *kube.Client, schedules []*kube.Object,
) ([]*kube.Object, error) {
	if len(schedules) == 0 {
		return nil, nil
	}
	all, err := client.All(ctx, kube.Experiment, client.Namespace)
	return slices.DeleteFunc(all, func(o *kube.Object) bool {
		of := children.ScheduleOf(o.Experiment)
		return o.Finished() || of == nil || !slices.Contains(kube.UIDs(schedules), of.UID)
	}), err
}

// abortLater waits until the operator has seen that schedules are suspended, and aborts the runs
// that it was creating meanwhile: those that are not among known.
func (f *stopFlags) abortLater(
	ctx context.Context, client *kube.Client, schedules, known []*kube.Object, io cli.Streams,
) error {
	if len(schedules) == 0 {
		return nil
	}
	if f.wait == 0 {
		fmt.Fprintln(io.Err,
			"A run that the operator was just creating is not aborted: to wait for that, leave out --wait 0.")
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	err := client.FollowUntil(waiting, kube.Schedule, client.Namespace, "", kube.UIDs(schedules),
		func(o *kube.Object) (bool, error) {
			// which creates nothing, and is not reported on any more
			deleted := o.Schedule.DeletionTimestamp != nil
			return deleted || o.Schedule.Spec.Suspend &&
				o.Schedule.Status.ObservedGeneration >= o.Schedule.Generation, nil
		})
	if err != nil {
		return fmt.Errorf("whether the operator creates another run is not known: %w", f.late(err))
	}
	runs, err := runsOf(ctx, client, schedules)
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(o *kube.Object) bool {
		return slices.Contains(kube.UIDs(known),
			o.Meta().UID)
	})
	return f.abort(ctx, client, client.Namespace, runs, io)
}

// abort aborts objects, and waits until they are over.
func (f *stopFlags) abort(
	ctx context.Context, client *kube.Client, namespace string, all []*kube.Object, io cli.Streams,
) error {
	aborted, err := abortEach(ctx, client, all, io)
	return errors.Join(err, f.awaitAll(ctx, client, namespace, aborted, io))
}

// abortEach aborts objects, and returns those that were not over.
func abortEach(
	ctx context.Context, client *kube.Client, all []*kube.Object, io cli.Streams,
) (aborted []*kube.Object, err error) {
	for _, o := range all {
		if o.Finished() && !o.Acts() {
			reason, _ := o.State()
			fmt.Fprintf(io.Out, "%s is over (%s)\n", o.Ref(), reason)
			continue
		}
		if failed := client.Abort(ctx, o); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		fmt.Fprintf(io.Out, "%s aborted\n", o.Ref())
		aborted = append(aborted, o)
	}
	return aborted, err
}

// awaitAll waits until objects are over and nothing of them acts.
func (f *stopFlags) awaitAll(
	ctx context.Context, client *kube.Client, namespace string, all []*kube.Object, io cli.Streams,
) error {
	byKind := map[kube.Kind][]*kube.Object{}
	for _, o := range all {
		byKind[o.Kind] = append(byKind[o.Kind], o)
	}
	var errs []error
	for _, kind := range kube.Kinds {
		errs = append(errs, f.awaitEnd(ctx, client, kind, namespace, byKind[kind], io))
	}
	return errors.Join(errs...)
}

// awaitEnd waits until objects of a kind are over and nothing of them acts.
func (f *stopFlags) awaitEnd(
	ctx context.Context, client *kube.Client, kind kube.Kind, namespace string, all []*kube.Object,
	io cli.Streams,
) error {
	if f.wait == 0 || len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	left := map[string]string{}
	for _, o := range all {
		left[o.Ref()], _ = o.State()
	}
	var unreverted []string
	err := client.FollowUntil(ctx, kind, namespace, "", kube.UIDs(all),
		func(o *kube.Object) (bool, error) {
			reason, message := o.State()
			left[o.Ref()] = reason
			if !o.Finished() || o.Acts() {
				return false, nil
			}
			delete(left, o.Ref())
			fmt.Fprintf(io.Out, "%s is over (%s: %s)\n", o.Ref(), reason, message)
			for _, command := range o.Unreverted() {
				unreverted = append(unreverted, o.Ref()+" was not reverted; by hand, on "+command)
			}
			return true, nil
		})
	if err != nil {
		var states []string
		for ref, state := range left {
			states = append(states, ref+" ("+state+")")
		}
		slices.Sort(states)
		return fmt.Errorf("not over yet: %s: %w; the operator goes on to revert",
			strings.Join(states, ", "), f.late(err))
	}
	if len(unreverted) > 0 {
		return errors.New(strings.Join(unreverted, "\n"))
	}
	return nil
}

// late is an error of waiting; of the end of --wait in words.
func (f *stopFlags) late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf(
			"it takes longer than %s (--wait): is the operator running? redquake doctor tells", f.wait)
	}
	return err
}

// abortAll aborts what runs, until nothing does: experiments and schedules create load tests and
// faults meanwhile. It waits for all of it together for --wait.
func (f *stopFlags) abortAll(ctx context.Context, client *kube.Client, io cli.Streams) error {
	if f.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.wait)
		defer cancel()
	}
	of := f.namespaces
	switch {
	case f.everywhere:
		of = []string{""}
	case len(of) == 0:
		of = []string{client.Namespace}
	}
	for first := true; ; first = false {
		running, err := running(ctx, client, of)
		switch {
		case err != nil:
			return f.late(err)
		case len(running) == 0 && first:
			fmt.Fprintln(io.Out, "nothing runs")
			return nil
		case len(running) == 0:
			return nil
		}
		aborted, err := abortEach(ctx, client, slices.Concat(slices.Collect(maps.Values(running))...), io)
		for namespace, all := range running {
			all = slices.DeleteFunc(all, func(o *kube.Object) bool { return !slices.Contains(aborted, o) })
			failed := f.awaitAll(ctx, client, namespace, all, io)
			if !errors.Is(failed, kube.ErrDeleted) { // the next look shows what is left
				err = errors.Join(err, failed)
			}
		}
		if err != nil || f.wait == 0 {
			return err
		}
	}
}

// running are the experiments, load tests and faults that are not over, by their namespace, which
// may be "" for all. Where there are no such kinds, nothing runs.
func running(
	ctx context.Context, client *kube.Client, of []string,
) (map[string][]*kube.Object, error) {
	found := map[string][]*kube.Object{}
	for _, namespace := range of {
		for _, kind := range kube.Kinds {
			all, err := client.All(ctx, kind, namespace)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = slices.DeleteFunc(all, func(o *kube.Object) bool { return o.Finished() && !o.Acts() })
			if len(all) > 0 {
				found[namespace] = append(found[namespace], all...)
			}
		}
	}
	return found, nil
}

// stopAll sets or removes the annotation of a namespace.
func (f *stopFlags) stopAll(ctx context.Context, client *kube.Client, io cli.Streams) error {
	on, of := client.Namespace, client.Namespace
	if f.everywhere {
		of = ""
		managers, err := client.Managers(ctx)
		if err != nil {
			return err
		}
		if on = kube.OperatorNamespace; len(managers) > 0 {
			on = managers[0].Namespace
		}
	}
	value := `"true"`
	if f.allow {
		value = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationStop, value)
	err := client.Patch(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", on, patch)
	forbidden := kube.IsNotPermitted(err)
	if err != nil && (!forbidden || f.everywhere || f.allow) {
		return kube.Explain(err, "annotate namespace "+on)
	}
	if f.allow {
		fmt.Fprintf(io.Out, "namespace %s: faults may begin again\n", on)
		return nil
	}
	faults, failed := client.All(ctx, kube.Fault, of)
	if failed != nil {
		return failed
	}
	faults = slices.DeleteFunc(faults, func(o *kube.Object) bool { return o.Finished() && !o.Acts() })
	if forbidden {
		fmt.Fprintf(io.Err, "%v: aborting the faults one by one; new ones may begin\n", err)
		return f.abort(ctx, client, of, faults, io)
	}
	fmt.Fprintf(io.Out,
		"namespace %s: all faults are ended, and none begins until %s is removed (--allow)\n", on,
		v1alpha1.AnnotationStop)
	return f.awaitEnd(ctx, client, kube.Fault, of, faults, io)
}
