//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// TestPrimaryIsolated cuts a primary off from its replicas and sentinels, not from its clients, for 20 s: it goes on
// acknowledging writes while another one is promoted. What the ledger counts as lost is what MONITOR has seen the old
// primary execute and the new one does not have; a writer of the test's own that stays with the old primary loses as
// well. The load's own clients have found two primaries for as long as somebody who asks the servers has.
func TestPrimaryIsolated(t *testing.T) {
	t.Parallel()
	n := privilegedNamespace(t, "e2e-isolated-")
	n.applySentinels(3)
	load := n.steadyLoad("base", sentinelTarget(), 3*time.Minute)
	load.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "50%", DualPrimary: true}
	n.create(load)
	n.waitLoadTest(load.Name, patience, v1alpha1.ReasonRunning)
	n.flows("redis-ha")
	old := n.primaryOf("redis-ha")
	executed := n.monitor(old)
	writes := n.writeTo(old)
	primaries := n.countPrimaries("redis-ha")

	fault := faultOn(load.Name, "isolate", v1alpha1.FaultNetworkPartition, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.NetworkPartition = &v1alpha1.NetworkPartition{
			Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerReplicas, v1alpha1.PeerSentinels},
		}
		s.Duration, s.RecoveryDeadline = span(20*time.Second), *span(time.Minute)
		s.Trigger = v1alpha1.FaultTrigger{After: span(20 * time.Second)} // a baseline, for a verdict
	})
	n.create(fault)
	n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonWaitingForLosses)
	n.sentinelsAgree()
	now := n.primaryOf("redis-ha")
	if now.Name == old.Name {
		t.Fatalf("%s is still the primary", old.Name)
	}
	two := primaries()
	acked := writes()
	lost, of := n.absent(now, executed())
	own := n.missing(now, acked)

	done := n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded)
	i := done.Status.Impact
	if i == nil || i.LostWrites == nil {
		t.Fatalf("the impact is %+v", i)
	}
	t.Logf("the ledger lost %d writes; MONITOR saw %d of %d that the new primary does not have; a writer that stayed with "+
		"the old primary lost %d of %d; two primaries for %s", *i.LostWrites, lost, of, own, len(acked), two)
	// A request that was under way when the old primary was demoted was executed, and perhaps not answered.
	if d := *i.LostWrites - int64(lost); d > 0 || d < -30 || lost == 0 {
		t.Errorf("%d were lost by the ledger, and %d by MONITOR", *i.LostWrites, lost)
	}
	if own == 0 || two < 5*time.Second {
		t.Errorf("the writer lost %d writes, and there were two primaries for %s", own, two)
	}
	// 50 a second, fewer if the machine is busy
	var dual int64
	if v := n.loadTest(load.Name).Status.Verification; v.DualPrimaryWrites != nil {
		dual = *v.DualPrimaryWrites
	}
	t.Logf("of a load's offers to all servers 50 times a second, %d were accepted twice", dual)
	if each := float64(dual) / two.Seconds(); each < 30 || each > 60 {
		t.Errorf("%d writes were accepted twice, and there were two primaries for %s", dual, two)
	}
	// also where the load generator waited for a CPU
	if done.Status.Verdict != v1alpha1.VerdictFail {
		t.Errorf("the verdict is %s: %+v", done.Status.Verdict, done.Status.Objectives)
	}
	n.isReverted(done)
}

// privilegedNamespace is one that admits containers with NET_ADMIN.
func privilegedNamespace(t *testing.T, name string) *namespace {
	t.Helper()
	return makeNamespace(t, metav1.ObjectMeta{
		GenerateName: name,
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	})
}

// primaryOf is the pod of an app that says it is the primary.
func (n *namespace) primaryOf(app string) *corev1.Pod {
	n.Helper()
	var found *corev1.Pod
	n.eventually(patience, "one server is the primary", func() (bool, string) {
		all, state := primariesAmong(n.Context(), n.servers(app))
		if len(all) != 1 {
			return false, state
		}
		found = &all[0]
		return true, state
	})
	return found
}

