package failover

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// sentinelWorld is a primary at 10.0.0.1 with a replica at 10.0.0.2 and a single sentinel, which answers SENTINEL
// FAILOVER as given. More commands may be answered by further, whose keys are the words of a command, joined by spaces.
func sentinelWorld(t *testing.T, answers map[string]any) (*faulttest.World, *v1alpha1.FaultTarget) {
	t.Helper()
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Bystander("redis-1", "10.0.0.2")
	w.Bystander("redis-7", "10.0.0.7")
	w.Bystander("sentinel-0", "10.0.0.9")
	w.Servers.Start("10.0.0.9:26379", memredis.State{Mode: "sentinel"})
	known := map[string]any{
		"SENTINEL MYID":        "id-1",
		"SENTINEL MASTERS":     []any{[]any{"name", "m"}},
		"SENTINEL SENTINELS m": []any{},
		"SENTINEL MASTER m": []any{
			"name", "m", "flags", "master", "config-epoch", "3",
			"down-after-milliseconds", "30000", "role-reported-time", "60000",
		},
		"SENTINEL GET-MASTER-ADDR-BY-NAME m": []any{"10.0.0.1", "6379"},
		"INFO replication": "role:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=5,lag=0\r\n" +
			"master_failover_state:no-failover\r\n",
	}
	for words, answer := range answers {
		known[words] = answer
	}
	for words, answer := range known {
		w.Servers.Script(words, faulttest.Reply(answer))
	}
	return w, &v1alpha1.FaultTarget{
		Pod:     "redis-0",
		UID:     "u0",
		Address: "10.0.0.1:6379",
		RunID:   "run-u0",
		Role:    v1alpha1.RolePrimary,
	}
}

func sentinelInjector(t *testing.T, w *faulttest.World, mode v1alpha1.FailoverMode) contract.Injector {
	t.Helper()
	deps := w.Deps()
	deps.Sentinels = sentinel.Set{Addresses: []string{"10.0.0.9:26379"}, Servers: deps.Servers}
	injector, err := Kinds.For(
		&v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{Type: v1alpha1.FaultFailover, Failover: &v1alpha1.Failover{Mode: mode}},
		}, deps)
	if err != nil {
		t.Fatal(err)
	}
	return injector
}

var errNoAnswer = errors.New("the connection breaks instead of a reply")

// The sentinels of Valkey 9 coordinate a failover. Preflight detects this without a failover.
func TestCoordinatedBySentinel(t *testing.T) {
	probe := "SENTINEL FAILOVER " + unknownToAll + " COORDINATED"
	for name, tc := range map[string]struct {
		answer error
		option bool
	}{
		"Valkey 9":          {redis.Error("ERR No such primary with that name"), true},
		"Redis 7, Valkey 8": {redis.Error("ERR wrong number of arguments for 'sentinel|failover' command"), false},
		"Redis 6": {
			redis.Error("ERR Unknown sentinel subcommand or Wrong number of arguments for 'FAILOVER'"),
			false,
		},
		"no answer": {errNoAnswer, false},
	} {
		t.Run(name, func(t *testing.T) {
			var answer any = tc.answer
			if errors.Is(tc.answer, errNoAnswer) {
				answer = memredis.HangUp
			}
			w, target := sentinelWorld(t, map[string]any{
				probe:                             answer,
				"SENTINEL FAILOVER m COORDINATED": "OK",
				"SENTINEL FAILOVER m":             "OK",
				"CLIENT PAUSE 10000 WRITE":        "OK",
				"CLIENT UNPAUSE":                  "OK",
			})
			injector := sentinelInjector(t, w, v1alpha1.FailoverCoordinated)
			err := injector.Preflight(t.Context(), target)
			if errors.Is(tc.answer, errNoAnswer) {
				if p := faulttest.ProblemOf(t, err); p.Lasting {
					t.Errorf("%+v may not pass", p)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w.Servers.Forget()
			var steps *faulttest.Pending
			if err := faulttest.Called(injector.Inject(t.Context(), target)); !errors.As(err, &steps) {
				t.Fatal(err)
			}
			paused := slices.Contains(w.Servers.Sent(), "CLIENT PAUSE 10000 WRITE")
			if itself := slices.Contains(w.Servers.Sent(), "SENTINEL FAILOVER m COORDINATED"); itself != tc.option ||
				paused == tc.option {
				t.Errorf("sent %q", w.Servers.Sent())
			}
		})
	}
}

func TestFailoverRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		answers  map[string]any
		begin    bool // Preflight accepts it
		reason   string
		wantText string
	}{
		"several names": {
			map[string]any{"SENTINEL MASTERS": []any{[]any{"name", "m"}, []any{"name", "n"}}},
			false,
			v1alpha1.ReasonInvalidSpec,
			"2 primaries (m, n)",
		},
		"no name": {map[string]any{"SENTINEL MASTERS": []any{}}, false, v1alpha1.ReasonInvalidSpec, "masterName"},
		"another primary": {
			map[string]any{"SENTINEL GET-MASTER-ADDR-BY-NAME m": []any{"10.0.0.7", "6379"}},
			false,
			v1alpha1.ReasonInjectionFailed, "1 of 1 sentinels name 10.0.0.7:6379",
		},
		"failing over already": {
			map[string]any{"SENTINEL MASTER m": []any{"name", "m", "flags", "master,failover_in_progress"}},
			false,
			v1alpha1.ReasonInjectionFailed,
			"already",
		},
		"two more sentinels, silent": {
			map[string]any{
				"SENTINEL SENTINELS m": []any{
					[]any{"runid", "a", "ip", "10.0.0.8", "port", "x"},
					[]any{"runid", "b", "ip", "", "port", "1"},
				},
			},
			false,
			v1alpha1.ReasonInjectionFailed,
			"no majority of the 3 sentinels",
		},
		"no replica": {
			map[string]any{
				"INFO replication": "role:master\r\nmaster_failover_state:no-failover\r\n" +
					"slave0:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0\r\n",
			},
			false,
			v1alpha1.ReasonNotSupported,
			"has no replica",
		},
		"removed since": {
			map[string]any{"SENTINEL FAILOVER m": redis.Error("ERR No such master with that name")},
			true,
			v1alpha1.ReasonInvalidSpec,
			"masterName",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, target := sentinelWorld(t, tc.answers)
			injector := sentinelInjector(t, w, "")
			err := injector.Preflight(t.Context(), target)
			if tc.begin && err == nil {
				err = faulttest.Called(injector.Inject(t.Context(), target))
			}
			if p := faulttest.ProblemOf(t, err); p.Reason != tc.reason || !strings.Contains(p.Message, tc.wantText) ||
				p.Lasting == (tc.reason == v1alpha1.ReasonInjectionFailed) {
				t.Errorf("%+v, want %s about %q", p, tc.reason, tc.wantText)
			}
		})
	}
}

