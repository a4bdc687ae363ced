//go:build integration

package operator

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// The annotation of a fault's namespace or of the operator's reverts an active fault at once and prevents others.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, whose := range []string{"the fault's namespace", "the operator's namespace"} {
		t.Run(whose, func(t *testing.T) {
			t.Parallel()
			p := operatortest.NewPlace(t)
			stopped, value := p.Namespace, "yes"
			if whose == "the operator's namespace" {
				stopped, value = p.Home(), "True"
				p.MustChange(p.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stopped}}))
			}
			redis := operatortest.StartRedis(p)
			operatortest.StartKubelet(p, nil)
			operatortest.StartOperator(p, operatortest.Spy{})
			p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load.Duration = operatortest.Length(
					time.Hour)
			}))
			p.Create(operatortest.HzFault(nil))
			p.Create(operatortest.NewFault("later", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger.After = operatortest.Length(
					time.Hour)
			}))
			p.FaultHasReason("break", time.Minute, v1alpha1.ReasonActive)
			p.FaultHasReason("later", time.Minute, v1alpha1.ReasonWaitingForTime)
			if got := redis.Hz(""); got != "50" {
				t.Fatalf("hz is %s while the fault is active", got)
			}
			p.Annotate(stopped, v1alpha1.AnnotationStop, value)
			p.Until("the fault is reverted", time.Minute, func() bool { return redis.Hz("") == "10" }, func() string {
				return redis.Hz("")
			})
			for _, name := range []string{"break", "later"} {
				f := p.FaultEnds(name, time.Minute)
				if got := operatortest.KstatusOf(t, f); got != status.CurrentStatus ||
					operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonStopped {
					t.Errorf("%s is %s to kstatus, %s", name, got, operatortest.Where(f.Status.Conditions))
				}
				if !strings.Contains(operatortest.Where(f.Status.Conditions), v1alpha1.AnnotationStop+" of namespace "+stopped) {
					t.Errorf("%s does not name the namespace that stopped it: %s", name, operatortest.Where(f.Status.Conditions))
				}
			}
			if f := p.Fault("break"); f.Status.RevertedAt == nil || !slices.Contains(operatortest.TimelineOf(f), "Reverted") {
				t.Errorf("reverted at %v, timeline %v", f.Status.RevertedAt, operatortest.TimelineOf(f))
			}
			p.Create(operatortest.NewFault("new", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger.After = operatortest.Length(
					0)
			}))
			if f := p.FaultEnds("new", time.Minute); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonStopped ||
				len(f.Status.Targets) != 0 {
				t.Errorf("a fault that comes while all are stopped: %s", operatortest.Where(f.Status.Conditions))
			}
			p.Annotate(stopped, v1alpha1.AnnotationStop, "")
			p.Create(operatortest.NewFault("after", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger.After = operatortest.Length(
					0)
			}))
			p.FaultHasReason("after", time.Minute, v1alpha1.ReasonObserving)
		})
	}
}

// A fault that would end every copy of the data is rejected unless the spec allows it explicitly.
func TestBlastRadius(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	fleet := stage.StartFleet(p, 2, nil)
	operatortest.StartKubelet(p, nil)
	operatortest.StartOperator(p, operatortest.Spy{})
	p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target, test.Spec.Load.Duration = stage.RedisPods(fleet.Address(0)), operatortest.Length(time.Hour)
	}))
	all := func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After = operatortest.Length(0)
		f.Spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
	}
	p.Create(operatortest.NewFault("refused", "run", v1alpha1.FaultPodKill, all))
	f := p.FaultEnds("refused", time.Minute)
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Reason != v1alpha1.ReasonBlastRadius || !strings.Contains(c.Message, "redis-0, redis-1") ||
		!strings.Contains(c.Message, string(v1alpha1.AllowAllCopies)) {
		t.Errorf("Failed is %+v, want BlastRadius with pods and allowance", c)
	}
	if len(f.Status.Targets) != 0 || fleet.ServersStopped() != 0 {
		t.Errorf("targets %+v, %d servers ended", f.Status.Targets, fleet.ServersStopped())
	}
	p.Create(operatortest.NewFault("emptied", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.Allow = operatortest.Length(0), nil
	}))
	if c := meta.FindStatusCondition(p.FaultEnds("emptied", time.Minute).Status.Conditions,
		v1alpha1.ConditionFailed); c == nil ||
		!strings.Contains(c.Message, "the primary of 1 other copies, which comes back without data") ||
		fleet.ServersStopped() != 0 {
		t.Errorf("Failed is %+v, want BlastRadius, as the primary writes nothing to its disk", c)
	}
	p.Create(operatortest.NewFault("allowed", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		all(f)
		f.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowAllCopies, v1alpha1.AllowDataLoss}
	}))
	if f := p.FaultHasReason("allowed", time.Minute, v1alpha1.ReasonObserving); len(f.Status.Targets) != 2 {
		t.Errorf("targets %+v", f.Status.Targets)
	}
	p.Until("both servers end", time.Minute, func() bool { return fleet.ServersStopped() == 2 }, func() string {
		return ""
	})
}

// Two faults that ask at once would mute both copies of the data: one goes first, and the other one waits for it.
func TestTwoFaultsAtOnce(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	fleet := stage.StartFleet(p, 2, nil)
	operatortest.StartKubelet(p, nil)
	var waited atomic.Bool
	operatortest.StartOperator(p, operatortest.Spy{After: func(w operatortest.Write) {
		if f, is := w.Object.(*v1alpha1.RedisFault); is && f.Status.Waiting != nil &&
			f.Status.Waiting.Guard == v1alpha1.AllowAllCopies {
			waited.Store(true)
		}
	}})
	names := []string{"first", "second"}
	for _, name := range names {
		p.Create(operatortest.NewLoadTest(name, "", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target, test.Spec.Load.Duration = stage.RedisPods(fleet.Address(0)), operatortest.Length(time.Hour)
		}))
	}
	for _, name := range names {
		p.TestHasReason(name, 5*time.Minute, v1alpha1.ReasonRunning)
	}
	for i, name := range names {
		p.Create(operatortest.NewFault(name, name, v1alpha1.FaultClientPause, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After, f.Spec.Duration = operatortest.Length(0), operatortest.Length(20*time.Second)
			f.Spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Names: []string{[]string{"redis-0", "redis-1"}[i]}}
		}))
	}
	var spans [][2]time.Time
	for _, name := range names {
		f := p.FaultEnds(name, 5*time.Minute)
		if f.Status.InjectedAt == nil || f.Status.RevertedAt == nil || len(f.Status.Targets) != 1 ||
			len(f.Status.Targets[0].Copies) != 1 {
			t.Fatalf("%s: %s, %+v", name, operatortest.Where(f.Status.Conditions), f.Status.Targets)
		}
		spans = append(spans, [2]time.Time{f.Status.InjectedAt.Time, f.Status.RevertedAt.Time})
	}
	if !waited.Load() {
		t.Errorf("none has waited for the other: %v", spans)
	}
	if spans[0][0].Before(spans[1][1]) && spans[1][0].Before(spans[0][1]) {
		t.Errorf("both copies were mute at a time: %v", spans)
	}
}
