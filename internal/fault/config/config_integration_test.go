//go:build integration

package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

type parameters = map[string]v1alpha1.ParameterValue

func configFault(values parameters, allow ...v1alpha1.Allowance) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultConfig, Config: &v1alpha1.Config{Parameters: values}},
		Allow:  allow,
	}
}

// expectSettings fails the test unless the server has exactly these values.
func expectSettings(t *testing.T, server *redistest.Server, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := redistest.Pairs(server.Do("config", "get", name))[name]; got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

func wantEffect(
	t *testing.T, injector contract.Injector, target *v1alpha1.FaultTarget, want v1alpha1.Effect, wantText string,
) {
	t.Helper()
	if got, evidence := injector.Effect(t.Context(), target); got != want || !strings.Contains(evidence, wantText) {
		t.Errorf("effect %s (%s), want %s about %q", got, evidence, want, wantText)
	}
}

// wantSteps fails the test unless err reports that the call is not complete.
func wantSteps(t *testing.T, err error, wantText string) {
	t.Helper()
	var steps *faulttest.Pending
	if !errors.As(err, &steps) || !strings.Contains(steps.Message, wantText) {
		t.Fatalf("%v, want work in progress about %q", err, wantText)
	}
}

func TestConfigInjectAndRevert(t *testing.T) { redistest.Each(t, testConfigInjectAndRevert) }

func testConfigInjectAndRevert(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	before := map[string]string{
		"maxmemory":                  "0",
		"timeout":                    "0",
		"client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
	}
	during := map[string]string{
		"maxmemory":                  "104857600",
		"timeout":                    "300",
		"client-output-buffer-limit": "normal 1048576 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
	}
	spec := configFault(parameters{"maxmemory": "100mb", "timeout": "300", "client-output-buffer-limit": "normal 1mb 0 0"})
	injector, target := s.Aim(spec)
	expectSettings(t, server, before)
	wantEffect(t, injector, target, v1alpha1.EffectNotObserved, "still shows")
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target))) // of a target without an injection
	if begun, err := injector.Begun(t.Context(), target); begun || err != nil {
		t.Errorf("begun before the injection: %v, %v", begun, err)
	}
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	expectSettings(t, server, during)
	if begun, err := injector.Begun(t.Context(), target); !begun || err != nil {
		t.Errorf("begun after the injection: %v, %v", begun, err)
	}
	wantEffect(t, injector, target, v1alpha1.EffectConfirmed, "maxmemory 104857600")
	server.Do("config", "set", "timeout", "0")
	wantEffect(t, injector, target, v1alpha1.EffectNotObserved, "timeout 0 instead of timeout 300")

	reborn := s.Reborn(spec)
	faulttest.Must(t, faulttest.Called(reborn.Revert(t.Context(), target)))
	faulttest.Must(t, faulttest.Called(reborn.Revert(t.Context(), target)))
	expectSettings(t, server, before)
	if got := rewritesOf(t, server); got != 0 {
		t.Errorf("the file was rewritten %d times, want none: no other client rewrote it", got)
	}
}

func rewritesOf(t *testing.T, server *redistest.Server) int64 {
	t.Helper()
	now := target.TallyOf(redis.ParseInfo(server.Do("info", "commandstats").(string) + "\ncmdstat_config|get:"))
	if now == nil {
		t.Fatal("the server does not count its commands")
	}
	return now.Rewrites
}

// The operator crashed after the command and before it stored anything: the next one detects that the fault has begun,
// and the record reverts it.
func TestConfigAfterOperatorCrash(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := configFault(parameters{"maxmemory": "100mb"})
	injector, target := s.Aim(spec)
	stored := target.DeepCopy()
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))

	reborn := s.Reborn(spec)
	if begun, err := reborn.Begun(t.Context(), stored); !begun || err != nil {
		t.Errorf("begun: %v, %v", begun, err)
	}
	aborted := stored.DeepCopy()
	faulttest.Must(t, faulttest.Called(reborn.Revert(t.Context(), aborted)))
	expectSettings(t, server, map[string]string{"maxmemory": "0"})
	faulttest.Must(t, faulttest.Called(reborn.Inject(t.Context(), stored)))
	wantEffect(t, reborn, stored, v1alpha1.EffectConfirmed, "maxmemory 104857600")
	faulttest.Must(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), stored)))
	expectSettings(t, server, map[string]string{"maxmemory": "0"})
}