// A failover that is in progress already was started by an operator that crashed, or has the same effect.
func TestFailoverInProgressAlready(t *testing.T) {
	w, target := sentinelWorld(t, map[string]any{
		"SENTINEL FAILOVER m": redis.Error("INPROG Failover already in progress"),
	})
	injector := sentinelInjector(t, w, "")
	if err := injector.Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	var steps *faulttest.Pending
	if err := faulttest.Called(injector.Inject(t.Context(), target)); !errors.As(err, &steps) {
		t.Errorf("the injection returned %v, want pending steps", err)
	}
}

// Without FAILOVER, which Redis 6.2 introduced, no failover is tried.
func TestFailoverOfAnOldServer(t *testing.T) {
	w, target := sentinelWorld(t, map[string]any{
		"INFO replication": "role:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=5,lag=0\r\n",
	})
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultFailover}}, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	if p := faulttest.ProblemOf(t, injector.Preflight(t.Context(), target)); p.Reason != v1alpha1.ReasonNotSupported ||
		!strings.Contains(p.Message, "6.2") {
		t.Errorf("got %+v, want NotSupported with the version", p)
	}
}

// A target without a record was never failed over: there is nothing to revert, and it must not be injected.
func TestFailoverWithoutRecord(t *testing.T) {
	w, target := sentinelWorld(t, nil)
	injector := sentinelInjector(t, w, "")
	if err := faulttest.Called(injector.Inject(t.Context(), target)); err == nil {
		t.Error("injected")
	}
	if err := faulttest.Called(injector.Revert(t.Context(), target)); err != nil {
		t.Error(err)
	}
	if begun, err := injector.Begun(t.Context(), target); begun || err != nil {
		t.Errorf("begun %t, %v", begun, err)
	}
	if effect, _ := injector.Effect(t.Context(), target); effect != v1alpha1.EffectInconclusive {
		t.Errorf("effect %s", effect)
	}
	if len(w.Servers.Sent()) > 0 {
		t.Errorf("sent %q", w.Servers.Sent())
	}
}

func TestFailoverOfAReplacedPod(t *testing.T) {
	w, target := sentinelWorld(t, nil)
	injector := sentinelInjector(t, w, "")
	if err := injector.Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	target.UID = "another"
	w.Servers.Forget()
	if err := faulttest.Called(injector.Inject(t.Context(), target)); err != nil {
		t.Error(err)
	}
	if slices.Contains(w.Servers.Sent(), "SENTINEL FAILOVER m") {
		t.Error("the pod in its place was failed over")
	}
}

