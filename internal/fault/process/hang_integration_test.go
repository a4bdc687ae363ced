//go:build integration

package process

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func hangOf(method v1alpha1.HangMethod, lasts time.Duration) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action:   v1alpha1.Action{Type: v1alpha1.FaultHang, Hang: &v1alpha1.Hang{Method: method}},
		Duration: &metav1.Duration{Duration: lasts},
	}
}

// injectNow calls inject and records the time, as the controller does.
func injectNow(t *testing.T, injector contract.Injector, target *v1alpha1.FaultTarget) {
	t.Helper()
	at := metav1.NowMicro()
	inject(t, injector, target)
	target.InjectedAt = &at
}

// uncounted is what executions returns where a server counts a subcommand only together with others, before Redis 7.
const uncounted = -1

// executions returns how often a server has executed a command, such as "client|pause", since its start.
func executions(t *testing.T, server *redistest.Server, command string) int {
	t.Helper()
	info := redis.ParseInfo(server.Do("INFO", "commandstats").(string))
	if info.Together(command) {
		return uncounted
	}
	stat, _ := info.Command(command)
	return int(stat.Calls)
}

// slowCalls are the executions of a command with a last argument that the server's slow log holds, the newest first. A
// stall of the machine makes quick calls slow, such as the one that asks whether the command is there.
func slowCalls(t *testing.T, server *redistest.Server, command, last string) []goredis.SlowLog {
	t.Helper()
	entries, err := server.Client().SlowLogGet(t.Context(), -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(entries, func(e goredis.SlowLog) bool {
		return !strings.EqualFold(e.Args[0], command) || e.Args[len(e.Args)-1] != last
	})
}

// expectOneHang fails the test unless the server hung exactly once, for the requested time.
func expectOneHang(t *testing.T, server *redistest.Server, target *v1alpha1.FaultTarget, lasts time.Duration) {
	t.Helper()
	command := faulttest.Recorded[hangRecord](t, target).Command
	before := int(faulttest.Recorded[hangRecord](t, target).Before.Calls)
	asked := strconv.FormatInt(lasts.Microseconds(), 10)
	switch command {
	case "client|pause":
		if n, want := executions(t, server, command), before+len(pauses(lasts)); n != want && n != uncounted {
			t.Errorf("the server carried out %d pauses, want %d", n-before, want-before)
		}
		return
	case "debug":
		asked = strconv.FormatFloat(lasts.Seconds(), 'f', 3, 64)
	}
	entries := slowCalls(t, server, command, asked)
	if n := executions(t, server, command) - before; n != 1 || len(entries) != 1 {
		t.Fatalf("the server executed %s %d times; its slow log has %d for %s: want one", command, n, len(entries), asked)
	}
	if e := entries[0]; e.Duration < lasts-50*time.Millisecond {
		t.Errorf("the slow log shows %s, want %s", e.Duration, lasts)
	}
}

// Each method hangs the server once and for the requested time, however often and by which process it is called, as the
// server's own counters confirm.
func TestHang(t *testing.T) { redistest.Each(t, testHang) }

func testHang(t *testing.T) {
	t.Parallel()
	const lasts = 3 * time.Second
	for _, method := range []v1alpha1.HangMethod{v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
			spec := hangOf(method, lasts)
			injector, target := s.Aim(spec)
			if by := faulttest.Recorded[hangRecord](t, target).Method; by != method {
				t.Errorf("recorded method %q", by)
			}
			begun(t, injector, target, false)
			checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still answers")
			if err := faulttest.Called(injector.Revert(t.Context(), target)); err != nil {
				t.Errorf("revert before the injection: %v", err)
			}
			began := time.Now()
			injectNow(t, injector, target)
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, string(method)+": ")
			begun(t, injector, target, true)
			inject(t, injector, target)
			server.WaitUp() // where the script measures CPU time, a busy machine prolongs it until the server replies BUSY
			answered := time.Now()
			expectOneHang(t, server, target, lasts)
			if method == v1alpha1.HangClientPause {
				answered = time.Now() // one command that arrives just as a pause ends may go before the next pause
			}
			if took := answered.Sub(began); took < lasts-50*time.Millisecond {
				t.Errorf("the server answered after %s, want %s", took, lasts)
			}
			if method == v1alpha1.HangClientPause && executions(t, server, "client|pause") == uncounted {
				checkEffect(t, injector, target, v1alpha1.EffectInconclusive, "before Redis 7")
			} else {
				checkEffect(t, injector, target, v1alpha1.EffectConfirmed, string(method)+": ")
			}
			if method != v1alpha1.HangClientPause { // the queue of the first process ended with it
				injector = s.Reborn(spec)
				begun(t, injector, target, true)
				inject(t, injector, target)
				expectOneHang(t, server, target, lasts)
			}
			revertFully(t, injector, target)
		})
	}
}

