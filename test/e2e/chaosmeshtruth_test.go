//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/testing/await"
)

// sight is what a client has seen of a server at one time.
type sight struct {
	at    time.Time
	trip  time.Duration
	clock time.Duration // by how much that of the server is ahead of this machine's
	calls int64         // GET and SET since the start of the server
}

// follow has a client of its own look at the server some times a second, from two seconds before it returns. The result
// ends that, and returns what was seen.
func (n *namespace) follow() func() []sight {
	n.Helper()
	server := at(n.redisPod())
	ctx, stop := context.WithCancel(n.Context())
	n.Cleanup(stop)
	var seen []sight
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = server.Close() }()
		for ctx.Err() == nil {
			if s, err := look(ctx, server); err == nil {
				seen = append(seen, s)
			}
			await.Pass(20*time.Millisecond, "the time between two looks of the client")
		}
	}()
	await.Pass(2*time.Second, "the time before the fault, to compare with")
	return func() []sight {
		n.Helper()
		stop()
		<-ended
		if len(seen) < 10 {
			n.Fatalf("the client has seen the server %d times", len(seen))
		}
		return seen
	}
}

func look(ctx context.Context, server *redis.Client) (sight, error) {
	began := time.Now()
	clock, err := server.Time(ctx).Result()
	if err != nil {
		return sight{}, err
	}
	trip := time.Since(began)
	at := began.Add(trip / 2)
	stats, err := server.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		return sight{}, err
	}
	s := sight{at: at, trip: trip, clock: clock.Sub(at)}
	for _, command := range []string{"cmdstat_get", "cmdstat_set"} {
		text, _, _ := strings.Cut(strings.TrimPrefix(stats["Commandstats"][command], "calls="), ",")
		calls, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return sight{}, err
		}
		s.calls += calls
	}
	return s, nil
}

// clockOff is by how much the clock of the server is off.
func (n *namespace) clockOff() time.Duration {
	n.Helper()
	server := at(n.redisPod())
	defer func() { _ = server.Close() }()
	s, err := look(n.Context(), server)
	if err != nil {
		n.Fatal(err)
	}
	return s.clock
}

// longestSilence is the longest time in which the server has executed no command of the load.
func longestSilence(seen []sight) (silent time.Duration) {
	last := seen[0]
	for _, s := range seen {
		if s.calls != last.calls {
			silent = max(silent, s.at.Sub(last.at))
			last = s
		}
	}
	return silent
}

// spread shows how long round trips took.
func spread(trips []time.Duration) string {
	if len(trips) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(trips))
	of := func(share float64) time.Duration {
		return sorted[int(share*float64(len(sorted)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%s median, %s p90, %s at most, %d of them", of(0.5), of(0.9), of(1), len(sorted))
}

// agents are the pods of Chaos Mesh's agent, in a namespace of their own.
type agents struct{ *namespace }

func startAgents(t *testing.T) *agents {
	t.Helper()
	a := &agents{privilegedNamespace(t, "e2e-mesh-agent-")}
	a.applyTestdata("chaos-daemon.yaml", nil)
	a.ready()
	t.Cleanup(func() {
		if t.Failed() {
			a.logs()
		}
	})
	return a
}

func (a *agents) ready() {
	a.Helper()
	a.watched(deployTime, "the agents are ready", &appsv1.DaemonSetList{}, "chaos-daemon", func() (bool, string) {
		var set appsv1.DaemonSet
		if !a.get("chaos-daemon", &set) {
			return false, "there is none"
		}
		s := &set.Status
		return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled > 0 &&
			s.NumberReady == s.DesiredNumberScheduled, fmt.Sprintf("%+v", *s)
	})
}

var ofAgent = client.MatchingLabels{"app.kubernetes.io/component": "chaos-daemon"}

// on is the agent of a node.
func (a *agents) on(node string) *corev1.Pod {
	a.Helper()
	var pods corev1.PodList
	a.list(&pods, ofAgent)
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == node && p.DeletionTimestamp == nil })
	if i < 0 {
		a.Fatalf("no agent is on node %s", node)
	}
	return &pods.Items[i]
}

// replace kills the agent of a node, and waits for another one.
func (a *agents) replace(node string) {
	a.Helper()
	killed := a.on(node)
	a.delete(killed, client.GracePeriodSeconds(0))
	a.eventually(deployTime, "the agent is replaced", func() (bool, string) {
		var pods corev1.PodList
		a.list(&pods, ofAgent)
		return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return p.Spec.NodeName == node && p.UID != killed.UID && isReady(&p)
		}), fmt.Sprintf("%d agents", len(pods.Items))
	})
}

// logs shows the end of what the agents wrote, once the test has ended.
func (a *agents) logs() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(a.name), ofAgent); err != nil {
		a.Log(err)
	}
	for _, pod := range pods.Items {
		text, err := a.log(ctx, &pod, &corev1.PodLogOptions{TailLines: new(int64(60))})
		a.Logf("agent on %s (%v): %s", pod.Spec.NodeName, err, text)
	}
}

// wrote is what the agent of a node has written since a time.
func (a *agents) wrote(node string, since time.Time) string {
	a.Helper()
	text, err := a.log(a.Context(), a.on(node), &corev1.PodLogOptions{SinceTime: new(metav1.NewTime(since))})
	if err != nil {
		a.Fatal(err)
	}
	return text
}

func (a *agents) log(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) (string, error) {
	text, err := cluster.clientset.CoreV1().Pods(a.name).GetLogs(pod.Name, options).DoRaw(ctx)
	return string(text), err
}

// beside runs a script in the agent on the node of a pod, with the processes of the pod as $pids.
func (a *agents) beside(pod *corev1.Pod, script string) string {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "kubectl", "-n", a.name, "exec", a.on(pod.Spec.NodeName).Name, "--", "sh", "-c",
		"pids=$(grep -l "+string(pod.UID)+" /proc/[0-9]*/cgroup 2> /dev/null | cut -d/ -f3); "+script).CombinedOutput()
	if err != nil {
		a.Fatalf("beside pod %s: %s: %v: %s", pod.Name, script, err, out)
	}
	return string(out)
}

// rules are the rules for packets in the network of a pod, as the options of iptables show them.
func (a *agents) rules(pod *corev1.Pod, options string) string {
	a.Helper()
	return a.beside(pod, "set -- $pids; /usr/local/bin/nsexec -n /proc/$1/ns/net -- iptables -w "+options)
}

var dropped = regexp.MustCompile(`(?m)^ *(\d+) +\d+ +DROP `)

// droppedBy is how many packets rules have dropped, by a list with counts.
func droppedBy(rules string) (packets int) {
	for _, match := range dropped.FindAllStringSubmatch(rules, -1) {
		of, _ := strconv.Atoi(match[1])
		packets += of
	}
	return packets
}

// tick is the unit in which Linux counts the time of processes.
const tick = 10 * time.Millisecond

var stressed = regexp.MustCompile(`(?m)^\d+ \(stress-ng[^)]*\) \S( -?\d+){10} (\d+) (\d+)`)

// stress are the processes that burden a pod, with the CPU that they have used.
func (a *agents) stress(pod *corev1.Pod) (processes int, used time.Duration) {
	a.Helper()
	for _, match := range stressed.FindAllStringSubmatch(
		a.beside(pod, "for p in $pids; do cat /proc/$p/stat 2> /dev/null || true; done"), -1) {
		processes++
		for _, ticks := range match[2:] {
			n, _ := strconv.Atoi(ticks)
			used += time.Duration(n) * tick
		}
	}
	return processes, used
}
