package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/target"
)

// scope is everything that one reconcile knows of a fault. It is filled once, before anything is decided.
type scope struct {
	fault     *v1alpha1.RedisFault    // as read; its status is what will be written
	before    *v1alpha1.RedisFault    // as read, untouched
	test      *v1alpha1.RedisLoadTest // the load that measures it; nil when missing
	run       *runs.Run               // of test; nil when this process does not collect it
	target    *v1alpha1.RedisTarget   // the fault's own, else the recorded one, else the test's; nil when none is known
	deps      contract.Deps           // what an injection acts on; its Spec is nil when no target is known
	injector  contract.Injector       // fault.Unknown where this version does not know the type
	traits    contract.Traits         // of injector
	underWay  string                  // another fault that is recorded on the same load and not over
	quietFrom time.Duration           // from here on, counted from the load's start, the record can be a baseline; 0 before the start
	measured  *result.Fault           // nil before the injection, or when the record is out of reach
	losses    *result.Losses          // nil while they are not known
	recordEnd time.Duration           // end of the record, from the load's start
	pods      []corev1.Pod            // the target's pods, replaced ones included; only where podsRead
	podsRead  bool                    // pods is what there is; never in the reconcile that injects
	podsAt    time.Time               // when they were
	seen      lifecycle.Fault
}

func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	f := &v1alpha1.RedisFault{}
	if err := r.Client.Get(ctx, key, f); err != nil {
		return nil, err
	}
	s := &scope{fault: f, before: f.DeepCopy()}
	s.seen = lifecycle.Fault{
		Deleting: f.DeletionTimestamp != nil, Finalizer: controllerutil.ContainsFinalizer(f, v1alpha1.FinalizerFault),
		Suspend: f.Spec.Suspend, Abort: f.Spec.Abort, TTL: state.TTL(f.Spec.TTLSecondsAfterFinished),
		Finished: state.IsFinished(f.Status.Conditions), CreatedAt: f.CreationTimestamp.Time,
		OwnLoad: f.Spec.LoadTestRef == nil, LoadName: loadTestName(f), Deadline: deadlineOf(f),
		Confirmed: f.Status.Effect == v1alpha1.EffectConfirmed, LastCalled: r.lastCalled(&scope{fault: f}),
	}
	if f.Status.CompletionTime != nil {
		s.seen.CompletedAt = f.Status.CompletionTime.Time
	}
	if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionTargetsSelected); c != nil && c.Status == metav1.ConditionFalse {
		s.seen.Trouble = &problem.Problem{Reason: c.Reason, Message: c.Message}
		s.seen.TroubleSince = c.LastTransitionTime.Time
	}
	if f.Status.SettledTime != nil {
		s.seen.SettledAt = f.Status.SettledTime.Time
	}
	observeRecords(s)
	if s.seen.Finished {
		return s, nil
	}
	if err := r.observeStop(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeLoad(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeTarget(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeQuiet(ctx, s); err != nil {
		return nil, err
	}
	r.observeTrigger(s)
	r.observeStale(ctx, s)
	r.observeImpact(ctx, s)
	return s, nil
}

// observeRecords reads back what was stored of the targets.
func observeRecords(s *scope) {
	status := &s.fault.Status
	s.seen.Recorded = status.StartTime != nil && len(status.Targets) > 0
	if !s.seen.Recorded {
		return
	}
	s.seen.RecordedAt = status.StartTime.Time
	s.seen.InjectedAll, s.seen.RevertedAll = true, true
	for i := range status.Targets {
		t := &status.Targets[i]
		s.seen.Progress = cmp.Or(s.seen.Progress, t.Progress)
		observeInjection(&s.seen, t)
		if t.RevertedAt == nil && !t.RevertAbandoned {
			s.seen.RevertedAll = false
			s.seen.Pending = append(s.seen.Pending, lifecycle.Pending{Pod: t.Pod, Attempts: int(t.RevertAttempts)})
		}
	}
	s.seen.RevertFailed = abandonedReverts(status.Targets)
	if status.InjectedAt != nil {
		s.seen.InjectedAt = status.InjectedAt.Time
	}
	if since := status.RevertingSince; since != nil {
		s.seen.Reverting, s.seen.RevertSince = true, since.Time
		if gone := s.fault.DeletionTimestamp; gone != nil && gone.After(since.Time) {
			s.seen.RevertSince = gone.Time
		}
	}
}

func observeInjection(seen *lifecycle.Fault, t *v1alpha1.FaultTarget) {
	complete := t.InjectedAt != nil && t.ActiveAt != nil
	seen.InjectedAny = seen.InjectedAny || t.InjectedAt != nil
	seen.InjectedAll = seen.InjectedAll && complete
	seen.Attempted = seen.Attempted || t.Attempts > 0 || t.InjectedAt != nil
	if !complete && t.LastError != "" {
		seen.InjectionErr = "pod " + t.Pod + ": " + t.LastError
	}
	if complete && t.ActiveAt.After(seen.ActiveAt) {
		seen.ActiveAt = t.ActiveAt.Time
	}
}

// abandonedReverts says what could not be reverted, and how to do it manually.
func abandonedReverts(targets []v1alpha1.FaultTarget) string {
	var failures []string
	for _, t := range targets {
		if t.RevertAbandoned {
			failures = append(failures, fmt.Sprintf("pod %s: %s; to revert manually: %s", t.Pod, t.LastError, t.ManualRevertCommand))
		}
	}
	return strings.Join(failures, "; ")
}

// observeStale asks of a record that has become old, and that nothing is known to have been done by, whether a target is broken all the same: by a
// process that died before it could say so.
func (r *Reconciler) observeStale(ctx context.Context, s *scope) {
	s.seen.Collected = s.test != nil && s.run != nil
	s.seen.Taken = r.Runs.Taken(s.run, s.fault.UID, r.Clock.Now())
	if !s.seen.Recorded || s.seen.Attempted || s.seen.Reverting || r.Clock.Since(s.seen.RecordedAt) <= lifecycle.StaleRecord {
		return
	}
	for i := range s.fault.Status.Targets {
		begun, err := s.injector.Begun(ctx, &s.fault.Status.Targets[i])
		s.seen.Begun = s.seen.Begun || begun || err != nil
	}
}

// observeLoad says where the load stands.
func (r *Reconciler) observeLoad(ctx context.Context, s *scope) error {
	test, without, err := r.findLoad(ctx, s)
	if err != nil {
		return err
	}
	if test == nil {
		s.seen.Load = without
		return nil
	}
	s.test, s.run = test, r.Runs.Find(test.UID)
	complete := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionComplete)
	if complete != nil {
		s.seen.LoadMessage = complete.Reason
	}
	switch {
	case test.Spec.Load.Search != nil:
		s.seen.Load = lifecycle.LoadPending
		s.seen.Problem = &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Lasting: true,
			Message: fmt.Sprintf("spec.loadTestRef.name: RedisLoadTest %s searches for a rate: its throughput is never steady, so that no fault can be measured by it", test.Name)}
	case meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionFailed):
		s.seen.Load = lifecycle.LoadFailed
		s.seen.LoadMessage = meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionFailed).Message
	case complete != nil && complete.Status == metav1.ConditionTrue:
		s.seen.Load = lifecycle.LoadEnded
	case test.Status.StartTime == nil || s.run == nil || !s.run.Begun():
		s.seen.Load = lifecycle.LoadPending
	default:
		r.observeBegunLoad(s)
	}
	return nil
}

