// Package dryrun has the command plan, which says what objects would do without doing it.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // of schedules: what runs this program may have no time zones

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/internal/written"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/crontab"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/format"
)

const planHelp = `Say what the objects of files would do, when, and how it is reverted, without doing it.

Each object is created in a dry run of the API server, which shows what is refused: by its schema
and rules, by admission policies, by missing permissions. Of a load test, an experiment and a
schedule the plan follows from the spec. Of a fault the operator makes it: the command creates it
with spec.dryRun under another name, waits for its plan, and deletes it. The operator selects the
targets as they are now and applies its guards and checks, breaks nothing and creates no load; what
it would refuse is shown with its reason. A fault on a load test of the same files needs that one
not to exist yet: it gets its target.

Objects of other kinds in the files are ignored: a Redis that does not exist yet has no pods that
could be selected.

Exit codes: 0 nothing is refused; 2 something is, or an error.`

const planExamples = `  # would this kill be possible now, and which pod would it hit?
  {name} plan -f config/samples/loadtest.yaml -f config/samples/podkill.yaml -n shop

  # an experiment: how many runs, of which cells
  {name} plan -f config/samples/experiment.yaml -n shop`

// planFlags are the flags of `redquake plan`.
type planFlags struct {
	cluster cluster.Flags
	files   []string
	timeout time.Duration
}

// New returns the command plan. name is that of the program, as users call it.
func New(name string, io cli.Streams) *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:     "plan -f FILE... [flags]",
		Short:   "Say what objects would do, when, and how that is reverted",
		Long:    planHelp,
		Example: strings.ReplaceAll(planExamples, "{name}", name),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.timeout <= 0 {
				return errors.New("--timeout: must be above 0")
			}
			all, err := written.Read(flags.files, io.In)
			if err != nil {
				return err
			}
			return cli.AsFailure(flags.run(cmd.Context(), all, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVarP(&flags.files, "file", "f", nil,
		"`file` with objects, - for standard input; repeatable")
	f.DurationVar(&flags.timeout, "timeout", time.Minute,
		"`time` to wait for the operator's plan of a fault")
	flags.cluster.Register(f)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

func (f *planFlags) run(ctx context.Context, all []*written.Object, io cli.Streams) error {
	client, err := f.cluster.Connect()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(w *written.Object) bool { return !w.Ours() })
	targets := map[string]*v1alpha1.RedisTarget{} // of the load tests in the files
	refused, unplanned := 0, 0
	for i, w := range all {
		if i > 0 {
			fmt.Fprintln(io.Out)
		}
		fmt.Fprintf(io.Out, "%s (%s)\n", w.Ref(), w.File)
		err := f.one(ctx, client, w, targets, io.Out)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			if errors.Is(err, errNoPlan) {
				unplanned++
				planLine(io.Out, "No plan", "%v", err)
				continue
			}
			refused++
			planLine(io.Out, "Refused", "%v", err)
		}
	}
	if refused == 0 && unplanned > 0 {
		return fmt.Errorf("%d of %d objects have no plan", unplanned, len(all))
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d objects are refused", refused, len(all))
	}
	return nil
}

// errNoPlan is that the operator, whose plan it would be, is silent: it refuses nothing.
var errNoPlan = errors.New("the operator has made no plan")

