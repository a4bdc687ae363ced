//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// injectionGoal is what an injection may take at the median, from the start of `kubectl apply` to the effect.
const injectionGoal = 500 * time.Millisecond

// claimed is how long the operator keeps other faults off the load of one that has just been recorded.
const claimed = 5 * time.Second

// injection is a row of build/bench-inject.json. Times are in seconds.
type injection struct {
	Fault   string  `json:"fault"`
	Rounds  int     `json:"rounds"`
	Median  float64 `json:"medianSeconds"` // from the request that makes the object to the effect
	P90     float64 `json:"p90Seconds"`
	Longest float64 `json:"longestSeconds"`
	Kubectl float64 `json:"kubectlSeconds"` // median of what `kubectl apply` itself took
	Total   float64 `json:"totalSeconds"`   // median from the start of the program kubectl to the effect
}

// TestInjectionTimes applies faults to a load that has been running for a while, and takes the time until Redis or the
// cluster shows them. `make bench-inject` runs it alone; the figures are written to the file REDQUAKE_INJECTION_OUT.
func TestInjectionTimes(t *testing.T) {
	out := os.Getenv("REDQUAKE_INJECTION_OUT")
	if out == "" {
		t.Fatal("REDQUAKE_INJECTION_OUT must name a file for the figures; `make bench-inject` sets it")
	}
	n := newNamespace(t, "injection")
	n.applyRedis(nil)
	n.applySentinels(3)
	for name, target := range map[string]v1alpha1.RedisTarget{
		"standalone": standaloneTarget(),
		"sentinel":   sentinelTarget(),
	} {
		n.create(n.steadyLoad(name, target, time.Hour))
	}
	n.waitLoadTest("standalone", 2*time.Minute, v1alpha1.ReasonRunning)
	n.waitLoadTest("sentinel", 2*time.Minute, v1alpha1.ReasonRunning)

	var rows []injection
	for _, c := range []struct {
		name, load string
		kind       v1alpha1.FaultType
		rounds     int
		edit       func(*v1alpha1.RedisFaultSpec)
		effect     func(context.Context) (<-chan time.Time, error)
		settled    func()
	}{
		{"PodKill", "standalone", v1alpha1.FaultPodKill, 12, func(s *v1alpha1.RedisFaultSpec) {
			s.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		}, n.whenPodEnds, func() { n.podReady("redis-0", time.Minute) }},
		{"ClientPause", "standalone", v1alpha1.FaultClientPause, 12, func(s *v1alpha1.RedisFaultSpec) {
			s.Action.ClientPause, s.Duration = &v1alpha1.ClientPause{Mode: v1alpha1.PauseAll}, span(time.Second)
		}, n.whenSilent, func() { n.podReady("redis-0", time.Minute) }},
		{
			"Failover", "sentinel", v1alpha1.FaultFailover, 6, failover(v1alpha1.FailoverPlain), n.whenPromoted,
			n.sentinelsAgree,
		},
	} {
		var effects, kubectls, totals []time.Duration
		for round := range c.rounds {
			fault := faultOn(c.load, fmt.Sprintf("%s-%d", strings.ToLower(c.name), round), c.kind, c.edit)
			requested, kubectl, total := n.injectionTakes(fault, c.effect)
			t.Logf("%s %d: %s from the request, %s from the start of kubectl, which took %s", c.name, round, requested, total,
				kubectl)
			effects, kubectls, totals = append(effects, requested), append(kubectls, kubectl), append(totals, total)
			n.delete(fault)
			n.waitFaultDeleted(fault.Name)
			c.settled()
			await.Pass(claimed, "a target is claimed for so long after a fault")
		}
		rows = append(rows, injection{
			Fault: c.name, Rounds: c.rounds, Median: quantile(effects, 50), P90: quantile(effects, 90),
			Longest: quantile(effects, 100),
			Kubectl: quantile(kubectls, 50), Total: quantile(totals, 50),
		})
	}
	fmt.Printf("%-12s %6s %8s %8s %8s %14s\n", "fault", "rounds", "median", "p90", "longest", "with kubectl")
	for _, r := range rows {
		fmt.Printf("%-12s %6d %7.0fms %6.0fms %6.0fms %12.0fms\n", r.Fault, r.Rounds, 1000*r.Median, 1000*r.P90,
			1000*r.Longest, 1000*r.Total)
		if r.Total > injectionGoal.Seconds() {
			t.Errorf("%s takes %.0f ms at the median, more than %s", r.Fault, 1000*r.Total, injectionGoal)
		}
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err == nil {
		err = os.WriteFile(out, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// injectionTakes applies a fault with kubectl and returns what the effect took, from the request that made the object
// and from kubectl's start, and what kubectl took. The API server stamps objects with whole seconds only: a watch that
// exists already has the exact instant.
func (n *namespace) injectionTakes(
	fault *v1alpha1.RedisFault, effect func(context.Context) (<-chan time.Time, error),
) (requested, kubectl, total time.Duration) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), 30*time.Second)
	defer cancel()
	made, err := cluster.Watch(ctx, &v1alpha1.RedisFaultList{}, client.InNamespace(n.name))
	if err != nil {
		n.Fatal(err)
	}
	defer made.Stop()
	seen, err := effect(ctx)
	if err != nil {
		n.Fatal(err)
	}
	fault.Namespace = n.name
	fault.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RedisFault"))
	object, err := json.Marshal(fault)
	if err != nil {
		n.Fatal(err)
	}
	var manifest unstructured.Unstructured
	if err := manifest.UnmarshalJSON(object); err != nil {
		n.Fatal(err)
	}
	delete(manifest.Object, "status")
	if object, err = manifest.MarshalJSON(); err != nil {
		n.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "kubectl", "apply", "-f", "-")
	cmd.Stdin = bytes.NewReader(object)
	began := time.Now()
	ended := make(chan error, 1)
	var output []byte
	go func() {
		var err error
		output, err = cmd.CombinedOutput()
		kubectl = time.Since(began)
		ended <- err
	}()
	appeared := firstSeen(made, fault.Name)
	var at time.Time
	select {
	case at = <-seen:
	case <-ctx.Done():
	}
	if err := <-ended; err != nil {
		n.Fatalf("kubectl apply: %v: %s", err, output)
	}
	if at.IsZero() || appeared.IsZero() {
		n.Fatalf("%s showed no effect within 30s: %+v", fault.Name, n.fault(fault.Name).Status)
	}
	return at.Sub(appeared), kubectl, at.Sub(began)
}

// firstSeen is when an object of a name first came through a watch; 0 if the watch ended before.
func firstSeen(objects watch.Interface, name string) time.Time {
	for event := range objects.ResultChan() {
		if o, ok := event.Object.(client.Object); ok && o.GetName() == name {
			return time.Now()
		}
	}
	return time.Time{}
}

// whenPodEnds returns when the pod of Redis is deleted or terminating.
func (n *namespace) whenPodEnds(ctx context.Context) (<-chan time.Time, error) {
	before := n.redisPod()
	pods, err := cluster.Watch(ctx, &corev1.PodList{}, client.InNamespace(n.name), client.MatchingLabels{"app": "redis"})
	if err != nil {
		return nil, err
	}
	at := make(chan time.Time, 1)
	go func() {
		defer pods.Stop()
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if ok && pod.UID == before.UID && (event.Type == "DELETED" || pod.DeletionTimestamp != nil) {
				at <- time.Now()
				return
			}
		}
	}()
	return at, nil
}

