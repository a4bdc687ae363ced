//go:build integration

package crash

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	faults "github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/crashtest"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// atMostLate is how long after its end a fault must be reverted, whatever its operator has lost.
const atMostLate = 2 * time.Second

// apiStopped is the loss in which only faults by Redis alone are injected.
const apiStopped = "API server stopped"

// stoppedFor is how long after the end of the faults the API server stays stopped.
const stoppedFor = 30 * time.Second

// lossStage is a stage whose operator loses something just before it injects a fault.
type lossStage struct {
	*stage.Stage
	kind   stage.Kind
	lasts  time.Duration // 0 = the fault leaves nothing to revert
	gauge  stage.Gauge
	before map[string]string // result of gauge.shows before the fault

	mu       sync.Mutex
	broken   time.Time // when the gauge began to differ from before
	restored time.Time // when it did not any more
	looked   time.Time // the last look at it
}

// The operator of each kind of fault loses the API server, or the leadership, just before it injects; or two operators
// act at once. Redis is restored on time, and the cluster as soon as it can be.
func TestLosses(t *testing.T) {
	out := os.Getenv(crashOut)
	if out == "" {
		t.Skip("make crash-test runs this: it stops an API server for half a minute")
	}
	t.Cleanup(func() { storeCrashes(t, out) })
	t.Run(apiStopped, func(t *testing.T) {
		server, onIt := ownAPIServer(t)
		kinds := slices.Concat(stage.NativeKinds, stage.ClusterKinds)
		for i := range kinds {
			kinds[i].On = onIt
		}
		inBatches(t, kinds, func(t *testing.T, kinds []stage.Kind) {
			stages := raiseForLoss(t, kinds, crashtest.Orders{})
			wake := stage.Stop(t, server)
			resume(stages)
			observeWithoutAPI(stages, stoppedFor+10*time.Second)
			for _, s := range stages {
				if s.isByRedisAlone() && s.brokenAt().IsZero() {
					t.Errorf("%s was not injected while the API server was stopped", s.kind.Name)
				}
			}
			wake()
			concludeLosses(stages, apiStopped)
		})
	})
	t.Run("leadership lost", func(t *testing.T) {
		inBatches(t, stage.Kinds, func(t *testing.T, kinds []stage.Kind) {
			stages := raiseForLoss(t, kinds, crashtest.Orders{Lease: true})
			resume(stages)
			for _, s := range stages {
				s.stealLease()
			}
			observe(stages, 15*time.Second)
			for _, s := range stages {
				s.MustChange(s.Client.Delete(t.Context(), &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: operatortest.LeaseName},
				}))
				if s.Operator.HasEnded() { // it had nothing to revert: its Deployment starts it again
					s.Operator = crashtest.Start(s.Place)
				}
			}
			concludeLosses(stages, "leadership lost")
		})
	})
	t.Run("two operators at once", func(t *testing.T) {
		inBatches(t, stage.Kinds, func(t *testing.T, kinds []stage.Kind) {
			stages := raiseForLoss(t, kinds, crashtest.Orders{})
			for _, s := range stages {
				crashtest.Start(s.Place)
			}
			resume(stages)
			observe(stages, 15*time.Second)
			concludeLosses(stages, "two operators at once")
		})
	})
	testHalves(t)
}

// ownAPIServer starts an API server that can be stopped, and returns its process and the places on it.
func ownAPIServer(t *testing.T) (pid int, on func(*testing.T) *operatortest.Place) {
	t.Helper()
	env, on := stage.OwnControlPlane(t)
	return stage.PidOf(t, "kube-apiserver", "--secure-port="+stage.PortOf(env.Config.Host)), on
}

// inBatches runs a few kinds at a time: each stage has servers and operators of its own, and together they must not be
// the reason for being late.
func inBatches(t *testing.T, kinds []stage.Kind, test func(t *testing.T, kinds []stage.Kind)) {
	t.Helper()
	for batch := range slices.Chunk(kinds, 6) {
		var names []string
		for _, kind := range batch {
			names = append(names, kind.Name)
		}
		t.Run(strings.Join(names, "; "), func(t *testing.T) { test(t, batch) })
	}
}

