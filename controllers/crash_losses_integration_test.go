//go:build integration

package controllers

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/cluster"

	faults "github.com/redquake/redquake/internal/fault"
)

// atMostLate is how long after its end a fault must be reverted, whatever its operator has lost.
const atMostLate = 2 * time.Second

// apiStopped is the loss in which only faults by Redis alone are injected.
const apiStopped = "API server stopped"

// stoppedFor is how long after the end of the faults the API server stays stopped.
const stoppedFor = 30 * time.Second

// lossStage is a stage whose operator loses something just before it injects a fault.
type lossStage struct {
	*crashStage
	kind  crashKind
	lasts time.Duration // 0 = the fault leaves nothing to revert

	mu       sync.Mutex
	broken   time.Time // when Redis began to differ from before
	restored time.Time // when it did not any more
}

// byRedisAlone are the faults that need no API server. They are injected while it is stopped.
var byRedisAlone = []v1alpha1.FaultType{v1alpha1.FaultConfig, v1alpha1.FaultClientPause, v1alpha1.FaultHang}

// The operator of each kind of fault loses the API server, or the leadership, just before it injects; or two operators act at once. Redis is restored
// on time, and the cluster as soon as it can be.
func TestLosses(t *testing.T) {
	out := os.Getenv(crashOut)
	if out == "" {
		t.Skip("make crash-test runs this: it stops an API server for half a minute")
	}
	t.Cleanup(func() { storeCrashes(t, out) })
	t.Run(apiStopped, func(t *testing.T) {
		env, err := cluster.StartControlPlane()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := env.Stop(); err != nil {
				t.Error(err)
			}
		})
		to, err := client.NewWithWatch(env.Config, client.Options{Scheme: NewScheme()})
		if err != nil {
			t.Fatal(err)
		}
		server := pidOfAPIServer(t, env.Config)
		kinds := slices.Concat(nativeKinds, clusterKinds)
		for i := range kinds {
			kinds[i].on = func(t *testing.T) *place { return newPlaceOn(t, env.Config, to) }
		}
		inBatches(t, kinds, func(t *testing.T, kinds []crashKind) {
			stages := raiseForLoss(t, kinds, orders{})
			signal(t, server, syscall.SIGSTOP)
			wake := sync.OnceFunc(func() { _ = syscall.Kill(server, syscall.SIGCONT) })
			t.Cleanup(wake)
			resume(stages)
			watchRedis(stages, stoppedFor+10*time.Second)
			for _, s := range stages {
				if slices.Contains(byRedisAlone, s.kind.fault) && s.brokenAt().IsZero() {
					t.Errorf("%s was not injected while the API server was stopped", s.kind.name)
				}
			}
			wake()
			concludeLosses(stages, apiStopped)
		})
	})
	t.Run("leadership lost", func(t *testing.T) {
		inBatches(t, crashKinds, func(t *testing.T, kinds []crashKind) {
			stages := raiseForLoss(t, kinds, orders{Lease: true})
			resume(stages)
			for _, s := range stages {
				s.stealLease()
			}
			watchRedis(stages, 15*time.Second)
			for _, s := range stages {
				s.mustChange(s.client.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: leaseName}}))
				if s.operator.hasEnded() { // it had nothing to revert: its Deployment starts it again
					s.operator = startProcess(s.place)
				}
			}
			concludeLosses(stages, "leadership lost")
		})
	})
	t.Run("two operators at once", func(t *testing.T) {
		inBatches(t, crashKinds, func(t *testing.T, kinds []crashKind) {
			stages := raiseForLoss(t, kinds, orders{})
			for _, s := range stages {
				startProcess(s.place)
			}
			resume(stages)
			watchRedis(stages, 15*time.Second)
			concludeLosses(stages, "two operators at once")
		})
	})
}

// inBatches runs a few kinds at a time: each stage has servers and operators of its own, and together they must not be the reason for being late.
func inBatches(t *testing.T, kinds []crashKind, test func(t *testing.T, kinds []crashKind)) {
	t.Helper()
	for batch := range slices.Chunk(kinds, 6) {
		var names []string
		for _, kind := range batch {
			names = append(names, kind.name)
		}
		t.Run(strings.Join(names, "; "), func(t *testing.T) { test(t, batch) })
	}
}

// raiseForLoss starts a stage for each kind, and brings its fault to just before its injection.
func raiseForLoss(t *testing.T, kinds []crashKind, order orders) []*lossStage {
	t.Helper()
	var stages []*lossStage
	for _, kind := range kinds {
		s := &lossStage{crashStage: kind.raiseWith(t, order), kind: kind}
		s.operator.rearm(orders{Pause: true})
		stages = append(stages, s)
	}
	for _, s := range stages { // at once: a call that pauses for longer than its timeout fails
		f := newFault("fault", "run", s.kind.fault, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After, f.Spec.RecoveryDeadline = length(0), *length(time.Second)
			s.kind.spec(s.place, &f.Spec)
			if f.Spec.Duration != nil { // longer than it takes to lose the leadership
				f.Spec.Duration = length(6 * time.Second)
			}
		})
		if injector, err := faults.For(&f.Spec, contract.Deps{}); err == nil {
			s.lasts = injector.Traits().Lasts
		}
		s.create(f)
	}
	for _, s := range stages {
		if !s.within(time.Minute, func() bool { return slices.Contains(s.operator.calls(), paused) }) {
			t.Fatalf("%s: the operator injects nothing: %s", s.kind.name, where(s.fault("fault").Status.Conditions))
		}
	}
	return stages
}