func TestConfigRefused(t *testing.T) { redistest.Each(t, testConfigRefused) }

func testConfigRefused(t *testing.T) {
	t.Parallel()
	user := redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient}
	for _, tc := range []struct {
		name     string
		options  redistest.Options
		login    redis.Login
		spec     *v1alpha1.RedisFaultSpec
		reason   string
		wantText string
	}{
		{
			"unknown",
			redistest.Options{},
			redis.Login{},
			configFault(parameters{"timeout": "1", "max-memory": "1"}),
			v1alpha1.ReasonInvalidSpec,
			"spec.action.config.parameters.max-memory: the server",
		},
		{
			"immutable",
			redistest.Options{},
			redis.Login{},
			configFault(parameters{"timeout": "1", "tcp-backlog": "1"}),
			v1alpha1.ReasonInvalidSpec,
			"spec.action.config.parameters.tcp-backlog: CONFIG SET at 127.0.0.1",
		},
		{
			"no append-only file",
			redistest.Options{},
			redis.Login{},
			configFault(parameters{"appendfsync": "always"}),
			v1alpha1.ReasonInvalidSpec,
			`set appendonly: "yes" beside it`,
		},
		{
			"evicts",
			redistest.Options{Config: []string{"maxmemory-policy allkeys-lru"}},
			redis.Login{},
			configFault(parameters{"maxmemory": "10mb"}),
			v1alpha1.ReasonBlastRadius,
			"spec.allow: [Eviction]",
		},
		{
			"may not set",
			redistest.Options{Users: []string{"app on >pw ~* +@all -config|set"}},
			user,
			configFault(parameters{"timeout": "1"}),
			v1alpha1.ReasonNotSupported,
			"+config|set",
		},
		{
			"may not rewrite",
			redistest.Options{Users: []string{"app on >pw ~* +@all -config|rewrite"}},
			user,
			configFault(parameters{"timeout": "1"}),
			v1alpha1.ReasonNotSupported,
			"+config|rewrite",
		},
		{
			"renamed",
			redistest.Options{Config: []string{`rename-command CONFIG ""`}},
			redis.Login{},
			configFault(parameters{"timeout": "1"}),
			v1alpha1.ReasonNotSupported,
			"CONFIG",
		},
		{
			"nothing",
			redistest.Options{},
			redis.Login{},
			configFault(nil),
			v1alpha1.ReasonInvalidSpec,
			"spec.action.config.parameters",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := faulttest.NewStage(t, Kinds, guard.Choose)
			s.Login.Username, s.Login.Password = tc.login.Username, tc.login.Password
			s.Host("redis-0", redistest.NewServer(t, tc.options), nil)
			_, _, err := s.TryAim(tc.spec)
			if problem := faulttest.ProblemOf(t, err); problem.Reason != tc.reason || !problem.Lasting ||
				!strings.Contains(problem.Message, tc.wantText) {
				t.Errorf("%+v, want %s about %q", problem, tc.reason, tc.wantText)
			}
		})
	}
	t.Run("eviction allowed", func(t *testing.T) {
		t.Parallel()
		s := faulttest.NewStage(t, Kinds, guard.Choose)
		server := redistest.NewServer(t, redistest.Options{Config: []string{"maxmemory-policy allkeys-lru"}})
		s.Host("redis-0", server, nil)
		injector, target := s.Aim(configFault(parameters{"maxmemory": "10mb"}, v1alpha1.AllowEviction))
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
		expectSettings(t, server, map[string]string{"maxmemory": "10485760"})
	})
}

// If the server refuses a value, the error contains its message, and no other setting is changed.
func TestConfigBadValue(t *testing.T) { redistest.Each(t, testConfigBadValue) }

func testConfigBadValue(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{Config: []string{"appendonly yes"}})
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	s.Host("redis-0", server, nil)
	injector, target := s.Aim(configFault(parameters{"appendfsync": "sometimes", "timeout": "7"}))
	problem := faulttest.ProblemOf(t, faulttest.Called(injector.Inject(t.Context(), target)))
	if !strings.HasPrefix(problem.Message, "spec.action.config.parameters.appendfsync:") ||
		!strings.Contains(problem.Message, "everysec, always, no") {
		t.Errorf("got %v, want the field and its values", problem)
	}
	expectSettings(t, server, map[string]string{"timeout": "0", "appendfsync": "everysec"})
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
}