func planLine(out io.Writer, name, format string, args ...any) {
	fmt.Fprintf(out, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
}

// one plans an object, of which the API server has set the defaults.
func (f *planFlags) one(
	ctx context.Context, client *kube.Client, w *written.Object,
	targets map[string]*v1alpha1.RedisTarget, out io.Writer,
) error {
	candidate := w.Content.DeepCopy()
	there, err := client.Get(ctx, candidate)
	if w.Content.GetName() != "" && err == nil && there != nil {
		planLine(out, "Exists", "an object of this name exists: the plan is that of a new one")
		candidate.SetGenerateName(w.Kind.GenerateName(candidate.GetName(), "-"))
		candidate.SetName("")
	}
	made, err := client.Apply(ctx, candidate, true)
	if err != nil {
		return err
	}
	o, err := kube.ObjectOf(made)
	if err != nil {
		return err
	}
	switch o.Kind {
	case kube.LoadTest:
		targets[w.Content.GetName()] = &o.Test.Spec.Target
		return planLoad(out, o.Test)
	case kube.Experiment:
		spec := &o.Experiment.Spec
		err := planExperiment(out, spec, spec.CompareTo != nil)
		if err != nil {
			return err
		}
		planLine(out, "Revert",
			"settings and faults are reverted after each run, before the next one begins; spec.abort ends it")
		return nil
	case kube.Schedule:
		return planSchedule(out, &o.Schedule.Spec, time.Now())
	}
	return f.planFault(ctx, client, w.Content, o.Fault, targets, out)
}

func planLoad(out io.Writer, test *v1alpha1.RedisLoadTest) error {
	p, err := children.Plan(test, []string{"redis:6379"})
	if err != nil {
		return err
	}
	planLine(out, "Load", "%s, by %d pods over %d connections each", p.Shape.InWords(),
		p.Pods, p.Client.Connections)
	var parts []string
	for _, part := range []struct {
		name   string
		length time.Duration
	}{{"ramp-up", p.Shape.RampUp}, {"warm-up", p.Shape.WarmUp}} {
		if part.length > 0 {
			parts = append(parts, format.Duration(part.length)+" "+part.name)
		}
	}
	more := test.Spec.Load.UntilFaultsSettle
	length := p.Shape.Length()
	if more != nil { // the plan of the load pods includes it: the operator ends them before
		length -= more.Duration
	}
	if length > 0 {
		parts = append(parts, format.Duration(length-p.Shape.MeasuredFrom())+" measured",
			"it ends "+format.Duration(length)+" after its start")
	}
	if more != nil {
		parts = append(parts, "up to "+format.Duration(more.Duration)+
			" later until its faults have settled")
	}
	planLine(out, "Time", "%s", strings.Join(parts, ", "))
	if p.Workload.Keyspace.Prefix != "" && p.Target.IsSet() {
		planLine(out, "Writes", "keys with the prefix %s", p.Workload.Keyspace.Prefix)
	}
	planLine(out, "Revert", "nothing is broken; spec.abort ends it")
	return nil
}

// planSchedule plans a schedule that is created now: its times, and the experiment of each of its
// runs.
func planSchedule(out io.Writer, spec *v1alpha1.RedisExperimentScheduleSpec, now time.Time) error {
	times, err := crontab.Parse(spec.Schedule, spec.TimeZone)
	if err != nil {
		return err
	}
	first := "the first run is due at " + times.Next(now).Format(time.RFC3339)
	if spec.Suspend {
		first = "there are no runs until spec.suspend is reset"
	}
	planLine(out, "Schedule", "%s (%s): %s", spec.Schedule, times.Zone(), first)
	err = planExperiment(out, &spec.Template.Spec, spec.CompareTo != nil)
	if err != nil {
		return experiment.InTemplate(err)
	}
	planLine(out, "Revert",
		"settings and faults are reverted after each load test, before the next one begins; "+
			"spec.suspend ends the schedule, spec.abort a run of it")
	return nil
}

// planExperiment says what an experiment runs. earlier is whether it is compared with an earlier
// one.
func planExperiment(out io.Writer, spec *v1alpha1.RedisExperimentSpec, earlier bool) error {
	p, err := experiment.NewPlan(spec)
	if err != nil {
		return err
	}
	if err := p.Compares(earlier); err != nil {
		return err
	}
	planLine(out, "Cells", "%d: %s", len(p.Variants), strings.Join(p.Names(), "; "))
	planLine(out, "Runs", "%d rounds of each cell, one run after the other", p.Repeat)
	planLine(out, "Time", "%s", timeOf(p))
	for i := range spec.Faults {
		planLine(out, "Fault", "%s: %s, in each run", spec.Faults[i].Name,
			spec.Faults[i].Spec.Action.Type)
	}
	return nil
}

// timeOf is how long the runs of an experiment take.
func timeOf(p *experiment.Plan) string {
	var total, shortest, longest time.Duration
	for i := range p.Variants {
		load := &p.Variants[i].Load
		length := children.Shape(load).Length()
		if more := load.Load.UntilFaultsSettle; more != nil { // at most, as in planLoad
			length -= more.Duration
		}
		if length <= 0 {
			return "not known: a run lasts until its requests are sent, or its rate is found"
		}
		if shortest == 0 || length < shortest {
			shortest = length
		}
		longest = max(longest, length)
		total += length * time.Duration(p.Repeat)
	}
	each := format.Duration(longest)
	if shortest < longest {
		each = format.Duration(shortest) + " to " + each
	}
	return fmt.Sprintf("at least %s: %s of load in each run, and what starts and reverts before and after it",
		format.Duration(total), each)
}

// planFault has the operator plan a fault.
func (f *planFlags) planFault(
	ctx context.Context, client *kube.Client, u *unstructured.Unstructured, fault *v1alpha1.RedisFault,
	targets map[string]*v1alpha1.RedisTarget, out io.Writer,
) error {
	dry, err := dryRunOf(u, fault, targets)
	if err != nil {
		return err
	}
	made, err := client.Apply(ctx, dry, false)
	if err != nil {
		return kube.Explain(err, "create the dry run")
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err := client.Delete(ctx, kube.Fault.GVR(), made.GetNamespace(), made.GetName(), made.GetUID())
		if err != nil {
			planLine(out, "Left", "%v; it deletes itself in a minute",
				kube.Explain(err, "delete the dry run redisfault/"+made.GetName()))
		}
	}()
	waiting, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var planned *kube.Object
	var last string
	err = client.FollowUntil(waiting, kube.Fault, made.GetNamespace(), made.GetName(),
		[]types.UID{made.GetUID()}, func(o *kube.Object) (bool, error) {
			planned = o
			reason, message := o.State()
			last = reason + ": " + message
			return o.Finished(), nil
		})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w within %s (%s): is it running? redquake doctor tells", errNoPlan, f.timeout,
			last)
	case err != nil:
		return err
	case planned.Failed():
		return errors.New(last)
	}
	writeFaultPlan(out, fault, &planned.Fault.Status)
	return nil
}

