//go:build integration

package fault

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/topology"
)

func hangOf(method v1alpha1.HangMethod, lasts time.Duration) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{Type: v1alpha1.FaultHang, Hang: &v1alpha1.Hang{Method: method, Duration: metav1.Duration{Duration: lasts}}}
}

// injectNow is inject, and notes when, as the controller does.
func injectNow(t *testing.T, injector Injector, target *v1alpha1.FaultTarget) {
	t.Helper()
	at := metav1.NowMicro()
	inject(t, injector, target)
	target.InjectedAt = &at
}

// Each method hangs the server once and for as long as asked, whoever calls it how often, and the server itself says so afterwards.
func TestHang(t *testing.T) {
	const lasts = 3 * time.Second
	for _, method := range []v1alpha1.HangMethod{v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause} {
		t.Run(string(method), func(t *testing.T) {
			s, server := newStage(t), redistest.NewServer(t, redistest.Options{})
			s.host("redis-0", server, nil)
			spec := hangOf(method, lasts)
			injector, target := s.aim(spec)
			if by, _ := undoValue(target, undoMethod); by != string(method) {
				t.Errorf("recorded method %q", by)
			}
			begun(t, injector, target, false)
			checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still answers")
			if err := injector.Revert(t.Context(), target); err != nil {
				t.Errorf("revert before the injection: %v", err)
			}
			began := time.Now()
			injectNow(t, injector, target)
			if took := time.Since(began); took > 1500*time.Millisecond {
				t.Errorf("the call waited for %s", took)
			}
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, string(method)+": ")
			begun(t, injector, target, true)
			inject(t, injector, target)
			server.Do("PING")
			most := lasts + time.Second
			if method == v1alpha1.HangClientPause {
				most += time.Duration(len(pauses(lasts))) * 100 * time.Millisecond // each ends on the server's next tick
			}
			if took := time.Since(began); took < lasts-50*time.Millisecond || took > most {
				t.Errorf("the server hung for %s, want %s", took, lasts)
			}
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, string(method)+": ")
			if method != v1alpha1.HangClientPause { // there, what another process queued has ended with it
				injector = s.reborn(spec)
				begun(t, injector, target, true)
				inject(t, injector, target)
				if took := answersAfter(t, server, "PING"); took > time.Second {
					t.Errorf("it hangs again: answered after %s", took)
				}
			}
			revertFully(t, injector, target)
		})
	}
}

// A script gives way to SCRIPT KILL once the server calls itself busy; a sleep is waited for; queued pauses are dropped.
func TestHangEndsEarly(t *testing.T) {
	for method, within := range map[v1alpha1.HangMethod]time.Duration{v1alpha1.HangDebugSleep: 4 * time.Second, v1alpha1.HangScript: 2 * time.Second, v1alpha1.HangClientPause: 2 * time.Second} {
		t.Run(string(method), func(t *testing.T) {
			s, server := newStage(t), redistest.NewServer(t, redistest.Options{Config: []string{"busy-reply-threshold 300"}})
			s.host("redis-0", server, nil)
			injector, target := s.aim(hangOf(method, 3*time.Second))
			injectNow(t, injector, target)
			time.Sleep(300 * time.Millisecond)
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "")
			began := time.Now()
			err := injector.Revert(t.Context(), target)
			var steps *InProgress
			if method == v1alpha1.HangDebugSleep && !errors.As(err, &steps) {
				t.Errorf("a sleep that goes on: %v", err)
			}
			revertFully(t, injector, target)
			if took := time.Since(began); took > within || answersAfter(t, server, "SET", "a", "1") > time.Second {
				t.Errorf("ended after %s, want %s at most", took, within)
			}
		})
	}
}

