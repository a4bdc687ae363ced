//go:build integration

package failover

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestFailoverBySentinel(t *testing.T) { redistest.Each(t, testFailoverBySentinel) }

func testFailoverBySentinel(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewSentinel(t, 2, redistest.SentinelOptions{DownAfter: 20 * time.Second})
	// Only one address, as with a Service: the other sentinels are announced.
	s := newFailoverStage(t, fixture.Servers(), fixture.SentinelAddresses()[0])
	spec := failingOver(v1alpha1.FailoverAuto, v1alpha1.FailoverPlain)
	target := s.ready(spec, fixture.Primary)
	s.expectEffect(spec, target, v1alpha1.EffectNotObserved, "3 of 3 sentinels name "+fixture.Primary.Address())
	if begun, err := s.injector(spec).Begun(t.Context(), target); begun || err != nil {
		t.Errorf("begun before Inject: %t, %v", begun, err)
	}
	replicates(t, fixture.Primary, 2)
	writer := writeTo(t, fixture.Primary)
	t.Logf("complete after %s", s.inject(spec, target))
	now := fixture.CurrentPrimary()
	if now == fixture.Primary {
		t.Fatal("the sentinels name the old primary")
	}
	if begun, err := s.injector(spec).Begun(t.Context(), target); !begun || err != nil {
		t.Errorf("begun afterwards: %t, %v", begun, err)
	}
	s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "of 3 sentinels name "+now.Address(),
		"instead of "+fixture.Primary.Address(), "uncoordinated")
	// As a process that started late and has no state of the first.
	again := target.DeepCopy()
	again.InjectedAt = nil
	s.inject(spec, again)
	if n := s.servers.sent("SENTINEL FAILOVER"); len(n) != 1 {
		t.Errorf("sent %q", n)
	}
	s.expectRevert(spec, target)
	lost, acknowledged := writer.lostAt(t, now)
	t.Logf("%d of %d acknowledged writes are lost", lost, acknowledged)
	if lost == 0 {
		t.Error("no write was lost, but the effect is reported as uncoordinated")
	}
	fixture.WaitHealthy(now)
	seen := map[string]string{}
	var switched time.Time
	follower := s.injector(spec).(contract.Follower)
	for _, one := range follower.Follow(t.Context(), target) {
		seen[one.Event] = one.Object
		if one.Event == contract.EventSwitched {
			switched = one.At
		}
	}
	want := map[string]string{
		EventFailoverStarted:   "redis-0",
		contract.EventSwitched: "sentinels",
		contract.EventPromoted: s.pods[now.Address()],
		EventDemoted:           "redis-0",
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
	if switched.Before(target.InjectedAt.Time) || switched.After(time.Now()) {
		t.Errorf("switched at %s, %s after the injection", switched, switched.Sub(target.InjectedAt.Time))
	}
}

// With users that have only the rights of docs/faults/failover.md.
func TestCoordinatedFailoverBySentinel(t *testing.T) {
	redistest.Each(t, testCoordinatedFailoverBySentinel)
}

func testCoordinatedFailoverBySentinel(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewSentinel(t, 2, redistest.SentinelOptions{
		DownAfter: 20 * time.Second, SentinelUsers: []string{"watcher on >pw -@all +sentinel +acl|dryrun"},
		Options: ctl("+client|pause +client|unpause +replicaof +config|rewrite"),
	})
	s := newFailoverStage(t, fixture.Servers(), fixture.SentinelAddresses()...).asCtl()
	s.atSentinel.Username, s.atSentinel.Password = "watcher", "pw"
	s.master = redistest.MasterName
	spec := failingOver(v1alpha1.FailoverSentinel, v1alpha1.FailoverCoordinated)
	spec.Action.Failover.Timeout.Duration = time.Minute
	target := s.ready(spec, fixture.Primary)
	replicates(t, fixture.Primary, 2)
	writer := writeTo(t, fixture.Primary)
	t.Logf("complete after %s", s.inject(spec, target))
	now := fixture.CurrentPrimary()
	if now == fixture.Primary {
		t.Fatal("the sentinels name the old primary")
	}
	if role := fixture.Primary.Info("role"); role != "slave" {
		t.Errorf("the old primary is %s", role)
	}
	lost, acknowledged := writer.lostAt(t, now)
	if lost > 0 || acknowledged == 0 {
		t.Errorf("%d of %d acknowledged writes are lost", lost, acknowledged)
	}
	pauses, evidence := "[CLIENT PAUSE 16000 WRITE]", "coordinated: writes were paused until"
	if coordinates(t) {
		pauses, evidence = "[]", "coordinated by the sentinel"
	}
	if got := fmt.Sprint(s.servers.sent("CLIENT PAUSE")); got != pauses {
		t.Errorf("paused by %s, want %s: a pause must be shorter than the sentinels' down-after of 20 s", got, pauses)
	}
	s.expectEffect(spec, target, v1alpha1.EffectConfirmed, evidence)
	s.expectRevert(spec, target)
	fixture.WaitSettled(2)
	if fixture.CurrentPrimary() != now {
		t.Error("the sentinels failed over once more")
	}
}

