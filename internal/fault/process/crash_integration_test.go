//go:build integration

package process

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// expectExit fails the test unless the server's process exits: its port is closed.
func expectExit(t *testing.T, server *redistest.Server) {
	t.Helper()
	await.Until(t, server.Address()+" ends", func() error {
		if c, err := net.Dial("tcp", server.Address()); err == nil {
			_ = c.Close()
			return errors.New("it still listens")
		}
		return nil
	})
}

// expectSameProcess fails the test unless the server is still the same process.
func expectSameProcess(t *testing.T, server *redistest.Server, runID string) {
	t.Helper()
	if got := server.Info("run_id"); got != runID {
		t.Errorf("the server at %s has run_id %q, want %q", server.Address(), got, runID)
	}
}

// inPod records a real server as the target that a fault selected.
func inPod(t *testing.T, server *redistest.Server, login redis.Login) (contract.Deps, *v1alpha1.FaultTarget) {
	t.Helper()
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	s.Login = login
	s.Host("redis-0", server, nil)
	deps := s.Deps()
	found, err := guard.Choose(t.Context(), faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary}}, contract.Traits{})
	if err != nil {
		t.Fatal(err)
	}
	return deps, &found[0]
}

func crash(t *testing.T, deps contract.Deps, method v1alpha1.CrashMethod) contract.Injector {
	t.Helper()
	injector, err := Kinds.For(
		&v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash, ProcessCrash: &v1alpha1.ProcessCrash{Method: method}},
		}, deps)
	if err != nil {
		t.Fatal(err)
	}
	return injector
}

// SHUTDOWN, with and without a password; then again with the same record, while another process has the address: it
// must not be ended.
func TestCrashRealServer(t *testing.T) { redistest.Each(t, testCrashRealServer) }

func testCrashRealServer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		options redistest.Options
		login   redis.Login
	}{
		{"without a password", redistest.Options{}, redis.Login{Timeout: faulttest.Patient}},
		{
			"with a password",
			redistest.Options{Password: "s3cret"},
			redis.Login{Password: "s3cret", Timeout: faulttest.Patient},
		},
		{
			"as an ACL user",
			redistest.Options{Users: []string{"app on >pw ~* +info +ping +shutdown"}},
			redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t, tc.options)
			deps, target := inPod(t, server, tc.login)
			if target.Role != v1alpha1.RolePrimary || len(target.RunID) != 40 {
				t.Fatalf("recorded %+v", target)
			}
			injector := crash(t, deps, v1alpha1.CrashShutdown)
			if err := injector.Preflight(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectNotObserved {
				t.Errorf("before: %s (%s)", effect, evidence)
			}
			if err := faulttest.Called(injector.Inject(t.Context(), target)); err != nil {
				t.Fatal(err)
			}
			expectExit(t, server)
			if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectInconclusive {
				t.Errorf("while nothing answers: %s (%s)", effect, evidence)
			}
			if err := faulttest.Called(injector.Inject(t.Context(), target)); err == nil {
				t.Error("success for a server that does not answer, want an error: it may not have been ended by the fault")
			}
			server.Restart()
			next := server.Info("run_id")
			await.Until(t, "the next process answers the operator", func() error {
				_, err := deps.Servers.Ask(t.Context(), server.Address(), deps.Login)
				return err
			})
			if err := faulttest.Called(injector.Inject(t.Context(), target)); err != nil {
				t.Errorf("inject once more: %v", err)
			}
			expectSameProcess(t, server, next)
			if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed ||
				!strings.Contains(evidence, target.RunID) {
				t.Errorf("after: %s (%s)", effect, evidence)
			}
		})
	}
}

// A server that refuses keeps running, and the error contains its message.
func TestCrashRefused(t *testing.T) { redistest.Each(t, testCrashRefused) }

func testCrashRefused(t *testing.T) {
	t.Parallel()
	user := redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient}
	for _, tc := range []struct {
		name     string
		options  redistest.Options
		login    redis.Login
		method   v1alpha1.CrashMethod
		wantText string
	}{
		{
			"NOPERM for SHUTDOWN",
			redistest.Options{Users: []string{"app on >pw ~* +info +ping"}},
			user,
			v1alpha1.CrashShutdown,
			"NOPERM",
		},
		{
			"NOPERM for PING",
			redistest.Options{Users: []string{"app on >pw ~* +info +shutdown"}},
			user,
			v1alpha1.CrashShutdown,
			"NOPERM",
		},
		{
			"DEBUG is off by default",
			redistest.Options{Config: []string{"enable-debug-command no"}},
			redis.Login{Timeout: faulttest.Patient},
			v1alpha1.CrashSegfault,
			"DEBUG",
		},
		{
			"NOPERM for DEBUG",
			redistest.Options{Users: []string{"app on >pw ~* +info +ping"}},
			user,
			v1alpha1.CrashSegfault,
			"NOPERM",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t, tc.options)
			deps, target := inPod(t, server, tc.login)
			injector := crash(t, deps, tc.method)
			err := faulttest.Called(injector.Inject(t.Context(), target))
			if err == nil || !strings.Contains(err.Error(), tc.wantText) || !strings.Contains(err.Error(), server.Address()) {
				t.Errorf("error %v, want one with %q and the address", err, tc.wantText)
			}
			expectSameProcess(t, server, target.RunID)
			if effect, _ := injector.Effect(t.Context(), target); effect != v1alpha1.EffectNotObserved {
				t.Errorf("effect %s of a refusal", effect)
			}
		})
	}
}

func TestSegfaultRealServer(t *testing.T) { redistest.Each(t, testSegfaultRealServer) }

func testSegfaultRealServer(t *testing.T) {
	t.Parallel()
	// it may take seconds
	server := redistest.NewServer(t, redistest.Options{Config: []string{"crash-memcheck-enabled no"}})
	deps, target := inPod(t, server, redis.Login{Timeout: 30 * time.Second})
	if err := faulttest.Called(crash(t, deps, v1alpha1.CrashSegfault).Inject(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	expectExit(t, server)
}

// A failed login, a hanging server and a cancelled context are errors, never a success.
func TestCrashWithUnknownResult(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{Password: "s3cret"})
	runID := server.Info("run_id")
	hung, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name, address string
		ctx           context.Context
		login         redis.Login
	}{
		{"no password", server.Address(), t.Context(), redis.Login{}},
		{"a wrong password", server.Address(), t.Context(), redis.Login{Password: "guess"}},
		{"no answer", hung.Addr().String(), t.Context(), redis.Login{Timeout: 200 * time.Millisecond}},
		{"the context has ended", server.Address(), cancelled, redis.Login{Password: "s3cret"}},
		{"no listener", "127.0.0.1:1", t.Context(), redis.Login{Timeout: 200 * time.Millisecond}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, end := range map[string]func(context.Context, string, redis.Login) error{
				"SHUTDOWN":       topology.NewReal().Shutdown,
				"DEBUG SEGFAULT": topology.NewReal().Segfault,
			} {
				began := time.Now()
				if err := end(tc.ctx, tc.address, tc.login); err == nil {
					t.Errorf("%s: success", name)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("%s took %s", name, took)
				}
			}
		})
	}
	expectSameProcess(t, server, runID)
}