// pingPeriod is the period of PINGs: an effect is noticed late by half of it on average.
const pingPeriod = 5 * time.Millisecond

// whenSilent returns when a Redis stopped responding: when the first PING was sent that had no reply within 300 ms.
func (n *namespace) whenSilent(ctx context.Context) (<-chan time.Time, error) {
	conn, err := net.Dial("tcp", net.JoinHostPort(n.redisPod().Status.PodIP, "6379"))
	if err != nil {
		return nil, err
	}
	at := make(chan time.Time, 1)
	go func() {
		defer func() { _ = conn.Close() }()
		reply := make([]byte, 7)
		for ctx.Err() == nil {
			sent := time.Now()
			_ = conn.SetDeadline(sent.Add(300 * time.Millisecond))
			if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
				return
			}
			if _, err := io.ReadFull(conn, reply); err != nil {
				at <- sent
				return
			}
			await.Pass(pingPeriod, "the period of the measurement")
		}
	}()
	return at, nil
}

// whenPromoted returns when a replica first reports that it is a primary.
func (n *namespace) whenPromoted(ctx context.Context) (<-chan time.Time, error) {
	promoted := make(chan time.Time, 2)
	for _, pod := range n.servers("redis-ha") {
		c := at(&pod)
		if role, err := roleAt(ctx, c); err != nil || role == "master" {
			_ = c.Close()
			if err != nil {
				return nil, err
			}
			continue
		}
		go func() {
			defer func() { _ = c.Close() }()
			for ctx.Err() == nil {
				if role, err := roleAt(ctx, c); err == nil && role == "master" {
					promoted <- time.Now()
					return
				}
				await.Pass(pingPeriod, "the period of the measurement")
			}
		}()
	}
	return promoted, nil
}

func roleAt(ctx context.Context, c *redis.Client) (string, error) {
	reply, err := c.Do(ctx, "ROLE").Slice()
	if err != nil || len(reply) == 0 {
		return "", fmt.Errorf("ROLE: %v (error %w)", reply, err)
	}
	return fmt.Sprint(reply[0]), nil
}

// quantile of durations, in seconds; 100 is the longest.
func quantile(all []time.Duration, percent int) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)].Seconds()
}