// The majority decides while one sentinel hangs. TestFailoverAsksSentinelsWithinLimits tests that it causes no delay.
func TestFailoverWithAHangingSentinel(t *testing.T) {
	redistest.Each(t, testFailoverWithAHangingSentinel)
}

func testFailoverWithAHangingSentinel(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewSentinel(t, 1, redistest.SentinelOptions{DownAfter: 20 * time.Second})
	s := newFailoverStage(t, fixture.Servers(), fixture.SentinelAddresses()...)
	spec := failingOver(v1alpha1.FailoverSentinel, "")
	fixture.Sentinels[0].Stop()
	defer fixture.Sentinels[0].Cont()
	target := s.ready(spec, fixture.Primary)
	s.inject(spec, target)
	s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "2 of 3 sentinels name "+fixture.Replicas[0].Address())
}

// The operator crashes after a command that changes something; the next one must complete the failover, once. The first
// such command is the pause, the second the order to the sentinels; crash tests (make crash-test) cover each of them.
func TestCoordinatedFailoverAfterOperatorCrash(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewSentinel(t, 2, redistest.SentinelOptions{DownAfter: 20 * time.Second})
	s := newFailoverStage(t, fixture.Servers(), fixture.SentinelAddresses()...)
	spec := failingOver(v1alpha1.FailoverAuto, v1alpha1.FailoverCoordinated)
	spec.Action.Failover.Timeout.Duration = time.Minute
	all := os.Getenv("REDQUAKE_CRASH_OUT") != ""
	first, last := 2, 3
	if all {
		first, last = 1, 20
	}
	for callsLeft := first; callsLeft <= last; callsLeft++ {
		before := fixture.CurrentPrimary()
		fixture.WaitSettled(2)
		target := s.ready(spec, before)
		s.servers = &crashingServers{Servers: s.Real, callsLeft: callsLeft}
		doomed := s.servers
		s.inject(spec, target)
		t.Logf("crashed after %d: %q", callsLeft, s.servers.log)
		survived := doomed == s.servers
		if survived && !all {
			t.Errorf("the operator did not crash after %d commands", callsLeft)
		}
		now := fixture.CurrentPrimary()
		if now == before {
			t.Fatalf("no failover after %d commands", callsLeft)
		}
		if n := s.servers.sent("SENTINEL FAILOVER"); len(n) != 1 {
			t.Errorf("after %d commands: sent %q", callsLeft, n)
		}
		if role := before.Info("role"); role != "slave" {
			t.Errorf("after %d commands: the old primary is %s", callsLeft, role)
		}
		if !strings.Contains(faulttest.FileOf(t, before), "\nreplicaof 127.0.0.1 ") {
			t.Errorf("after %d commands: the old primary would restart as a primary", callsLeft)
		}
		if err := before.Client().Set(t.Context(), "k", "v", 0).Err(); err == nil ||
			!strings.HasPrefix(err.Error(), "READONLY") {
			t.Errorf("after %d commands: a write at the old primary: %v", callsLeft, err)
		}
		s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "coordinated")
		s.expectRevert(spec, target)
		if survived {
			return
		}
	}
}

// A fault that ends before the sentinels began leaves no pause.
func TestCoordinatedFailoverIsReverted(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewSentinel(t, 1, redistest.SentinelOptions{DownAfter: 20 * time.Second})
	s := newFailoverStage(t, fixture.Servers(), fixture.SentinelAddresses()...)
	spec := failingOver(v1alpha1.FailoverAuto, v1alpha1.FailoverCoordinated)
	spec.Action.Failover.Timeout.Duration = time.Minute
	target := s.ready(spec, fixture.Primary)
	s.servers = &crashingServers{Servers: s.Real, callsLeft: 2}
	if done, err := s.injectOnce(spec, target); done || err != nil || len(s.servers.sent("CLIENT PAUSE")) != 1 {
		t.Fatalf("done %t, %v; sent %q", done, err, s.servers.log)
	}
	if hand := s.injector(spec).ManualRevertCommand(
		target); hand != fmt.Sprintf("redis-cli -e -h 127.0.0.1 -p %d CLIENT UNPAUSE", fixture.Primary.Port) {
		t.Errorf("manual command: %q", hand)
	}
	begin := time.Now()
	s.expectRevert(spec, target)
	fixture.Primary.Do("set", "k", "v")
	if took := time.Since(begin); took > 10*time.Second { // of a pause of 16 s
		t.Errorf("the write waited for %s", took)
	}
	if fixture.CurrentPrimary() != fixture.Primary {
		t.Error("there was a failover")
	}
	// No replica can be promoted: the refusal must not leave a pause, however often the injection is retried.
	fixture.Replicas[0].Do("config", "set", "replica-priority", 0)
	for _, sentinel := range fixture.Sentinels {
		await.Until(t, "the sentinels know", func() error {
			if replicas := fmt.Sprint(sentinel.Do("SENTINEL", "REPLICAS", redistest.MasterName)); !strings.Contains(replicas,
				"slave-priority:0") {
				return fmt.Errorf("the sentinel at %s names no primary: %s", sentinel.Address(), replicas)
			}
			return nil
		})
	}
	await.Until(t, "the refusal", func() error {
		target = s.ready(spec, fixture.Primary)
		if done, err := s.injectOnce(spec, target); err == nil {
			return fmt.Errorf("not refused, done: %t", done)
		} else if !strings.Contains(err.Error(), "NOGOODSLAVE") {
			t.Fatal(err)
		}
		return nil
	})
	begin = time.Now()
	fixture.Primary.Do("set", "k", "w")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("after the refusal a write waited for %s", took)
	}
	s.expectEffect(spec, target, v1alpha1.EffectNotObserved, "still the primary")
}

