//go:build integration

package fault

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/topology"
)

// redisServer is a real server on loopback.
type redisServer struct {
	port  int
	ended chan struct{} // closed when the process is no more
}

// startRedis starts a server with further options on a free port; it ends with the test.
func startRedis(t *testing.T, options ...string) *redisServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	return startRedisOn(t, port, options...)
}

func startRedisOn(t *testing.T, port int, options ...string) *redisServer {
	t.Helper()
	s := &redisServer{port: port, ended: make(chan struct{})}
	command := exec.Command("redis-server", append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--loglevel", "warning"}, options...)...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = command.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-s.ended
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.address()); err == nil {
			c.Close()
			return s
		}
		if time.Now().After(end) {
			t.Fatal("redis-server does not listen")
		}
	}
}

func (s *redisServer) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *redisServer) gone(t *testing.T, want bool) {
	t.Helper()
	wait := 5 * time.Second
	if !want {
		wait = 200 * time.Millisecond
	}
	select {
	case <-s.ended:
		if !want {
			t.Error("the server has ended")
		}
	case <-time.After(wait):
		if want {
			t.Error("the server goes on")
		}
	}
}

// inPod records a real server as the target that a fault selected.
func (s *redisServer) inPod(t *testing.T, w *world, login topology.Login) (Surroundings, *v1alpha1.FaultTarget) {
	t.Helper()
	w.pod("redis-0", "u0", "127.0.0.1", "", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = int32(s.port) })
	around := w.around()
	around.Servers, around.Login = topology.NewReal(), login
	found, err := Select(t.Context(), around, byPods(map[string]string{"app": "redis"}), v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary})
	if err != nil {
		t.Fatal(err)
	}
	return around, &found[0]
}

func crash(t *testing.T, around Surroundings, method v1alpha1.CrashMethod) Injector {
	t.Helper()
	injector, err := For(&v1alpha1.RedisFaultSpec{Type: v1alpha1.FaultProcessCrash, ProcessCrash: &v1alpha1.ProcessCrash{Method: method}}, around)
	if err != nil {
		t.Fatal(err)
	}
	return injector
}

// SHUTDOWN, with and without a password; then the same record again before another process on the same address, which must live.
func TestCrashRealServer(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options []string
		login   topology.Login
	}{
		{"without a password", nil, topology.Login{Timeout: time.Second}},
		{"with a password", []string{"--requirepass", "s3cret"}, topology.Login{Password: "s3cret", Timeout: time.Second}},
		{"as an ACL user", []string{"--user", "app", "on", ">pw", "~*", "+info", "+ping", "+shutdown"}, topology.Login{Username: "app", Password: "pw", Timeout: time.Second}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, server := newWorld(t), startRedis(t, tc.options...)
			around, target := server.inPod(t, w, tc.login)
			if target.Role != v1alpha1.RolePrimary || len(target.RunID) != 40 {
				t.Fatalf("recorded %+v", target)
			}
			injector := crash(t, around, v1alpha1.CrashShutdown)
			if err := injector.Preflight(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectNotObserved {
				t.Errorf("before: %s (%s)", effect, evidence)
			}
			if err := injector.Inject(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			server.gone(t, true)
			if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectInconclusive {
				t.Errorf("while nothing answers: %s (%s)", effect, evidence)
			}
			if err := injector.Inject(t.Context(), target); err == nil {
				t.Error("a server that does not answer passes for one that was ended: who ended it is not known")
			}
			next := startRedisOn(t, server.port, tc.options...)
			waitFor(t, around, server.address())
			if err := injector.Inject(t.Context(), target); err != nil {
				t.Errorf("inject once more: %v", err)
			}
			next.gone(t, false)
			if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed || !strings.Contains(evidence, target.RunID) {
				t.Errorf("after: %s (%s)", effect, evidence)
			}
		})
	}
}

