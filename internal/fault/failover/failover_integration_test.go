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
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestFailoverBySentinel(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewSentinel(t, 2, redistest.SentinelOptions{DownAfter: 5 * time.Second})
	// One address and no name, as of a Service: the others are announced.
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
	s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "of 3 sentinels name "+now.Address(), "instead of "+fixture.Primary.Address(), "uncoordinated")
	// As a process does that knows nothing of the first, and was slow to come.
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
		t.Error("nothing is lost, so that uncoordinated is not true")
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
	want := map[string]string{EventFailoverStarted: "redis-0", contract.EventSwitched: "sentinels", contract.EventPromoted: s.pods[now.Address()], EventDemoted: "redis-0"}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
	if switched.Before(target.InjectedAt.Time) || switched.After(time.Now()) {
		t.Errorf("switched at %s, %s after the injection", switched, switched.Sub(target.InjectedAt.Time))
	}
}

// By users that have the rights of docs/faults/failover.md and no others.
func TestCoordinatedFailoverBySentinel(t *testing.T) {
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
	if got := s.servers.sent("CLIENT PAUSE"); len(got) != 1 || got[0] != "CLIENT PAUSE 16000 WRITE" {
		t.Errorf("paused by %q: it must be shorter than the sentinels' down-after of 20 s", got)
	}
	s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "coordinated: writes were paused until")
	s.expectRevert(spec, target)
	fixture.WaitSettled(2)
	if fixture.CurrentPrimary() != now {
		t.Error("the sentinels failed over once more")
	}
}

// One that hangs is outvoted. That it keeps nobody waiting is in TestFailoverAsksSentinelsWithinLimits.
func TestFailoverWithAHangingSentinel(t *testing.T) {
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

// The operator dies after a command that changes something; the next one must end it, once. That is the pause, with nothing begun, and then the
// order to the sentinels; where crash tests are asked for it is each in turn.
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
	for lives := first; lives <= last; lives++ {
		before := fixture.CurrentPrimary()
		fixture.WaitSettled(2)
		target := s.ready(spec, before)
		s.servers = &mortal{Servers: s.Real, lives: lives}
		doomed := s.servers
		s.inject(spec, target)
		t.Logf("died after %d: %q", lives, s.servers.log)
		survived := doomed == s.servers
		if survived && !all {
			t.Errorf("it did not die after %d commands", lives)
		}
		now := fixture.CurrentPrimary()
		if now == before {
			t.Fatalf("no failover after %d commands", lives)
		}
		if n := s.servers.sent("SENTINEL FAILOVER"); len(n) != 1 {
			t.Errorf("after %d commands: sent %q", lives, n)
		}
		if role := before.Info("role"); role != "slave" {
			t.Errorf("after %d commands: the old primary is %s", lives, role)
		}
		if !strings.Contains(faulttest.FileOf(t, before), "\nreplicaof 127.0.0.1 ") {
			t.Errorf("after %d commands: the old primary would come back as one", lives)
		}
		if err := before.Client().Set(t.Context(), "k", "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
			t.Errorf("after %d commands: a write at the old primary: %v", lives, err)
		}
		s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "coordinated")
		s.expectRevert(spec, target)
		if survived {
			return
		}
	}
}

// A fault that is ended before the sentinels began leaves no pause behind.
func TestCoordinatedFailoverIsReverted(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewSentinel(t, 1, redistest.SentinelOptions{DownAfter: 20 * time.Second})
	s := newFailoverStage(t, fixture.Servers(), fixture.SentinelAddresses()...)
	spec := failingOver(v1alpha1.FailoverAuto, v1alpha1.FailoverCoordinated)
	spec.Action.Failover.Timeout.Duration = time.Minute
	target := s.ready(spec, fixture.Primary)
	s.servers = &mortal{Servers: s.Real, lives: 2}
	if done, err := s.live(spec, target); done || err != nil || len(s.servers.sent("CLIENT PAUSE")) != 1 {
		t.Fatalf("done %t, %v; sent %q", done, err, s.servers.log)
	}
	if hand := s.injector(spec).ManualRevertCommand(target); hand != fmt.Sprintf("redis-cli -h 127.0.0.1 -p %d CLIENT UNPAUSE", fixture.Primary.Port) {
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
	// No replica can be promoted: the refusal must not leave a pause, however often it is tried again.
	fixture.Replicas[0].Do("config", "set", "replica-priority", 0)
	for _, sentinel := range fixture.Sentinels {
		redistest.Wait(t, "the sentinels know", func() error {
			if replicas := fmt.Sprint(sentinel.Do("SENTINEL", "REPLICAS", redistest.MasterName)); !strings.Contains(replicas, "slave-priority:0") {
				return fmt.Errorf("the one at %s does not: %s", sentinel.Address(), replicas)
			}
			return nil
		})
	}
	redistest.Wait(t, "the refusal", func() error {
		target = s.ready(spec, fixture.Primary)
		if done, err := s.live(spec, target); err == nil {
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

// setDownAfter sets when sentinels take the primary for down, until the test ends.
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
		"wrong name": {func(s *failoverStage) { s.master = "other" }, failingOver("", ""), fixture.Primary, v1alpha1.ReasonInvalidSpec, "spec.target.sentinel.masterName"},
		"a replica":  {nil, failingOver("", ""), fixture.Replicas[0], v1alpha1.ReasonInvalidSpec, "spec.select.role"},
		"no sentinels given": {func(s *failoverStage) { s.sentinels = nil }, failingOver(v1alpha1.FailoverSentinel, ""), fixture.Primary,
			v1alpha1.ReasonInvalidSpec, "spec.target.sentinel"},
		"sentinels not told of":        {func(s *failoverStage) { s.sentinels = nil }, failingOver("", ""), fixture.Primary, v1alpha1.ReasonInvalidSpec, "use method Sentinel"},
		"replication in spite of them": {nil, failingOver(v1alpha1.FailoverReplication, ""), fixture.Primary, v1alpha1.ReasonInvalidSpec, "use method Sentinel"},
		"no cluster":                   {nil, failingOver(v1alpha1.FailoverCluster, ""), fixture.Primary, v1alpha1.ReasonInvalidSpec, "spec.action.failover.method"},
		"a mode of another method":     {nil, failingOver("", v1alpha1.FailoverTakeover), fixture.Primary, v1alpha1.ReasonInvalidSpec, "spec.action.failover.mode"},
		"down too soon for a pause": {func(*failoverStage) { setDownAfter(t, fixture, time.Second) }, failingOver("", v1alpha1.FailoverCoordinated), fixture.Primary,
			v1alpha1.ReasonNotSupported, "down-after-milliseconds 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFailoverStage(t, fixture.Servers(), sentinels...)
			if tc.change != nil {
				tc.change(s)
			}
			_, err := s.prepare(tc.spec, tc.at)
			if p := faulttest.ProblemOf(t, err); p.Reason != tc.reason || !p.Lasting || !strings.Contains(p.Message, tc.wantText) {
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