func primariesAmong(ctx context.Context, pods []corev1.Pod) (found []corev1.Pod, state string) {
	for i := range pods {
		c := at(&pods[i])
		info, err := c.Info(ctx, "replication").Result()
		_ = c.Close()
		if strings.Contains(info, "role:master") {
			found = append(found, pods[i])
		}
		state += fmt.Sprintf("%s: %v %.20s; ", pods[i].Name, err, strings.TrimSpace(info))
	}
	return found, state
}

// countPrimaries asks the servers ten times a second until its result is asked for: for how long there were several
// primaries.
func (n *namespace) countPrimaries(app string) func() time.Duration {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), 10*time.Minute)
	pods := n.servers(app)
	var several time.Duration
	var done sync.WaitGroup
	done.Go(func() {
		for before := time.Now(); ctx.Err() == nil; {
			await.Pass(100*time.Millisecond, "the time to the next question")
			found, _ := primariesAmong(ctx, pods)
			now := time.Now()
			if len(found) > 1 {
				several += now.Sub(before)
			}
			before = now
		}
	})
	return func() time.Duration {
		cancel()
		done.Wait()
		return several.Round(100 * time.Millisecond)
	}
}

// bit is a write of the ledger: SETBIT key number 1.
type bit struct {
	key    string
	number int
}

// monitor collects the ledger's writes that a server executes, by MONITOR, until its result is asked for.
func (n *namespace) monitor(pod *corev1.Pod) func() []bit {
	n.Helper()
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(pod.Status.PodIP, "6379"), 10*time.Second)
	if err == nil {
		_, err = conn.Write([]byte("MONITOR\r\n"))
	}
	if err != nil {
		n.Fatal(err)
	}
	var seen []bit
	var done sync.WaitGroup
	done.Go(func() {
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			words := strings.Split(lines.Text(), `"`) // 1.2 [0 10.0.0.1:3] "SETBIT" "key" "7" "1"
			if len(words) != 9 || !strings.EqualFold(words[1], "SETBIT") {
				continue
			}
			if number, err := strconv.Atoi(words[5]); err == nil {
				seen = append(seen, bit{words[3], number})
			}
		}
	})
	return func() []bit {
		_ = conn.Close()
		done.Wait()
		return seen
	}
}

// absent counts the writes of the ledger that a server does not have.
func (n *namespace) absent(pod *corev1.Pod, written []bit) (absent, of int) {
	n.Helper()
	c := at(pod)
	defer func() { _ = c.Close() }()
	maps := map[string][]byte{}
	for _, b := range written {
		if _, known := maps[b.key]; !known {
			value, err := c.Get(n.Context(), b.key).Bytes()
			if err != nil && err != redis.Nil { //nolint:errorlint // go-redis returns it as it is
				n.Fatal(err)
			}
			maps[b.key] = value
		}
		value := maps[b.key]
		if at := b.number / 8; at >= len(value) || value[at]&(1<<(7-b.number%8)) == 0 {
			absent++
		}
	}
	return absent, len(written)
}

// writeTo writes numbered keys to one server, a hundred times a second, until its result is asked for: the numbers that
// were acknowledged.
func (n *namespace) writeTo(pod *corev1.Pod) func() []int {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), 10*time.Minute)
	c := at(pod)
	var acked []int
	var done sync.WaitGroup
	done.Go(func() {
		defer func() { _ = c.Close() }()
		for number := 0; ctx.Err() == nil; number++ {
			if c.Set(ctx, truthKey(number), number, 0).Err() == nil {
				acked = append(acked, number)
			}
			await.Pass(10*time.Millisecond, "the time to the next write")
		}
	})
	return func() []int {
		cancel()
		done.Wait()
		return acked
	}
}

func truthKey(number int) string { return "truth:" + strconv.Itoa(number) }

// missing counts the numbers that a server does not have.
func (n *namespace) missing(pod *corev1.Pod, numbers []int) (missing int) {
	n.Helper()
	c := at(pod)
	defer func() { _ = c.Close() }()
	for _, number := range numbers {
		found, err := c.Exists(n.Context(), truthKey(number)).Result()
		if err != nil {
			n.Fatal(err)
		}
		if found == 0 {
			missing++
		}
	}
	return missing
}
