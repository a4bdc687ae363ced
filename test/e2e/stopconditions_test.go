//go:build e2e

package e2e_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

func TestStopConditions(t *testing.T) {
	t.Parallel()
	stopConditions(t)
}

// stopConditions has a real Prometheus guard a setting of Redis, twice: it is reverted when a metric of the shop rises,
// and when Prometheus is killed.
// The times between cause, breach and the setting's return, which a client of Redis sees, are printed.
func stopConditions(t *testing.T) {
	n := newNamespace(t, "stopif")
	n.applyRedis(nil)
	objects, err := readObjects(filepath.Join("testdata", "prometheus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		n.create(object)
	}
	n.podReady("prometheus", deployTime)
	n.create(n.smallLoad("base", 2*time.Hour))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)

	for _, test := range []struct {
		name, says string
		cause      func()
		verdict    v1alpha1.Verdict
	}{
		{"metric", "the result is 0.25, above 0.01", func() { n.serveErrorRate("0.25") }, v1alpha1.VerdictFail},
		{"killed", "spec.stopIf.queries[checkout]: ", func() {
			n.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: n.name}},
				client.GracePeriodSeconds(0))
		}, v1alpha1.VerdictInconclusive},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := n.in(t)
			n.serveErrorRate("0.001")
			n.knowsErrorRate("0.001")
			n.create(n.guarded(test.name))
			n.waitFault(test.name, patience, v1alpha1.ReasonActive)
			n.settingIs("always", patience)
			caused := time.Now()
			test.cause()
			reverted := n.settingIs("everysec", patience)
			fault := n.waitFault(test.name, 2*patience, v1alpha1.ReasonStopConditionMet)
			b := fault.Status.Breach
			if b == nil || !strings.Contains(b.Message, test.says) || b.Answered != (test.verdict == v1alpha1.VerdictFail) ||
				fault.Status.Verdict != test.verdict {
				t.Fatalf("breach %+v, verdict %s; want %q, %s", b, fault.Status.Verdict, test.says, test.verdict)
			}
			t.Logf("from the cause to the breach %s, from the breach to the setting as before %s: %s",
				b.At.Sub(caused).Round(time.Millisecond), reverted.Sub(b.At.Time).Round(time.Millisecond), b.Message)
			n.isReverted(fault)
		})
	}
}

// guarded is a setting for an hour, as long as the shop's rate of errors is known and low.
func (n *namespace) guarded(name string) *v1alpha1.RedisFault {
	return faultOn("base", name, v1alpha1.FaultConfig, func(s *v1alpha1.RedisFaultSpec) {
		s.Trigger = v1alpha1.FaultTrigger{After: span(12 * time.Second)}
		s.Action.Config, s.Duration = &v1alpha1.Config{
			Parameters: map[string]v1alpha1.ParameterValue{"appendfsync": "always"},
		}, span(time.Hour)
		s.StopIf = &v1alpha1.StopConditions{Queries: []v1alpha1.StopQuery{{
			Name:       "checkout",
			Prometheus: v1alpha1.PrometheusServer{URL: "http://prometheus." + n.name + ".svc:9090"},
			Query:      "max(checkout_error_rate)",
			Above:      new("0.01"),
			Every:      metav1.Duration{Duration: 12 * time.Second}, // an answer may take nine tenths of it, at most 10 s
		}}}
	})
}

// serveErrorRate has the shop serve a value of its metric from now on.
func (n *namespace) serveErrorRate(value string) {
	n.Helper()
	n.inPod("shop", "echo checkout_error_rate "+value+" > /srv/next && mv /srv/next /srv/metrics")
}

// knowsErrorRate waits until Prometheus has a value of the shop's metric.
func (n *namespace) knowsErrorRate(value string) {
	n.Helper()
	n.eventually(patience, "Prometheus has an error rate of "+value, func() (bool, string) {
		out := n.inPod("shop", "wget -qO- 'http://localhost:9090/api/v1/query?query=checkout_error_rate'")
		return strings.Contains(out, `"`+value+`"`), out
	})
}

// inPod runs a command in a container of pod prometheus.
func (n *namespace) inPod(container, command string) string {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "kubectl", "-n", n.name, "exec", "prometheus", "-c", container, "--", "sh", "-c",
		command).CombinedOutput()
	if err != nil {
		n.Fatalf("in container %s: %s: %v\n%s", container, command, err, out)
	}
	return string(out)
}

// settingIs waits until Redis has a value of appendfsync, and returns when it was seen.
func (n *namespace) settingIs(value string, within time.Duration) time.Time {
	n.Helper()
	server := n.redis()
	await.Within(n.T, within, "appendfsync is "+value, func() error {
		got, err := server.ConfigGet(n.Context(), "appendfsync").Result()
		if err == nil {
			err = await.That(got["appendfsync"] == value, "it is %v", got)
		}
		return err
	})
	return time.Now()
}