// SCRIPT KILL ends a script once the server replies BUSY; queued pauses are dropped. TestHangSleepIsWaitedFor covers a
// sleep.
func TestHangEndsEarly(t *testing.T) { redistest.Each(t, testHangEndsEarly) }

func testHangEndsEarly(t *testing.T) {
	t.Parallel()
	const lasts = time.Minute
	for _, method := range []v1alpha1.HangMethod{v1alpha1.HangScript, v1alpha1.HangClientPause} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			s := faulttest.NewStage(t, Kinds, guard.Choose)
			server := redistest.NewServer(t, redistest.Options{Config: []string{"busy-reply-threshold 300"}})
			s.Host("redis-0", server, nil)
			injector, target := s.Aim(hangOf(method, lasts))
			injectNow(t, injector, target)
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "")
			revertFully(t, injector, target)
			server.Do("SET", "a", "1")
			if method == v1alpha1.HangClientPause {
				if n := executions(t, server, "client|pause"); n == 0 || n >= len(pauses(lasts)) {
					t.Errorf("the server carried out %d of %d pauses", n, len(pauses(lasts)))
				}
				return
			}
			entries := slowCalls(t, server, "eval_ro", strconv.FormatInt(lasts.Microseconds(), 10))
			if len(entries) != 1 || entries[0].Duration >= lasts || executions(t, server, "script|kill") == 0 {
				t.Errorf("the slow log shows %+v, want one script that was killed", entries)
			}
		})
	}
}

// Auto uses the first method that the server allows. If none is allowed, the message contains the reasons.
// An application's script that waits behind the hang, and keeps the server busy after it, is none of the fault's.
func TestHangSparesOtherScripts(t *testing.T) { redistest.Each(t, testHangSparesOtherScripts) }

func testHangSparesOtherScripts(t *testing.T) {
	t.Parallel()
	const lasts = time.Second
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{Config: []string{"busy-reply-threshold 1500"}})
	s.Host("redis-0", server, nil)
	injector, target := s.Aim(hangOf(v1alpha1.HangScript, lasts))
	injectNow(t, injector, target)
	application := make(chan error, 1)
	go func() { // its client does not time out
		c := goredis.NewClient(&goredis.Options{Addr: server.Address(), ReadTimeout: -1, DisableIdentity: true})
		defer c.Close()
		err := c.Do(t.Context(), "EVAL", busyLoop, "0", (4 * time.Second).Microseconds()).Err()
		for ; err != nil && strings.HasPrefix(err.Error(), "BUSY"); err = c.Do(t.Context(), "EVAL", busyLoop, "0",
			(4 * time.Second).Microseconds()).Err() {
			await.Pass(10*time.Millisecond,
				"on a busy machine the fault's script may run for longer than the server's threshold")
		}
		application <- err
	}()
	await.PassTo(target.InjectedAt.Add(3*time.Second),
		"the hang is over by its time, and the server answers BUSY because of the other script")
	revertFully(t, injector, target)
	if err := await.Chan(t, "the application's script ends", application); err != nil && !errors.Is(err, goredis.Nil) {
		t.Errorf("the application's script: %v", err)
	}
}

func TestHangAuto(t *testing.T) { redistest.Each(t, testHangAuto) }