// coordinates reports whether the sentinels of a test have the option COORDINATED, so that writes need not be paused.
func coordinates(t *testing.T) bool { return redistest.ReleaseOf(t) == redistest.Valkey9 }

// setDownAfter sets after what time sentinels consider the primary down, until the test ends.
func setDownAfter(t *testing.T, fixture *redistest.Sentinel, after time.Duration) {
	t.Helper()
	set := func(after time.Duration) {
		for _, s := range fixture.Sentinels {
			if s.Running() {
				s.Do("sentinel", "set", redistest.MasterName, "down-after-milliseconds", after.Milliseconds())
			}
		}
	}
	set(after)
	t.Cleanup(func() { set(time.Minute) })
}

func TestFailoverBySentinelIsRefused(t *testing.T) {
	redistest.Each(t, testFailoverBySentinelIsRefused)
}

func testFailoverBySentinelIsRefused(t *testing.T) {
	t.Parallel()
	fixture := redistest.SharedSentinel(t)
	sentinels := fixture.SentinelAddresses()
	for name, tc := range map[string]struct {
		change   func(s *failoverStage)
		spec     *v1alpha1.RedisFaultSpec
		at       *redistest.Server
		reason   string
		wantText string
	}{
		"wrong name": {
			func(s *failoverStage) { s.master = "other" },
			failingOver("", ""),
			fixture.Primary,
			v1alpha1.ReasonInvalidSpec,
			"spec.target.sentinel.masterName",
		},
		"a replica": {nil, failingOver("", ""), fixture.Replicas[0], v1alpha1.ReasonInvalidSpec, "spec.select.role"},
		"no sentinels given": {
			func(s *failoverStage) { s.sentinels = nil },
			failingOver(v1alpha1.FailoverSentinel, ""),
			fixture.Primary,
			v1alpha1.ReasonInvalidSpec,
			"spec.target.sentinel",
		},
		"sentinels not configured": {
			func(s *failoverStage) { s.sentinels = nil },
			failingOver("", ""),
			fixture.Primary,
			v1alpha1.ReasonInvalidSpec,
			"use method Sentinel",
		},
		"replication in spite of them": {
			nil, failingOver(v1alpha1.FailoverReplication, ""), fixture.Primary,
			v1alpha1.ReasonInvalidSpec, "use method Sentinel",
		},
		"no cluster": {
			nil, failingOver(v1alpha1.FailoverCluster, ""), fixture.Primary,
			v1alpha1.ReasonInvalidSpec, "spec.action.failover.method",
		},
		"a mode of another method": {
			nil, failingOver("", v1alpha1.FailoverTakeover), fixture.Primary,
			v1alpha1.ReasonInvalidSpec, "spec.action.failover.mode",
		},
		"down too soon for a pause": {
			func(*failoverStage) {
				setDownAfter(t, fixture,
					time.Second)
			}, failingOver("", v1alpha1.FailoverCoordinated), fixture.Primary,
			v1alpha1.ReasonNotSupported, "down-after-milliseconds 1000",
		},
	} {
		if coordinates(t) && name == "down too soon for a pause" {
			continue // there is no pause
		}
		t.Run(name, func(t *testing.T) {
			s := newFailoverStage(t, fixture.Servers(), sentinels...)
			if tc.change != nil {
				tc.change(s)
			}
			_, err := s.prepare(tc.spec, tc.at)
			if p := faulttest.ProblemOf(t, err); p.Reason != tc.reason || !p.Lasting ||
				!strings.Contains(p.Message, tc.wantText) {
				t.Errorf("%+v, want %s about %q", p, tc.reason, tc.wantText)
			}
			if len(s.servers.log) > 0 {
				t.Errorf("Preflight sent %q", s.servers.log)
			}
		})
	}
	t.Run("no majority", func(t *testing.T) {
		s := newFailoverStage(t, fixture.Servers(), sentinels...)
		fixture.Sentinels[1].Kill()
		fixture.Sentinels[2].Kill()
		_, err := s.prepare(failingOver("", ""), fixture.Primary)
		if p := faulttest.ProblemOf(t, err); p.Lasting || !strings.Contains(p.Message, "no majority of the 3 sentinels") {
			t.Errorf("%+v", p)
		}
	})
}