// resume lets the operators inject.
func resume(stages []*lossStage) {
	for _, s := range stages {
		s.operator.send(orders{Resume: true})
	}
}

// watchRedis observes the servers until the faults have ended, and for some time longer.
func watchRedis(stages []*lossStage, atLeast time.Duration) {
	var watching sync.WaitGroup
	until := time.Now().Add(atLeast)
	for _, s := range stages {
		watching.Go(func() {
			for time.Now().Before(until) {
				s.look()
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	watching.Wait()
}

// look compares the servers with those from before. Where that needs the API server there is nothing to compare.
func (s *lossStage) look() {
	if s.redisShows == nil {
		return
	}
	begun := time.Now() // a server that is paused answers when the pause is over, or not within a second
	differs := differences(s.redisBefore, s.redisShows())
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(differs) > 0 && s.broken.IsZero():
		s.broken = begun
	case len(differs) > 0:
		s.restored = time.Time{}
	case !s.broken.IsZero() && s.restored.IsZero():
		s.restored = time.Now()
	}
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
	t := s.t
	t.Helper()
	if !s.within(2*time.Minute, func() bool { return s.pushOn("fault") }) {
		t.Errorf("%s, %s: not over: %s", s.kind.name, loss, where(s.fault("fault").Status.Conditions))
	}
	f := s.fault("fault")
	var differs []string
	reverted := s.within(30*time.Second, func() bool {
		differs = differences(s.before, s.shows())
		return len(differs) == 0
	})
	orphans := s.orphansOf(f)
	if !reverted || len(orphans) > 0 {
		t.Errorf("%s, %s: left behind: %s %s", s.kind.name, loss, strings.Join(differs, "; "), strings.Join(orphans, "; "))
	}
	t.Logf("%s, %s: %s, reverting since %v, overstayed %v; broken %s, restored %s", s.kind.name, loss, where(f.Status.Conditions), f.Status.RevertingSince, f.Status.Overstayed,
		s.broken.Format(time.StampMilli), s.restored.Format(time.StampMilli))
	if f.Status.InjectedAt == nil && (loss != apiStopped || slices.Contains(byRedisAlone, s.kind.fault)) {
		t.Errorf("%s, %s: not injected", s.kind.name, loss)
	}
	row := crashRow{Fault: s.kind.name, Point: loss, Reverted: reverted, Orphans: len(orphans)}
	if late, lasted := s.late(f); lasted {
		row.Late = &late
		if late > atMostLate.Seconds() {
			t.Errorf("%s, %s: reverted %.1f s late", s.kind.name, loss, late)
		}
	}
	addCrash(row)
	s.mustChange(s.client.Delete(context.Background(), f))
	if !s.within(time.Minute, func() bool { return !s.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "fault"}}) }) {
		t.Errorf("%s, %s: the fault cannot be deleted", s.kind.name, loss)
	}
}

// late is how many seconds after its end a fault that lasts was reverted: as seen at the servers, else the begin of the revert in the status.
func (s *lossStage) late(f *v1alpha1.RedisFault) (seconds float64, lasted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lasts == 0:
		return 0, false
	case !s.broken.IsZero() && !s.restored.IsZero():
		return (s.restored.Sub(s.broken) - s.lasts).Seconds(), true
	case f.Status.RevertingSince != nil && len(f.Status.Targets) > 0 && f.Status.Targets[0].ActiveAt != nil:
		return (f.Status.RevertingSince.Sub(f.Status.Targets[0].ActiveAt.Time) - s.lasts).Seconds(), true
	}
	return 0, false
}

// stealLease makes another one the leader, and keeps it so.
func (s *lossStage) stealLease() {
	s.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}}
	s.mustChange(change(s.place, lease, func(l *coordinationv1.Lease) {
		now := metav1.NowMicro()
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = new("another"), new(int32(3600)), &now
	}))
}

func signal(t *testing.T, pid int, which syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, which); err != nil {
		t.Fatalf("signal %s to process %d: %v", which, pid, err)
	}
}

// pidOfAPIServer finds the kube-apiserver that this test has started, by its port.
func pidOfAPIServer(t *testing.T, config *rest.Config) int {
	t.Helper()
	host := config.Host
	if parsed, err := url.Parse(host); err == nil && parsed.Host != "" {
		host = parsed.Host
	}
	_, port, _ := strings.Cut(host, ":")
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		words, _ := os.ReadFile(line)
		if bytes.Contains(words, []byte("kube-apiserver")) && bytes.Contains(words, []byte("--secure-port="+port)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(line)))
			return pid
		}
	}
	t.Fatal(fmt.Errorf("no kube-apiserver with port %s", port))
	return 0
}