// findLoad reads the load test that measures the fault. Without one the test is nil, and the state says why.
func (r *Reconciler) findLoad(ctx context.Context, s *scope) (*v1alpha1.RedisLoadTest, lifecycle.LoadState, error) {
	test := &v1alpha1.RedisLoadTest{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.fault.Namespace, Name: s.seen.LoadName}, test)
	if apierrors.IsNotFound(err) || (err == nil && test.DeletionTimestamp != nil) {
		return nil, lifecycle.LoadMissing, nil
	}
	if err != nil {
		return nil, "", err
	}
	if s.seen.OwnLoad && !metav1.IsControlledBy(test, s.fault) {
		return nil, lifecycle.LoadForeign, nil
	}
	if began := s.fault.Status.LoadStartTime; s.seen.Recorded && began != nil && !began.Equal(test.Status.StartTime) {
		return nil, lifecycle.LoadMissing, nil // the run that measured is over: this is another of the same name
	}
	return test, "", nil
}

func (r *Reconciler) observeBegunLoad(s *scope) {
	s.seen.LoadStart = s.test.Status.StartTime.Time
	s.seen.WarmUntil = s.seen.LoadStart.Add(measuredFrom(s.test))
	s.seen.Load = lifecycle.LoadRunning
	if s.run.Finished() {
		s.seen.Load = lifecycle.LoadEnded
	} else if r.Clock.Now().Before(s.seen.WarmUntil) {
		s.seen.Load = lifecycle.LoadPending
	}
}

