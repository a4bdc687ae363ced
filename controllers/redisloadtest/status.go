package redisloadtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/conditions"
	"github.com/redquake/redquake/controllers/redisloadtest/figures"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
)

// report writes the status once, with what was observed and decided, and then emits events.
func (r *Reconciler) report(
	ctx context.Context, s *scope.Test, d lifecycle.Decision[lifecycle.LoadTestAction],
	o state.Outcome,
) error {
	if s.Seen.Finished {
		r.Runs.Drop(s.Test.UID)
		return nil
	}
	status := &s.Test.Status
	status.ObservedGeneration = s.Test.Generation
	if s.Plan != nil && d.Action != lifecycle.LoadTestSuspend {
		r.setLoadPods(s)
	}
	figures.SetFigures(s, r.Clock.Now(), o.Ended)
	if err := r.setAround(ctx, s); err != nil {
		return err
	}
	figures.SetVerification(s)
	figures.SetGuarantees(s)
	if o.Ended {
		now := metav1.NewMicroTime(r.Clock.Now())
		status.CompletionTime = &now
		err := setResults(ctx, s, resultsStore{client: r.Client, test: s.Test})
		if err != nil {
			return err
		}
		if !o.Failed && s.Seen.Restored == "" {
			figures.Judge(s, d.Reason)
		}
		err = storeResult(ctx, s, resultsStore{client: r.Client, test: s.Test}, d, o)
		if err != nil {
			return err
		}
	}
	conditions.Set(s, d, o)
	if !r.statusDue(s) {
		return nil
	}
	err := state.PatchStatus(ctx, r.Client, s.Test, s.Before)
	if err != nil {
		return err
	}
	r.emitEvents(s)
	if o.Ended {
		r.Runs.Drop(s.Test.UID)
		if s.Seen.Restored == "" { // no load has ended
			r.Metrics.LoadEnded(s.Test.UID, status.Verdict)
		}
	}
	return nil
}

// statusDue reports whether the status is to be written: at once, except for figures of a running
// load, which are written every 2 s.
func (r *Reconciler) statusDue(s *scope.Test) bool {
	before, after := &s.Before.Status, &s.Test.Status
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	if len(before.Conditions) != len(after.Conditions) || before.Verdict != after.Verdict ||
		len(before.Faults) != len(after.Faults) ||
		(before.Verification == nil) != (after.Verification == nil) ||
		judgedTrials(before.Search) != judgedTrials(after.Search) {
		return true
	}
	for _, c := range after.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason {
			return true
		}
	}
	return r.Runs.Due(s.Run, s.Test.UID, r.Clock.Now())
}

// judgedTrials counts the evaluated trials of a search.
func judgedTrials(f *v1alpha1.SearchStatus) (n int) {
	if f == nil {
		return 0
	}
	for i := range f.Trials {
		if f.Trials[i].Met != nil {
			n++
		}
	}
	return n
}

// storeStatus writes the status before a step that must be on record.
func (r *Reconciler) storeStatus(ctx context.Context, s *scope.Test) error {
	stored := s.Test.DeepCopy()
	err := r.Client.Status().Patch(ctx, stored, state.OptimisticPatch(s.Before))
	if err != nil {
		return fmt.Errorf("patch the status: %w", err)
	}
	s.Test.Status.DeepCopyInto(&s.Before.Status)
	s.Before.ResourceVersion = stored.ResourceVersion
	return nil
}

func (r *Reconciler) setLoadPods(s *scope.Test) {
	status := &s.Test.Status
	status.LoadPods = &v1alpha1.LoadPodsStatus{
		Desired: int32(s.Seen.PodsWanted),
		Lost:    int32(len(s.Lost)),
	}
	for _, p := range s.Session.Pods {
		if p.Reachable && !p.Gone && p.State != "" && p.State != "Preparing" {
			status.LoadPods.Ready++
		}
	}
	if s.Session.Begun == len(s.Session.Pods) && s.Session.Skew >= 0 && s.Session.Begun > 0 {
		status.StartSkew = new(v1alpha1.DurationOf(s.Session.Skew))
		status.ClockUncertainty = new(v1alpha1.DurationOf(s.Session.SkewUncertainty))
	}
}