func waitFor(t *testing.T, around Surroundings, address string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := around.Servers.Ask(t.Context(), address, around.Login)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// A server that refuses lives, and the refusal is an error with the server's words.
func TestCrashRefused(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options []string
		login   topology.Login
		method  v1alpha1.CrashMethod
		says    string
	}{
		{"NOPERM for SHUTDOWN", []string{"--user", "app", "on", ">pw", "~*", "+info", "+ping"}, topology.Login{Username: "app", Password: "pw", Timeout: time.Second}, v1alpha1.CrashShutdown, "NOPERM"},
		{"NOPERM for PING", []string{"--user", "app", "on", ">pw", "~*", "+info", "+shutdown"}, topology.Login{Username: "app", Password: "pw", Timeout: time.Second}, v1alpha1.CrashShutdown, "NOPERM"},
		{"DEBUG is off by default", nil, topology.Login{Timeout: time.Second}, v1alpha1.CrashSegfault, "DEBUG"},
		{"NOPERM for DEBUG", []string{"--user", "app", "on", ">pw", "~*", "+info", "+ping", "--enable-debug-command", "yes"}, topology.Login{Username: "app", Password: "pw", Timeout: time.Second}, v1alpha1.CrashSegfault, "NOPERM"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, server := newWorld(t), startRedis(t, tc.options...)
			around, target := server.inPod(t, w, tc.login)
			injector := crash(t, around, tc.method)
			err := injector.Inject(t.Context(), target)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), server.address()) {
				t.Errorf("error %v, want one with %q and the address", err, tc.says)
			}
			server.gone(t, false)
			if effect, _ := injector.Effect(t.Context(), target); effect != v1alpha1.EffectNotObserved {
				t.Errorf("effect %s of a refusal", effect)
			}
		})
	}
}

func TestSegfaultRealServer(t *testing.T) {
	w, server := newWorld(t), startRedis(t, "--enable-debug-command", "yes")
	around, target := server.inPod(t, w, topology.Login{Timeout: 2 * time.Second})
	if err := crash(t, around, v1alpha1.CrashSegfault).Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	server.gone(t, true)
}

// A login that fails, a server that hangs and a context that ends are errors, never a success.
func TestCrashThatCannotBeTold(t *testing.T) {
	server := startRedis(t, "--requirepass", "s3cret")
	hung, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name, address string
		ctx           context.Context
		login         topology.Login
	}{
		{"no password", server.address(), t.Context(), topology.Login{}},
		{"a wrong password", server.address(), t.Context(), topology.Login{Password: "guess"}},
		{"nobody answers", hung.Addr().String(), t.Context(), topology.Login{Timeout: 200 * time.Millisecond}},
		{"the context has ended", server.address(), cancelled, topology.Login{Password: "s3cret"}},
		{"nobody listens", "127.0.0.1:1", t.Context(), topology.Login{Timeout: 200 * time.Millisecond}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, end := range map[string]func(context.Context, string, topology.Login) error{"SHUTDOWN": topology.NewReal().Shutdown, "DEBUG SEGFAULT": topology.NewReal().Segfault} {
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
	server.gone(t, false)
}

// The roles are what Redis says at that moment.
func TestSelectRealRoles(t *testing.T) {
	primary := startRedis(t)
	replica := startRedis(t, "--replicaof", "127.0.0.1", strconv.Itoa(primary.port))
	w := newWorld(t)
	on := func(s *redisServer) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = int32(s.port) }
	}
	w.pod("redis-0", "u0", "127.0.0.1", "", on(replica))
	w.pod("redis-1", "u1", "127.0.0.1", "", on(primary))
	around := w.around()
	around.Servers, around.Login = topology.NewReal(), topology.Login{Timeout: time.Second}
	for role, want := range map[v1alpha1.RedisRole]string{v1alpha1.RolePrimary: "redis-1", v1alpha1.RoleReplica: "redis-0"} {
		found, err := Select(t.Context(), around, byPods(map[string]string{"app": "redis"}), v1alpha1.FaultSelector{Role: role, Mode: v1alpha1.SelectAll})
		if err != nil || len(found) != 1 || found[0].Pod != want {
			t.Errorf("%s: %+v, %v; want %s", role, found, err, want)
		}
	}
}