// raiseForLoss starts a stage for each kind, and brings its fault to just before its injection.
func raiseForLoss(t *testing.T, kinds []stage.Kind, order crashtest.Orders) []*lossStage {
	t.Helper()
	var stages []*lossStage
	for _, kind := range kinds {
		stages = append(stages, raiseLossStage(t, kind, order, crashtest.Orders{Pause: true}))
	}
	for _, s := range stages { // at once: a call that pauses for longer than its timeout fails
		s.createFault()
	}
	awaitPauses(t, stages)
	return stages
}

// raiseLossStage starts a stage, and arms its operator.
func raiseLossStage(t *testing.T, kind stage.Kind, order, armed crashtest.Orders) *lossStage {
	t.Helper()
	s := &lossStage{Stage: kind.RaiseWith(t, order), kind: kind}
	s.gauge = stage.GaugeOf(s.Stage, kind)
	s.before = s.gauge.Shows()
	s.Operator.Rearm(armed)
	return s
}

func (s *lossStage) createFault() {
	f := operatortest.NewFault("fault", "run", s.kind.Fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = operatortest.Length(0), *operatortest.Length(time.Second)
		s.kind.Spec(s.Place, &f.Spec)
		if f.Spec.Duration != nil { // longer than it takes to lose the leadership
			f.Spec.Duration = operatortest.Length(6 * time.Second)
		}
	})
	if injector, err := faults.For(&f.Spec, contract.Deps{}); err == nil {
		s.lasts = injector.Traits().Lasts
	}
	s.Create(f)
}

// isByRedisAlone reports whether the fault is injected and seen without an API server: it changes nothing in
// Kubernetes, and is not over at once.
func (s *lossStage) isByRedisAlone() bool {
	return s.lasts > 0 && len(stage.OperationOf(s.kind).Grants) == 0
}

// awaitPauses waits until the operators pause.
func awaitPauses(t *testing.T, stages []*lossStage) {
	t.Helper()
	for _, s := range stages {
		if !s.Within(time.Minute, func() bool { return slices.Contains(s.Operator.Calls(), crashtest.Paused) }) {
			t.Fatalf("%s: the operator injects nothing: %s", s.kind.Name, operatortest.Where(s.Fault("fault").Status.Conditions))
		}
	}
}

// resume lets the operators inject.
func resume(stages []*lossStage) {
	for _, s := range stages {
		s.Operator.Send(crashtest.Orders{Resume: true})
	}
}

// observeWithoutAPI looks at those gauges that need no API server.
func observeWithoutAPI(stages []*lossStage, atLeast time.Duration) {
	until := time.Now().Add(atLeast)
	observe(slices.DeleteFunc(slices.Clone(stages), func(s *lossStage) bool { return s.gauge.AsksAPI }), atLeast)
	await.PassTo(until, "the length of the loss")
}

// observe looks at the gauges until the faults have ended, and for some time longer.
func observe(stages []*lossStage, atLeast time.Duration) {
	var watching sync.WaitGroup
	until := time.Now().Add(atLeast)
	for _, s := range stages {
		watching.Go(func() {
			for time.Now().Before(until) || s.isBroken() && time.Now().Before(until.Add(time.Minute)) {
				s.look()
				await.Pass(50*time.Millisecond, "the time between two looks of the measurement")
			}
		})
	}
	watching.Wait()
}

// look compares the gauge with that from before.
func (s *lossStage) look() {
	begun := time.Now()
	differs := stage.Differences(s.before, s.gauge.Shows())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = begun
	// a server that is paused answers when the pause is over, or not within this time
	if s.broken.IsZero() && time.Since(begun) > time.Second {
		s.broken = begun
	}
	switch {
	case len(differs) > 0 && s.broken.IsZero():
		s.broken = begun
	case len(differs) > 0:
		s.restored = time.Time{}
	case !s.broken.IsZero() && s.restored.IsZero():
		s.restored = time.Now()
	}
}

func (s *lossStage) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lasts > 0 && !s.broken.IsZero() && s.restored.IsZero()
}

func (s *lossStage) brokenAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// concludeLosses waits until all faults have finished, and adds a row for each.
func concludeLosses(stages []*lossStage, loss string) {
	for _, s := range stages {
		s.conclude(loss)
	}
}