// observeTarget prepares what an injection acts on. Missing Secrets count only before the records are stored.
func (r *Reconciler) observeTarget(ctx context.Context, s *scope) error {
	s.deps = contract.Deps{
		Redis: target.Redis{Namespace: s.fault.Namespace, Live: r.Live, Servers: r.Servers},
		Owner: *metav1.NewControllerRef(s.fault, v1alpha1.GroupVersion.WithKind("RedisFault")), Cluster: r.Client, LoadTest: s.seen.LoadName,
	}
	s.target = s.fault.Spec.Target
	switch {
	case s.target != nil:
	case s.seen.Recorded && s.fault.Status.Target != nil: // the load test may be gone before the fault is reverted
		s.target = s.fault.Status.Target
	case s.test != nil:
		s.target = &s.test.Spec.Target
	}
	s.deps.Spec = s.target
	if s.target != nil {
		login, err := target.LoginFor(ctx, r.Client, s.fault.Namespace, s.target)
		if err := s.trouble(err); err != nil {
			return err
		}
		sentinels, err := target.SentinelsOf(ctx, r.Client, s.fault.Namespace, s.target, r.Servers)
		if err := s.trouble(err); err != nil {
			return err
		}
		s.deps.Login, s.deps.Sentinels = login, sentinels
	}
	injector, err := fault.For(&s.fault.Spec, s.deps)
	found, err := problem.From(err)
	if err != nil {
		return err
	}
	if found != nil {
		// A type that only another version of the operator knows. What that one recorded cannot be reverted here: say so, touch nothing.
		s.seen.Problem, injector = found, fault.Unknown{Problem: found}
	}
	s.injector, s.traits = injector, injector.Traits()
	s.seen.Lasts, s.seen.Takes = s.traits.Lasts, s.traits.Takes
	_, s.seen.Kept = injector.(contract.Keeper)
	return nil
}

// trouble keeps why something could not be read, if that is a Problem. Once a fault is recorded every reason is: nothing may keep it from being
// reverted, and what needs the missing thing fails by itself, in bounded time.
func (s *scope) trouble(err error) error {
	found, err := problem.From(err)
	if err != nil && s.seen.Recorded {
		found, err = &problem.Problem{Reason: v1alpha1.ReasonSecretNotFound, Message: err.Error()}, nil
	}
	if found != nil {
		s.seen.Problem = found
	}
	return err
}

// observeQuiet says where a baseline may begin: after warm-up, and after every earlier fault on the same load was over. The outage of
// one fault would make the next one's baseline unsteady.
func (r *Reconciler) observeQuiet(ctx context.Context, s *scope) error {
	if s.test == nil || s.test.Status.StartTime == nil {
		return nil
	}
	s.quietFrom = measuredFrom(s.test)
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.fault.Namespace)); err != nil {
		return err
	}
	s.observeLosses(all.Items)
	injected := s.fault.Status.InjectedAt
	for i := range all.Items {
		other := &all.Items[i].Status
		if all.Items[i].UID == s.fault.UID || other.LoadTest != s.test.Name || !other.LoadStartTime.Equal(s.test.Status.StartTime) {
			continue
		}
		over := overSince(other)
		if other.StartTime != nil && over == nil && all.Items[i].DeletionTimestamp == nil {
			s.underWay = all.Items[i].Name
		}
		if other.InjectedAt == nil || over == nil {
			continue
		}
		if injected == nil || over.Before(injected) {
			s.quietFrom = max(s.quietFrom, over.Sub(s.test.Status.StartTime.Time))
		}
	}
	s.seen.WarmUntil = s.test.Status.StartTime.Add(s.quietFrom) // the wait for steadiness begins there, too
	return nil
}

// observeTrigger says whether the moment has come.
func (r *Reconciler) observeTrigger(s *scope) {
	trigger := &s.fault.Spec.Trigger
	s.seen.SteadyFor, s.seen.SteadyWithin = v1alpha1.DefaultSteadyFor, trigger.Timeout.Duration
	if s.seen.SteadyWithin == 0 {
		s.seen.SteadyWithin = 5 * time.Minute
	}
	if trigger.After != nil {
		s.seen.After = &trigger.After.Duration
		return
	}
	if trigger.SteadyFor != nil {
		s.seen.SteadyFor = trigger.SteadyFor.Duration
	}
	if s.seen.Recorded || s.seen.Load != lifecycle.LoadRunning {
		return
	}
	if s.underWay != "" {
		s.seen.SteadyWhy = fmt.Sprintf("RedisFault %s is under way on the same load", s.underWay)
		return
	}
	s.run.Read(func(series *record.Series) {
		s.seen.Steady, s.seen.SteadyWhy = impact.Steady(series, s.seen.SteadyFor, s.quietFrom)
	})
}