// All other clients are refused during the fault: the connection that was opened before reverts it. A restarted
// operator has none, and connects as soon as a client leaves.
func TestConfigMaxClients(t *testing.T) { redistest.Each(t, testConfigMaxClients) }

func testConfigMaxClients(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	server.Do("ping") // a client that stays connected
	spec := configFault(parameters{"maxclients": "1"})
	injector, target := s.Aim(spec)
	old := redistest.Pairs(server.Do("config", "get", "maxclients"))["maxclients"]
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	wantEffect(t, injector, target, v1alpha1.EffectConfirmed, "maxclients 1")
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
	expectSettings(t, server, map[string]string{"maxclients": old})

	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	reborn := s.Reborn(spec)
	if err := faulttest.Called(reborn.Revert(t.Context(), target)); err == nil {
		t.Error("revert succeeded though the server refuses connections")
	}
	if by := reborn.ManualRevertCommand(target); !strings.Contains(by, "CONFIG SET maxclients "+old) ||
		!strings.HasPrefix(by, "until ") {
		t.Errorf("manual command: %s", by)
	}
	server.Client().Close()
	await.Until(t, "the next operator gets in", func() error {
		return faulttest.Called(s.Reborn(spec).Revert(t.Context(), target))
	})
	if got := topology.Pairs(doAt(t, s, server, "CONFIG", "GET", "maxclients"))["maxclients"]; got != old {
		t.Errorf("maxclients is %s, want %s", got, old)
	}
}

func doAt(t *testing.T, s *faulttest.Stage, server *redistest.Server, words ...any) any {
	t.Helper()
	reply, err := s.Real.Do(t.Context(), server.Address(), s.Login, words...)
	faulttest.Must(t, err)
	return reply
}

// Sentinel rewrites the configuration file of the primary that it demotes, with the values of the fault.
func TestConfigFileRewrittenBySentinel(t *testing.T) {
	redistest.Each(t, testConfigFileRewrittenBySentinel)
}

func testConfigFileRewrittenBySentinel(t *testing.T) {
	t.Parallel()
	sentinel := redistest.SharedSentinel(t)
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	s.Host("redis-0", sentinel.Primary, nil)
	spec := configFault(parameters{"maxmemory": "100mb", "timeout": "300"})
	injector, target := s.Aim(spec)
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	sentinel.Failover()
	await.Until(t, "the file holds the fault", func() error {
		if strings.Contains(faulttest.FileOf(t, sentinel.Primary), "timeout 300") {
			return nil
		}
		return errors.New("not yet")
	})
	sentinel.WaitSettled(2)
	await.Until(t, "the effect is confirmed", func() error { // a demotion closes the connections
		if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed ||
			!strings.Contains(evidence, "timeout 300") {
			return fmt.Errorf("%s: %s", effect, evidence)
		}
		return nil
	})
	faulttest.Must(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)))
	expectSettings(t, sentinel.Primary, map[string]string{"maxmemory": "0", "timeout": "0"})
	if text := faulttest.FileOf(t, sentinel.Primary); strings.Contains(text, "timeout 300") ||
		strings.Contains(text, "maxmemory 100mb") || strings.Contains(text, "maxmemory 104857600") {
		t.Errorf("the file still contains the values of the fault:\n%s", text)
	}
}

// A server that restarts during the fault has the values of its file. If the file is unchanged, there is nothing to
// revert.
func TestConfigServerRestarts(t *testing.T) { redistest.Each(t, testConfigServerRestarts) }

func testConfigServerRestarts(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := configFault(parameters{"timeout": "300"})
	injector, target := s.Aim(spec)
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	server.Kill() // the client may find its connection broken, or the next one refused
	wantEffect(t, injector, target, v1alpha1.EffectInconclusive, "INFO at ")
	if err := faulttest.Called(injector.Revert(t.Context(), target)); err == nil {
		t.Error("revert succeeded though the server does not answer")
	}
	server.Restart()
	wantEffect(t, injector, target, v1alpha1.EffectNotObserved, "the server has restarted")
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target))) // another process: it is not changed
	expectSettings(t, server, map[string]string{"timeout": "0"})
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
	if n := rewritesOf(t, server); n != 0 {
		t.Errorf("the file was rewritten %d times, want none", n)
	}
}

// If the file was rewritten during the fault, the next process has the values of the fault, and so would all later
// ones. The operator crashes after each of its steps.
func TestConfigRewrittenAndRestarted(t *testing.T) {
	redistest.Each(t, testConfigRewrittenAndRestarted)
}

