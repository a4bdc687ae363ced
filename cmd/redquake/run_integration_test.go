//go:build integration

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
)

// wrote waits until a process has written something to standard error.
func (p *place) wrote(command *process, text string) {
	p.Helper()
	p.eventually(text+" on standard error", func() bool {
		return strings.Contains(command.err.String(),
			text)
	}, &command.err)
}

// A run creates the load test before its fault, shows what changes, and ends with the worst verdict.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		load, fault v1alpha1.Verdict
		code        int
	}{
		"pass":         {v1alpha1.VerdictPass, v1alpha1.VerdictPass, 0},
		"fail":         {v1alpha1.VerdictInconclusive, v1alpha1.VerdictFail, 1},
		"inconclusive": {v1alpha1.VerdictInconclusive, v1alpha1.VerdictPass, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			command := begin(t, p.env, "run", "-f", p.file(loadAndKill))
			p.setLoad(v1alpha1.ReasonRunning, false, "")
			p.setFault(v1alpha1.ReasonActive, false, "", true)
			p.wrote(command, "redisfault/kill  +0s Injected redis-0")
			p.setLoad(v1alpha1.ReasonSucceeded, true, c.load)
			p.setFault(v1alpha1.ReasonSucceeded, true, c.fault, false)
			code, out, stderr := command.code(t), command.out.String(), command.err.String()
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			var order []string
			for line := range strings.Lines(stderr) {
				if strings.HasSuffix(line, "created\n") || strings.HasSuffix(line, "applied\n") {
					order = append(order, strings.TrimSpace(line))
				}
			}
			if want := []string{
				"configmap/other applied", "redisloadtest/load created",
				"redisfault/kill created",
			}; !slices.Equal(order, want) {
				t.Errorf("%q, want %q", order, want)
			}
			for _, want := range []string{
				string(c.load) + ": load test " + p.namespace + "/load\n",
				string(c.fault) + ": fault " + p.namespace + "/kill\n", "\nOutage             1.08 s",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if strings.Contains(stderr+out, "\x1b") {
				t.Errorf("escape sequences without a terminal: %q", stderr+out)
			}
			if !p.read("other", &corev1.ConfigMap{}) {
				t.Error("the ConfigMap was not applied")
			}
		})
	}
}

// Ctrl-C aborts both objects, and waits until they are over; a second one leaves, and says what still acts.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	for name, twice := range map[string]bool{"once": false, "twice": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			command := begin(t, p.env, "run", "-f", p.file(loadAndKill))
			p.setLoad(v1alpha1.ReasonRunning, false, "")
			p.setFault(v1alpha1.ReasonActive, false, "", true)
			p.wrote(command, "redisfault/kill  Active")
			_ = command.cmd.Process.Signal(os.Interrupt)
			p.eventually("spec.abort of both", func() bool { return p.load().Spec.Abort && p.kill().Spec.Abort })
			if twice {
				_ = command.cmd.Process.Signal(os.Interrupt)
			} else {
				p.setLoad(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive)
				p.setFault(v1alpha1.ReasonReverting, false, "", true)
				p.wrote(command, "redisfault/kill  Reverting")
				p.setFault(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive, false)
			}
			code, stderr := command.code(t), command.err.String()
			still := strings.Contains(stderr, "redisfault/kill still acts on Redis (Active") &&
				strings.Contains(stderr, "redquake watch -n "+p.namespace+" redisloadtest/load redisfault/kill")
			if code != cli.ExitInterrupted || still != twice {
				t.Errorf("exit code %d, stderr\n%s", code, stderr)
			}
			if !twice && !strings.Contains(command.out.String(), "Inconclusive: fault "+p.namespace+"/kill\n") {
				t.Errorf("stdout\n%s", command.out.String())
			}
		})
	}
}

// After the timeout everything is aborted and reverted, and the exit code is that of an error.
func TestRunTimeout(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	command := begin(t, p.env, "run", "-f", p.file(loadAndKill), "--timeout", "10s")
	p.eventually("spec.abort", func() bool { return p.load().Spec.Abort && p.kill().Spec.Abort })
	p.setLoad(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive)
	p.setFault(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive, false)
	if code, stderr := command.code(t),
		command.err.String(); code != cli.ExitError || !strings.Contains(stderr, "the timeout of 10s has passed: aborted") {
		t.Errorf("exit code %d, stderr\n%s", code, stderr)
	}
}

