//go:build integration

package controllers

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
)

// The annotation of a fault's namespace or of the operator's reverts an active fault at once and prevents others.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, whose := range []string{"the fault's namespace", "the operator's namespace"} {
		t.Run(whose, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			stopped, value := p.namespace, "yes"
			if whose == "the operator's namespace" {
				stopped, value = p.home(), "True"
				p.mustChange(p.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stopped}}))
			}
			redis := startRedis(p)
			startKubelet(p, nil)
			startOperator(p, spy{})
			p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load.Duration = length(
					time.Hour)
			}))
			p.create(hzFault(nil))
			p.create(newFault("later", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger.After = length(
					time.Hour)
			}))
			p.faultHasReason("break", time.Minute, v1alpha1.ReasonActive)
			p.faultHasReason("later", time.Minute, v1alpha1.ReasonWaitingForTime)
			if got := redis.hz(""); got != "50" {
				t.Fatalf("hz is %s while the fault is active", got)
			}
			p.annotate(stopped, v1alpha1.AnnotationStop, value)
			p.until("the fault is reverted", time.Minute, func() bool { return redis.hz("") == "10" }, func() string {
				return redis.hz("")
			})
			for _, name := range []string{"break", "later"} {
				f := p.faultEnds(name, time.Minute)
				if got := kstatusOf(t, f); got != status.CurrentStatus || reason(f.Status.Conditions) != v1alpha1.ReasonStopped {
					t.Errorf("%s is %s to kstatus, %s", name, got, where(f.Status.Conditions))
				}
				if !strings.Contains(where(f.Status.Conditions), v1alpha1.AnnotationStop+" of namespace "+stopped) {
					t.Errorf("%s does not name the namespace that stopped it: %s", name, where(f.Status.Conditions))
				}
			}
			if f := p.fault("break"); f.Status.RevertedAt == nil || !slices.Contains(timelineOf(f), "Reverted") {
				t.Errorf("reverted at %v, timeline %v", f.Status.RevertedAt, timelineOf(f))
			}
			p.create(newFault("new", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger.After = length(
					0)
			}))
			if f := p.faultEnds("new", time.Minute); reason(f.Status.Conditions) != v1alpha1.ReasonStopped ||
				len(f.Status.Targets) != 0 {
				t.Errorf("a fault that comes while all are stopped: %s", where(f.Status.Conditions))
			}
			p.annotate(stopped, v1alpha1.AnnotationStop, "")
			p.create(newFault("after", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger.After = length(
					0)
			}))
			p.faultHasReason("after", time.Minute, v1alpha1.ReasonObserving)
		})
	}
}

// A fault that would end every copy of the data is rejected unless the spec allows it explicitly.
func TestBlastRadius(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	fleet := startFleet(p, 2, nil)
	startKubelet(p, nil)
	startOperator(p, spy{})
	p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target, test.Spec.Load.Duration = redisPods(fleet.address(0)), length(time.Hour)
	}))
	all := func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After = length(0)
		f.Spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
	}
	p.create(newFault("refused", "run", v1alpha1.FaultPodKill, all))
	f := p.faultEnds("refused", time.Minute)
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Reason != v1alpha1.ReasonBlastRadius || !strings.Contains(c.Message, "redis-0, redis-1") ||
		!strings.Contains(c.Message, string(v1alpha1.AllowAllCopies)) {
		t.Errorf("Failed is %+v, want BlastRadius with pods and allowance", c)
	}
	if len(f.Status.Targets) != 0 || fleet.serversStopped() != 0 {
		t.Errorf("targets %+v, %d servers ended", f.Status.Targets, fleet.serversStopped())
	}
	p.create(newFault("emptied", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.Allow = length(0), nil
	}))
	if c := meta.FindStatusCondition(p.faultEnds("emptied", time.Minute).Status.Conditions,
		v1alpha1.ConditionFailed); c == nil ||
		!strings.Contains(c.Message, "the primary of 1 other copies, which comes back without data") ||
		fleet.serversStopped() != 0 {
		t.Errorf("Failed is %+v, want BlastRadius, as the primary writes nothing to its disk", c)
	}
	p.create(newFault("allowed", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		all(f)
		f.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowAllCopies, v1alpha1.AllowDataLoss}
	}))
	if f := p.faultHasReason("allowed", time.Minute, v1alpha1.ReasonObserving); len(f.Status.Targets) != 2 {
		t.Errorf("targets %+v", f.Status.Targets)
	}
	p.until("both servers end", time.Minute, func() bool { return fleet.serversStopped() == 2 }, func() string {
		return ""
	})
}

// Two faults that ask at once would mute both copies of the data: one goes first, and the other one waits for it.
func TestTwoFaultsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	fleet := startFleet(p, 2, nil)
	startKubelet(p, nil)
	var waited atomic.Bool
	startOperator(p, spy{After: func(w write) {
		if f, is := w.Object.(*v1alpha1.RedisFault); is && f.Status.Waiting != nil &&
			f.Status.Waiting.Guard == v1alpha1.AllowAllCopies {
			waited.Store(true)
		}
	}})
	names := []string{"first", "second"}
	for _, name := range names {
		p.create(newLoadTest(name, "", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target, test.Spec.Load.Duration = redisPods(fleet.address(0)), length(time.Hour)
		}))
	}
	for _, name := range names {
		p.testHasReason(name, 5*time.Minute, v1alpha1.ReasonRunning)
	}
	for i, name := range names {
		p.create(newFault(name, name, v1alpha1.FaultClientPause, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After, f.Spec.Duration = length(0), length(20*time.Second)
			f.Spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Names: []string{[]string{"redis-0", "redis-1"}[i]}}
		}))
	}
	var spans [][2]time.Time
	for _, name := range names {
		f := p.faultEnds(name, 5*time.Minute)
		if f.Status.InjectedAt == nil || f.Status.RevertedAt == nil || len(f.Status.Targets) != 1 ||
			len(f.Status.Targets[0].Copies) != 1 {
			t.Fatalf("%s: %s, %+v", name, where(f.Status.Conditions), f.Status.Targets)
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