func (s *lossStage) conclude(loss string) {
	t := s.T
	t.Helper()
	if !s.Within(2*time.Minute, func() bool { return s.PushOn("fault") }) {
		t.Errorf("%s, %s: not over: %s", s.kind.Name, loss, operatortest.Where(s.Fault("fault").Status.Conditions))
	}
	f := s.Fault("fault")
	var differs []string
	reverted := s.Within(30*time.Second, func() bool {
		differs = stage.Differences(s.Stage.Before, s.Shows())
		return len(differs) == 0
	})
	orphans := stage.OrphansOf(s.Stage.Place, f)
	if !reverted || len(orphans) > 0 {
		t.Errorf("%s, %s: left behind: %s %s", s.kind.Name, loss, strings.Join(differs, "; "), strings.Join(orphans, "; "))
	}
	t.Logf("%s, %s: %s, reverting since %v, overstayed %v; broken %s, restored %s", s.kind.Name, loss,
		operatortest.Where(f.Status.Conditions), f.Status.RevertingSince, f.Status.Overstayed,
		s.broken.Format(time.StampMilli), s.restored.Format(time.StampMilli))
	if f.Status.InjectedAt == nil && (loss != apiStopped || s.isByRedisAlone()) {
		t.Errorf("%s, %s: not injected", s.kind.Name, loss)
	}
	row := crashRow{Fault: s.kind.Name, Point: loss, Reverted: reverted, Orphans: len(orphans)}
	row.Measured, row.Late = s.late(f)
	switch {
	case row.Measured == stage.Unobserved:
		t.Errorf("%s, %s: it was injected, and %s does not show when it ended", s.kind.Name, loss, s.gauge.Name)
	case row.Late != nil && *row.Late > atMostLate.Seconds():
		t.Errorf("%s, %s: restored %.1f s late", s.kind.Name, loss, *row.Late)
	}
	addCrash(row)
	s.MustChange(s.Client.Delete(context.Background(), f))
	if !s.Within(time.Minute, func() bool {
		return !s.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "fault"}})
	}) {
		t.Errorf("%s, %s: the fault cannot be deleted", s.kind.Name, loss)
	}
}

// late is how many seconds after its end a fault was restored, and by what that was seen.
func (s *lossStage) late(f *v1alpha1.RedisFault) (measured string, seconds *float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f.Status.InjectedAt == nil:
		return stage.NotInjected, nil
	case s.lasts == 0:
		return stage.NothingToDo, nil
	case s.broken.IsZero() || s.restored.IsZero():
		if slices.ContainsFunc(f.Status.Targets, s.wasUnderWay) {
			return stage.NotComplete, nil
		}
		return stage.Unobserved, nil
	}
	return s.gauge.Name, new(s.restored.Sub(s.askedEnd(f)).Seconds())
}

// wasUnderWay reports whether an injection of several steps was not complete at the last look: the next leader has
// completed it since, or given it up.
func (s *lossStage) wasUnderWay(t v1alpha1.FaultTarget) bool {
	if t.ActiveAt == nil {
		return strings.HasPrefix(t.LastError, "not complete: ")
	}
	return s.gauge.Name == stage.ByStatefulSet && t.ActiveAt.After(s.looked) // of one step it would be late
}

// askedEnd is when a fault should end: its time runs from when it is complete on all targets. One that cannot be
// completed ends when the operator gives up.
func (s *lossStage) askedEnd(f *v1alpha1.RedisFault) time.Time {
	var complete time.Time
	for _, t := range f.Status.Targets {
		switch {
		case t.ActiveAt == nil:
			return f.Status.StartTime.Add(lifecycle.InjectPatience)
		case t.ActiveAt.After(complete):
			complete = t.ActiveAt.Time
		}
	}
	return complete.Add(s.lasts)
}

// stealLease makes another one the leader, and keeps it so.
func (s *lossStage) stealLease() {
	s.T.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: operatortest.LeaseName}}
	s.MustChange(operatortest.Change(s.Place, lease, func(l *coordinationv1.Lease) {
		now := metav1.NowMicro()
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = new("another"), new(int32(3600)), &now
	}))
}