func testHangAuto(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		user string
		want v1alpha1.HangMethod
	}{
		{"+debug +eval_ro +time +client|pause", v1alpha1.HangDebugSleep},
		{"+eval_ro +time +client|pause", v1alpha1.HangScript},
		{"+eval +time +client|pause", v1alpha1.HangScript},
		{"+eval +client|pause", v1alpha1.HangClientPause}, // the script may not call TIME
		{"", ""},
	} {
		s := faulttest.NewStage(t, Kinds, guard.Choose)
		server := redistest.NewServer(t, redistest.Options{
			Users: []string{"app on >pw ~* +info +ping +acl|dryrun " + tc.user},
		})
		s.Login = redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient}
		s.Host("redis-0", server, nil)
		injector, target, err := s.TryAim(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultHang}})
		if tc.want == "" {
			p := faulttest.ProblemOf(t, err)
			for _, wantText := range []string{
				"spec.action.hang.method", "DebugSleep: ", "+debug", "Script: ", "+eval",
				"ClientPause: ", "+client|pause",
			} {
				if p.Reason != v1alpha1.ReasonNotSupported || !strings.Contains(p.Message, wantText) {
					t.Errorf("got problem %+v, want one that contains %q", p, wantText)
				}
			}
			continue
		}
		if method := faulttest.Recorded[hangRecord](t, target).Method; err != nil || method != tc.want {
			t.Errorf("%s: method %q, %v; want %s", tc.user, method, err, tc.want)
			continue
		}
		if lasts := injector.Traits().Lasts; lasts != v1alpha1.DefaultFaultDuration {
			t.Errorf("lasts %s", lasts)
		}
	}
}

func TestHangDebugForbidden(t *testing.T) { redistest.Each(t, testHangDebugForbidden) }

func testHangDebugForbidden(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{Config: []string{"enable-debug-command no"}})
	s.Host("redis-0", server, nil)
	_, _, err := s.TryAim(hangOf(v1alpha1.HangDebugSleep, time.Second))
	if p := faulttest.ProblemOf(t, err); !p.Lasting || !strings.Contains(p.Message, "enable-debug-command") {
		t.Errorf("%+v", p)
	}
	_, target := s.Aim(hangOf(v1alpha1.HangAuto, time.Second))
	if method := faulttest.Recorded[hangRecord](t, target).Method; method != v1alpha1.HangScript {
		t.Errorf("method %q", method)
	}
}

// An operator that restarts during the hang detects it, and does not send a second one.
func TestHangIsNotRepeatedAfterOperatorCrash(t *testing.T) {
	t.Parallel()
	const lasts = 2 * time.Second
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := hangOf(v1alpha1.HangDebugSleep, lasts)
	injector, target := s.Aim(spec)
	inject(t, injector, target)
	injector = s.Reborn(spec)
	begun(t, injector, target, true)
	inject(t, injector, target)
	server.Do("PING")
	expectOneHang(t, server, target, lasts)
}

func TestHangIgnoresOtherTargets(t *testing.T) {
	t.Parallel()
	for _, method := range []v1alpha1.HangMethod{v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			server, target := checkIgnoresOtherTargets(t, hangOf(method, 5*time.Second),
				func(injector contract.Injector, target *v1alpha1.FaultTarget) {
					checkEffect(t, injector, target, v1alpha1.EffectInconclusive, "another process")
				})
			command := faulttest.Recorded[hangRecord](t, target).Command
			if n := executions(t, server, command); n != 0 {
				t.Errorf("another server executed %s %d times", command, n)
			}
		})
	}
}

// A refusal at the injection is an error.
func TestHangRefusedLate(t *testing.T) { redistest.Each(t, testHangRefusedLate) }

func testHangRefusedLate(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{Users: []string{"app on >pw ~* +@all"}})
	s.Login = redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient}
	s.Host("redis-0", server, nil)
	for _, method := range []v1alpha1.HangMethod{v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause} {
		server.Do("ACL", "SETUSER", "app", "+@all")
		injector, target := s.Aim(hangOf(method, 2*time.Second))
		server.Do("ACL", "SETUSER", "app", "-debug", "-@scripting", "-client")
		command := faulttest.Recorded[hangRecord](t, target).Command
		before := executions(t, server, command)
		err := faulttest.Called(injector.Inject(t.Context(), target))
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported ||
			!strings.Contains(p.Message, "ACL rule") {
			t.Errorf("%s: %v", method, err)
		}
		if n := executions(t, server, command); n != before {
			t.Errorf("%s: it was executed, want it refused", method)
		}
	}
}