// setTarget sets the addresses of the load, and what the servers there reported; nothing for a load
// without a target.
func setTarget(s *scope.Test) {
	if !s.Plan.Target.IsSet() {
		return
	}
	addresses := slices.Compact(slices.Sorted(slices.Values(s.Plan.Target.Addresses)))
	target := &v1alpha1.TargetStatus{
		Addresses: first(addresses),
		Topology:  v1alpha1.TopologyStandalone,
	}
	named := s.Plan.Target.Topology
	if named != "" && named != plan.TopologyAuto {
		target.Topology = v1alpha1.Topology(named)
	}
	if sentinel := s.Plan.Target.Sentinel; sentinel != nil {
		target.Sentinels = first(unique(sentinel.Addresses))
	}
	var layout *agent.Layout
	for _, p := range s.Session.Pods {
		if p.Server != nil && target.Server == "" {
			target.Server, target.Version = p.Server.Name, p.Server.Version
			target.Primaries, target.Replicas = serversByRole(p.Server.Role, p.Server.Address)
		}
		layout = cmp.Or(layout, p.Layout)
	}
	if layout != nil {
		target.Topology = v1alpha1.Topology(layout.Topology)
		target.Primaries = unique(layout.Primaries)
		target.Replicas = unique(layout.Replicas)
	}
	s.Test.Status.Target = target
}

// serversByRole returns the one server that a load without a discovered topology reached, under its
// role.
func serversByRole(role, address string) (primaries, replicas []string) {
	switch role {
	case "master":
		return []string{address}, nil
	case "slave":
		return nil, []string{address}
	}
	return nil, nil
}

// first returns as many servers as a list of the status can have.
func first(servers []string) []string {
	return servers[:min(len(servers), 64)]
}

// unique drops duplicates and keeps the order: the lists of a status are sets.
func unique(servers []string) []string {
	var once []string
	for _, s := range servers {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// resetStatus removes everything about a run from the status.
func resetStatus(s *scope.Test) {
	conditions := s.Test.Status.Conditions
	s.Test.Status = v1alpha1.RedisLoadTestStatus{
		Conditions:         conditions,
		ObservedGeneration: s.Test.Generation,
	}
}

// setResults sets the reference to the stored record.
func setResults(ctx context.Context, s *scope.Test, store resultsStore) error {
	data, err := store.Load(ctx)
	if err != nil || len(data) == 0 {
		return err
	}
	series, err := merged.Decode(data)
	if err != nil {
		return nil //nolint:nilerr // a record that cannot be decoded is no result, now or later
	}
	s.Test.Status.Results = &v1alpha1.ResultsReference{
		ConfigMap: children.ResultsName(s.Test.Name),
		Interval:  v1alpha1.DurationOf(series.Step),
		Note:      digest.Truncate(strings.Join(series.Notes, " "), 1024),
	}
	return nil
}

// storeResult stores the result of the run, of which the status is a digest. It comes before the
// status that ends the run: a process that dies in between does it again.
func storeResult(
	ctx context.Context, s *scope.Test, store resultsStore,
	d lifecycle.Decision[lifecycle.LoadTestAction], o state.Outcome,
) error {
	if s.Result == nil || s.Seen.Restored != "" {
		return nil
	}
	if o.Failed {
		s.Result.Outcome, s.Result.Message = result.Failed, d.Message
	}
	for i := range s.Test.Status.Servers { // what the controller alone knows
		s.Result.Servers[i].Pod = s.Test.Status.Servers[i].Pod
	}
	if t := s.Test.Status.Target; t != nil {
		s.Result.Target.Topology, s.Result.Target.Server, s.Result.Target.Version = string(t.Topology),
			t.Server, t.Version
	}
	return store.saveResult(ctx, s.Result)
}

// emitEvents emits an event if the condition Complete has changed.
func (r *Reconciler) emitEvents(s *scope.Test) {
	c := state.Changed(s.Before.Status.Conditions, s.Test.Status.Conditions,
		v1alpha1.ConditionComplete)
	if c == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if meta.IsStatusConditionTrue(s.Test.Status.Conditions, v1alpha1.ConditionFailed) ||
		s.Seen.Problem != nil {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(s.Test, nil, kind, c.Reason, "Reconcile", "%s", digest.Truncate(c.Message, 1000))
}