// dryRunOf is a fault as a dry run under a name of its own. One on a load test of the same files
// gets the target of that: it may not exist yet.
func dryRunOf(
	u *unstructured.Unstructured, fault *v1alpha1.RedisFault, targets map[string]*v1alpha1.RedisTarget,
) (*unstructured.Unstructured, error) {
	dry := &unstructured.Unstructured{Object: map[string]any{"spec": u.DeepCopy().Object["spec"]}}
	dry.SetGroupVersionKind(u.GroupVersionKind())
	dry.SetNamespace(u.GetNamespace())
	dry.SetGenerateName(kube.Fault.GenerateName(fault.Name, "-plan-"))
	for _, set := range []struct {
		value any
		field string
	}{{true, "dryRun"}, {false, "suspend"}, {int64(60), "ttlSecondsAfterFinished"}} {
		err := unstructured.SetNestedField(dry.Object, set.value, "spec", set.field)
		if err != nil {
			return nil, fmt.Errorf("spec.%s: %w", set.field, err)
		}
	}
	ref := fault.Spec.LoadTestRef
	if ref != nil && fault.Spec.Target == nil && targets[ref.Name] != nil {
		target, err := runtime.DefaultUnstructuredConverter.ToUnstructured(targets[ref.Name])
		if err != nil {
			return nil, err
		}
		err = unstructured.SetNestedMap(dry.Object, target, "spec", "target")
		if err != nil {
			return nil, fmt.Errorf("spec.target: %w", err)
		}
	}
	return dry, nil
}

func writeFaultPlan(out io.Writer, fault *v1alpha1.RedisFault, s *v1alpha1.RedisFaultStatus) {
	p := s.Plan
	if p == nil {
		p = &v1alpha1.FaultPlan{}
	}
	planLine(out, "When", "%s", p.Trigger)
	for i := range p.Steps {
		step := &p.Steps[i]
		planLine(out, "Pod", "%s: %s", step.Pod, step.Action)
		switch {
		case step.Revert != "":
			planLine(out, "Revert", "%s", step.Revert)
		default:
			planLine(out, "Revert", "there is nothing to revert")
		}
		if step.LosesData != "" {
			planLine(out, "Data loss", "the server comes back without data: %s", step.LosesData)
		}
		if step.SelfEnding != "" {
			planLine(out, "By itself", "%s", step.SelfEnding)
		}
		if step.ManualRevertCommand != "" {
			planLine(out, "By hand", "%s", step.ManualRevertCommand)
		}
	}
	if p.Omitted > 0 {
		planLine(out, "Pods", "%d more, in the same way", p.Omitted)
	}
	if p.End != "" {
		planLine(out, "End", "%s", p.End)
	}
	if !declared.IsExternal(&fault.Spec) {
		planLine(out, "Latest end", "%s after its creation (spec.deadline)",
			format.Duration(fault.Spec.DeadlineAfter()))
	}
	for _, w := range s.Warnings {
		planLine(out, "Warning", "%s", w)
	}
}