// What the API server refuses is shown as it is, and nothing of the file runs.
func TestRunRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, tc := range []struct{ valid, refused, object, why string }{
		{
			"{type: PodKill}", "{type: PodKill, podKill: {gracePeriodSeconds: -1}}",
			"create redisfault/kill: ", "spec.action.podKill.gracePeriodSeconds",
		},
		// server-side apply calls it "an associative list with keys", before the API server validates anything
		{"{name: get, ", "{", "create redisloadtest/load: ", "spec.workload.commands[0].name: Required value"},
	} {
		text := strings.Replace(loadAndKill, tc.valid, tc.refused, 1)
		code, _, stderr := runCommand(t, p.env, "run", "-f", p.file(text))
		if code != cli.ExitError || !strings.Contains(stderr, tc.object) || !strings.Contains(stderr, tc.why) ||
			strings.Contains(stderr, "associative") {
			t.Errorf("%s: exit code %d, stderr\n%s", tc.refused, code, stderr)
		}
	}
	if p.read("load", &v1alpha1.RedisLoadTest{}) || p.read("kill", &v1alpha1.RedisFault{}) ||
		p.read("other", &corev1.ConfigMap{}) {
		t.Error("something was created")
	}
	// A user without rights: the message names the permission.
	restricted := *p.config
	restricted.Impersonate.UserName = "jane"
	env := []string{"KUBECONFIG=" + p.kubeconfig(&restricted)}
	code, _, stderr := runCommand(t, env, "run", "-f", p.file(loadAndKill))
	if code != cli.ExitError || !strings.Contains(stderr, "read redisloadtest/load: not permitted: ") ||
		!strings.Contains(stderr, `User "jane" cannot get resource "redisloadtests"`) {
		t.Errorf("exit code %d, stderr\n%s", code, stderr)
	}
}

// An object that is over is not applied silently; --rerun and rerun create it again, and the new fault names the new
// load test.
func TestRerun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	command := begin(t, p.env, "run", "-f", p.file(loadAndKill))
	p.setLoad(v1alpha1.ReasonSucceeded, true, v1alpha1.VerdictPass)
	p.setFault(v1alpha1.ReasonSucceeded, true, v1alpha1.VerdictPass, false)
	if code := command.code(t); code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, command.err.String())
	}
	code, _, stderr := runCommand(t, p.env, "run", "-f", p.file(loadAndKill))
	if code != cli.ExitError || !strings.Contains(stderr, "redisloadtest/load exists, and is over (Succeeded, Pass)") ||
		!strings.Contains(stderr, "redquake rerun redisloadtest/load") {
		t.Errorf("exit code %d, stderr\n%s", code, stderr)
	}
	code, out, stderr := runCommand(t, p.env, "rerun", "load")
	names := strings.Fields(out)
	if code != 0 || len(names) != 2 || !strings.HasPrefix(names[0], "redisloadtest/load-") ||
		!strings.HasPrefix(names[1], "redisfault/kill-") {
		t.Fatalf("exit code %d, stdout %q, stderr\n%s", code, out, stderr)
	}
	fault := &v1alpha1.RedisFault{}
	if !p.read(strings.TrimPrefix(names[1], "redisfault/"), fault) ||
		"redisloadtest/"+fault.Spec.LoadTestRef.Name != names[0] || fault.Annotations[v1alpha1.AnnotationRerunOf] != "kill" {
		t.Errorf("%q is on %+v, annotations %v", names[1], fault.Spec.LoadTestRef, fault.Annotations)
	}
	if code, _, stderr := runCommand(t, p.env, "rerun", "kill"); code != cli.ExitError ||
		!strings.Contains(stderr, "RedisLoadTest load is over; run both again: redquake rerun redisloadtest/load") {
		t.Errorf("exit code %d, stderr\n%s", code, stderr)
	}
	again := begin(t, p.env, "run", "-f", p.file(loadAndKill), "--rerun", "--timeout", "1m")
	p.wrote(again, "redisfault/kill-")
	var tests v1alpha1.RedisLoadTestList
	if err := p.List(t.Context(), &tests, client.InNamespace(p.namespace)); err != nil || len(tests.Items) != 3 {
		t.Errorf("%d load tests, %v", len(tests.Items), err)
	}
}

// Completion offers what is in the cluster, and of stop only what is not over.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begin(t, p.env, "run", "-f", p.file(loadAndKill))
	p.setLoad(v1alpha1.ReasonRunning, false, "")
	p.setFault(v1alpha1.ReasonSucceeded, true, v1alpha1.VerdictPass, false)
	code, out, _ := runCommand(t, p.env, "__complete", "watch", "")
	if code != 0 || !strings.Contains(out, "load\tRedisLoadTest, Running\n") ||
		!strings.Contains(out, "kill\tRedisFault, Succeeded\n") {
		t.Errorf("exit code %d, watch completes\n%s", code, out)
	}
	if _, out, _ := runCommand(t, p.env, "__complete", "stop", "-n", p.namespace, ""); !strings.Contains(out, "load\t") ||
		strings.Contains(out, "kill\t") {
		t.Errorf("stop completes\n%s", out)
	}
}