// Sentinels report the names or addresses of servers; messages name the pods.
func TestFailoverNamesPods(t *testing.T) {
	w, target := sentinelWorld(t, map[string]any{
		"SENTINEL GET-MASTER-ADDR-BY-NAME m": []any{"redis-0.redis.shop.svc", "6379"},
	})
	injector := sentinelInjector(t, w, "")
	if err := injector.Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if got := faulttest.Recorded[failoverRecord](t, target).Primary; got != "redis-0.redis.shop.svc:6379" {
		t.Errorf("the primary is recorded as %q", got)
	}
	for address, want := range map[string]string{
		"redis-0.redis.shop.svc:6379": "redis-0",
		"10.0.0.1:6379":               "redis-0",
		"10.0.0.6:6379":               "10.0.0.6:6379",
	} {
		if got := injector.(failover).nameOf(t.Context(), address); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	w.Servers.Start("10.0.0.1:6379", memredis.State{RunID: "another"})
	if p := faulttest.ProblemOf(t, injector.Preflight(t.Context(), target)); p.Lasting ||
		!strings.Contains(p.Message, "which is not redis-0") {
		t.Errorf("%+v", p)
	}
}

// Sentinels that do not answer for a short time during their failover are no error; after a longer time they are.
func TestFailoverWithUnresponsiveSentinels(t *testing.T) {
	w, target := sentinelWorld(t, map[string]any{"SENTINEL FAILOVER m": "OK"})
	injector := sentinelInjector(t, w, "")
	if err := injector.Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	w.Servers.Kill("10.0.0.9:26379")
	for since, want := range map[time.Duration]bool{time.Second: true, 2 * time.Minute: false} {
		target.InjectedAt = new(metav1.NewMicroTime(time.Now().Add(-since)))
		var steps *faulttest.Pending
		err := faulttest.Called(injector.Inject(t.Context(), target))
		if errors.As(err, &steps) != want || !errors.Is(err, faulttest.ErrRefused) && !want {
			t.Errorf("%s later: %v", since, err)
		}
	}
}

// A server that waits indefinitely for the promoted replica takes no writes: that is an error, and ABORT reverts it.
func TestStuckFailoverIsAborted(t *testing.T) {
	answers := map[string]any{
		"INFO replication": "role:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=5,lag=0\r\nmaster_failover_state:no-failover\r\n",
		"CLIENT LIST":      "id=3 addr=10.0.0.5:4711 name=app",
		"FAILOVER ABORT":   "OK",
	}
	w, target := sentinelWorld(t, answers)
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultFailover}}, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	if err := injector.Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	answers["INFO replication"] = "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\nmaster_failover_state:failover-in-progress\r\n"
	w, _ = sentinelWorld(t, answers)
	if injector, err = Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultFailover}},
		w.Deps()); err != nil {
		t.Fatal(err)
	}
	var steps *faulttest.Pending
	target.InjectedAt = new(metav1.NowMicro())
	if err := faulttest.Called(injector.Inject(t.Context(), target)); !errors.As(err, &steps) {
		t.Errorf("at first: %v", err)
	}
	target.InjectedAt = new(metav1.NewMicroTime(time.Now().Add(-25 * time.Second)))
	if err := faulttest.Called(injector.Inject(t.Context(), target)); errors.As(err, &steps) || err == nil ||
		!strings.Contains(err.Error(), "stuck in state failover-in-progress") {
		t.Errorf("after 25 s: %v", err)
	}
	if effect, _ := injector.Effect(t.Context(), target); effect != v1alpha1.EffectInconclusive {
		t.Errorf("effect %s", effect)
	}
	if err := faulttest.Called(injector.Revert(t.Context(), target)); !errors.As(err, &steps) ||
		!slices.Contains(w.Servers.Sent(), "FAILOVER ABORT") {
		t.Errorf("%v, sent %q", err, w.Servers.Sent())
	}
}

// An operator that crashed after REPLICAOF may not have sent CONFIG REWRITE. The next one sends it: otherwise the old
// primary would restart as a primary.
func TestCoordinatedFailoverRewritesTheFile(t *testing.T) {
	w, target := sentinelWorld(t, map[string]any{
		"SENTINEL MASTER m": []any{
			"name", "m", "ip", "10.0.0.2", "port", "6379", "flags", "master",
			"config-epoch", "4", "down-after-milliseconds", "30000", "role-reported-time", "10",
		},
		"SENTINEL GET-MASTER-ADDR-BY-NAME m": []any{"10.0.0.2", "6379"},
		"INFO replication":                   "role:slave\r\nmaster_link_status:up\r\n",
		"CONFIG REWRITE":                     "OK",
		"CLIENT UNPAUSE":                     "OK",
	})
	faulttest.Save(t, target, failoverRecord{
		Method:   v1alpha1.FailoverSentinel,
		Primary:  "10.0.0.1:6379",
		Sentinel: &sentinelRecord{MasterName: "m", Epoch: 3, Pause: 10 * time.Second},
	})
	target.InjectedAt = new(metav1.NowMicro())
	for range 2 {
		faulttest.Must(t, faulttest.Called(sentinelInjector(t, w, v1alpha1.FailoverCoordinated).Inject(t.Context(), target)))
	}
	faulttest.Must(t, faulttest.Called(sentinelInjector(t, w, v1alpha1.FailoverCoordinated).Revert(t.Context(), target)))
	rewrites := slices.DeleteFunc(w.Servers.Sent(), func(command string) bool { return command != "CONFIG REWRITE" })
	if len(rewrites) != 1 {
		t.Errorf("the file was rewritten %d times, want once", len(rewrites))
	}
}