// observeImpact measures what clients have lived through so far, and finds the pods that the timeline speaks of.
func (r *Reconciler) observeImpact(ctx context.Context, s *scope) {
	if s.fault.Status.InjectedAt == nil || s.fault.Status.SettledTime != nil {
		return
	}
	deadline := s.fault.Spec.RecoveryDeadline.Duration
	if deadline == 0 {
		deadline = 2 * time.Minute
	}
	if stays := s.stay(r.Clock.Now()); stays > 0 { // recovery begins when a lasting fault is reverted
		deadline += stays
	}
	s.seen.SettleWithin = deadline + sustainFor
	read := s.test != nil && s.run.Read(func(series *record.Series) {
		start := s.test.Status.StartTime.Time
		f := impact.Fault{At: s.fault.Status.InjectedAt.Sub(start), Deadline: deadline}
		seen := effectSeen(&s.fault.Status, s.traits)
		if !seen.IsZero() {
			f.SeenAt = seen.Sub(start)
		}
		options := impact.Options{MeasuredFrom: s.quietFrom}
		measured := impact.Analyze(series, f, options)
		s.measured, s.recordEnd = &result.Fault{Impact: measured}, series.End()
		s.seen.Settled = impact.Settled(series, f, options) && (!seen.IsZero() || series.Ended())
	})
	if read {
		s.doubtClocks()
	} else {
		// Waiting cannot bring the record back once the load is over; before that the session may only have to resume.
		s.seen.Settled = s.seen.Load == lifecycle.LoadEnded || s.seen.Load == lifecycle.LoadFailed
	}
	if s.target == nil {
		return
	}
	pods, err := target.Redis{Namespace: s.fault.Namespace, Live: r.Client, Spec: s.target}.AllPods(ctx)
	if err != nil { // a Service that was deleted meanwhile, or may not be read any more: nothing can be said of the pods
		return
	}
	s.pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !s.concerns(&p) })
	s.podsRead, s.podsAt = true, r.Clock.Now()
}

// stay is how long the fault was there from its injection, or will have been: 0 for one that leaves nothing.
func (s *scope) stay(now time.Time) time.Duration {
	status := &s.fault.Status
	switch {
	case s.traits.Lasts == 0 && !s.traits.RollsPods:
		return 0
	case status.RevertedAt != nil:
		return status.RevertedAt.Sub(status.InjectedAt.Time)
	case s.seen.InjectedAll:
		return max(s.seen.ActiveAt.Add(s.traits.Lasts).Sub(status.InjectedAt.Time), now.Sub(status.InjectedAt.Time))
	}
	return now.Sub(status.InjectedAt.Time) + s.traits.Lasts
}

// doubtClocks adds a doubt where the operator's clock is another than the one that t0 was noted by.
func (s *scope) doubtClocks() {
	for _, d := range state.ClockDoubts(s.run.ClockShift()) {
		s.measured.Doubt(d)
	}
}

// concerns says whether a pod is one that was hit, or was created since.
func (s *scope) concerns(pod *corev1.Pod) bool {
	if !pod.CreationTimestamp.Time.Before(s.fault.Status.InjectedAt.Time.Truncate(time.Second)) {
		return true
	}
	return slices.ContainsFunc(s.fault.Status.Targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == pod.Name })
}

// loadTestName is the load test that measures a fault.
func loadTestName(f *v1alpha1.RedisFault) string {
	if f.Spec.LoadTestRef != nil {
		return f.Spec.LoadTestRef.Name
	}
	return children.ProbeName(f.Name)
}

// measuredFrom is the end of a test's ramp-up and warm-up, from its start.
func measuredFrom(test *v1alpha1.RedisLoadTest) time.Duration {
	var d time.Duration
	for _, part := range []*metav1.Duration{test.Spec.Load.RampUp, test.Spec.Load.WarmUp} {
		if part != nil {
			d += part.Duration
		}
	}
	return d
}