// Auto takes the first method that the server allows, and says why none does.
func TestHangAuto(t *testing.T) {
	for _, tc := range []struct {
		user string
		want v1alpha1.HangMethod
	}{
		{"+debug +eval_ro +time +client|pause", v1alpha1.HangDebugSleep},
		{"+eval_ro +time +client|pause", v1alpha1.HangScript},
		{"+eval +time +client|pause", v1alpha1.HangScript},
		{"+eval +client|pause", v1alpha1.HangClientPause}, // the loop may not ask for the time
		{"", ""},
	} {
		s, server := newStage(t), redistest.NewServer(t, redistest.Options{Users: []string{"app on >pw ~* +info +ping +acl|dryrun " + tc.user}})
		s.login = topology.Login{Username: "app", Password: "pw", Timeout: time.Second}
		s.host("redis-0", server, nil)
		injector, target, err := s.tryAim(&v1alpha1.RedisFaultSpec{Type: v1alpha1.FaultHang})
		if tc.want == "" {
			p := problemOf(t, err)
			for _, says := range []string{"spec.hang.method", "DebugSleep: ", "+debug", "Script: ", "+eval", "ClientPause: ", "+client|pause"} {
				if p.Reason != v1alpha1.ReasonNotSupported || !strings.Contains(p.Message, says) {
					t.Errorf("%+v does not tell of %q", p, says)
				}
			}
			continue
		}
		if method, _ := undoValue(target, undoMethod); err != nil || method != string(tc.want) {
			t.Errorf("%s: method %q, %v; want %s", tc.user, method, err, tc.want)
			continue
		}
		if lasts := injector.Traits().Lasts; lasts != defaultHang {
			t.Errorf("lasts %s", lasts)
		}
	}
}

func TestHangDebugForbidden(t *testing.T) {
	s, server := newStage(t), redistest.NewServer(t, redistest.Options{Config: []string{"enable-debug-command no"}})
	s.host("redis-0", server, nil)
	_, _, err := s.tryAim(hangOf(v1alpha1.HangDebugSleep, time.Second))
	if p := problemOf(t, err); !p.Lasting || !strings.Contains(p.Message, "enable-debug-command") {
		t.Errorf("%+v", p)
	}
	_, target := s.aim(hangOf(v1alpha1.HangAuto, time.Second))
	if method, _ := undoValue(target, undoMethod); method != string(v1alpha1.HangScript) {
		t.Errorf("method %q", method)
	}
}

// An operator that died with the server hanging finds it so, and does not send a second hang.
func TestHangFoundHanging(t *testing.T) {
	s, server := newStage(t), redistest.NewServer(t, redistest.Options{})
	s.host("redis-0", server, nil)
	spec := hangOf(v1alpha1.HangDebugSleep, 2*time.Second)
	injector, target := s.aim(spec)
	began := time.Now()
	inject(t, injector, target)
	injector = s.reborn(spec)
	begun(t, injector, target, true)
	inject(t, injector, target)
	server.Do("PING")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the server hung for %s, want 2s", took)
	}
}

func TestHangLeavesOthersAlone(t *testing.T) {
	for _, method := range []v1alpha1.HangMethod{v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause} {
		t.Run(string(method), func(t *testing.T) {
			s, server := newStage(t), redistest.NewServer(t, redistest.Options{})
			pod := s.host("redis-0", server, nil)
			injector, target := s.aim(hangOf(method, 5*time.Second))
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			if err := injector.Inject(cancelled, target); !errors.Is(err, context.Canceled) {
				t.Errorf("inject after the context ended: %v", err)
			}
			if effect, _ := injector.Effect(cancelled, target); effect != v1alpha1.EffectInconclusive {
				t.Errorf("effect %s after the context ended", effect)
			}
			server.Restart()
			inject(t, injector, target)
			checkEffect(t, injector, target, v1alpha1.EffectInconclusive, "another process")
			revertFully(t, injector, target)
			s.replace(pod, "another")
			inject(t, injector, target)
			revertFully(t, injector, target)
			if err := s.cluster.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			inject(t, injector, target)
			revertFully(t, injector, target)
			if took := answersAfter(t, server, "PING"); took > time.Second {
				t.Errorf("somebody else's server hung: answered after %s", took)
			}
		})
	}
}

// A refusal that comes only with the injection is an error.
func TestHangRefusedLate(t *testing.T) {
	s, server := newStage(t), redistest.NewServer(t, redistest.Options{Users: []string{"app on >pw ~* +@all"}})
	s.login = topology.Login{Username: "app", Password: "pw", Timeout: time.Second}
	s.host("redis-0", server, nil)
	for _, method := range []v1alpha1.HangMethod{v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause} {
		server.Do("ACL", "SETUSER", "app", "+@all")
		injector, target := s.aim(hangOf(method, 2*time.Second))
		server.Do("ACL", "SETUSER", "app", "-debug", "-@scripting", "-client")
		err := injector.Inject(t.Context(), target)
		if p := problemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported || !strings.Contains(p.Message, "ACL rule") {
			t.Errorf("%s: %v", method, err)
		}
		if took := answersAfter(t, server, "PING"); took > time.Second {
			t.Errorf("%s: hung all the same", method)
		}
	}
}