func testConfigRewrittenAndRestarted(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := configFault(parameters{"timeout": "300"})
	injector, target := s.Aim(spec)
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	server.Do("config", "rewrite")
	server.Restart()
	wantEffect(t, injector, target, v1alpha1.EffectConfirmed, "the server has restarted: CONFIG GET shows timeout 300")
	forgotten := target.DeepCopy()
	// and crashes before that is stored
	wantSteps(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), forgotten)), "was rewritten during the fault")
	wantSteps(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)), "was rewritten during the fault")
	server.Do("config", "set", "timeout", "0") // it crashes between CONFIG SET and CONFIG REWRITE
	faulttest.Must(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)))
	if text := faulttest.FileOf(t, server); strings.Contains(text, "timeout 300") {
		t.Errorf("the file still contains the values of the fault:\n%s", text)
	}
	server.Restart()
	expectSettings(t, server, map[string]string{"timeout": "0"})
}

// A pod of a StatefulSet is replaced: the next one has the same volume, with the file on it.
func TestConfigPodReplaced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		outlives bool
	}{{"file on a volume", true}, {"file in the pod", false}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t)
			s := faulttest.NewStage(t, Kinds, guard.Choose)
			mounted := func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "data"}}
				if tc.outlives {
					p.Spec.Volumes[0].PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-redis-0"}
				}
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
					{Name: "data", MountPath: filepath.Dir(server.Info("config_file"))},
				}
			}
			pod := s.Host("redis-0", server, mounted)
			spec := configFault(parameters{"timeout": "300"})
			injector, target := s.Aim(spec)
			faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
			server.Do("config", "rewrite")
			server.Restart()
			faulttest.Must(t, s.Cluster.Delete(t.Context(), pod))
			wantEffect(t, injector, target, v1alpha1.EffectNotObserved, "does not exist any more")
			if err := faulttest.Called(injector.Revert(t.Context(), target)); (err != nil) != tc.outlives {
				t.Errorf("while there is no pod: %v", err)
			}
			s.Host("redis-0", server, func(p *corev1.Pod) {
				mounted(p)
				p.UID = "another"
			})
			faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
			if !tc.outlives {
				faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
				expectSettings(t, server, map[string]string{"timeout": "300"}) // not the fault's: the pod is another
				return
			}
			wantSteps(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)), "was rewritten")
			faulttest.Must(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)))
			server.Restart()
			expectSettings(t, server, map[string]string{"timeout": "0"})
		})
	}
}

// A value of a replacement pod that is neither the old one nor that of the fault is kept.
func TestConfigKeepsValueOfReplacement(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	mounted := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{
				Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-redis-0"},
				},
			},
		}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "data", MountPath: filepath.Dir(server.Info("config_file"))},
		}
	}
	pod := s.Host("redis-0", server, mounted)
	injector, target := s.Aim(configFault(parameters{"timeout": "300"}))
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	server.Do("config", "set", "timeout", "77")
	faulttest.Must(t, s.Cluster.Delete(t.Context(), pod))
	s.Host("redis-0", server, func(p *corev1.Pod) {
		mounted(p)
		p.UID = "another"
	})
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
	expectSettings(t, server, map[string]string{"timeout": "77"})
}

// Data is durable again only after the append-only file was rewritten.
func TestConfigAppendOnly(t *testing.T) { redistest.Each(t, testConfigAppendOnly) }

func testConfigAppendOnly(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{Config: []string{"appendonly yes", "rdb-key-save-delay 2000"}})
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	s.Host("redis-0", server, nil)
	server.Do("debug", "populate", 1000)
	spec := configFault(parameters{"appendonly": "no"})
	injector, target := s.Aim(spec)
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	wantEffect(t, injector, target, v1alpha1.EffectConfirmed, "aof_enabled:0")
	wantSteps(t, faulttest.Called(injector.Revert(t.Context(), target)), "written anew")
	await.Until(t, "the file is written", func() error {
		return faulttest.Called(s.Reborn(spec).Revert(t.Context(), target))
	})
	if server.Info("aof_enabled") != "1" || server.Info("aof_rewrite_in_progress") != "0" ||
		server.Info("aof_last_bgrewrite_status") != "ok" {
		t.Errorf("aof_enabled:%s, aof_rewrite_in_progress:%s", server.Info("aof_enabled"),
			server.Info("aof_rewrite_in_progress"))
	}
}
