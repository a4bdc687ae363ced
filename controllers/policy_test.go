package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/testing/sim"
)

// setPolicy creates or changes the policy of the place's operators.
func (p *place) setPolicy(text string) {
	p.t.Helper()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.home(), Name: policy.ConfigMap}}
	err := p.client.Get(context.Background(), client.ObjectKeyFromObject(stored), stored)
	stored.Data = map[string]string{policy.Key: text}
	if err != nil {
		p.create(stored)
		return
	}
	p.mustChange(p.client.Update(context.Background(), stored))
}

// aloneOn is a fault that sets hz for some time, on a server of its own: see addServers.
func aloneOn(i int, lasts time.Duration) *v1alpha1.RedisFault {
	f := hzFor(fmt.Sprint("fault-", i), v1alpha1.ParameterValue(fmt.Sprint(100+i)), lasts)
	f.Spec.Target = &v1alpha1.RedisTarget{
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("other-", i)}},
	}
	return f
}

// addServers starts servers that have nothing to do with each other, each in a pod of a StatefulSet of its own.
func (w *world) addServers(n int) []*sim.Server {
	w.t.Helper()
	var all []*sim.Server
	for i := range n {
		name, ip := fmt.Sprint("other-", i), fmt.Sprintf("10.0.1.%d", 2+i)
		server := w.redis.Add(ip+":6379", "")
		server.Start()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name + "-0", Labels: map[string]string{"app": name},
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: "statefulset", Controller: new(true)},
				},
			},
			Spec: corev1.PodSpec{
				NodeName: "node-1",
				Containers: []corev1.Container{
					{Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: 6379}}},
				},
			},
		}
		w.create(pod)
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{
					Name:  "redis",
					Ready: true,
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
				},
			},
		}
		w.mustChange(w.client.Status().Update(context.Background(), pod))
		all = append(all, server)
	}
	return all
}

// policyWorld is a world with a load, servers for faults, and operators.
func policyWorld(w *world, servers, operators int) []*sim.Server {
	redis := w.startRedis("")
	all := w.addServers(servers)
	w.kubelet.Start()
	for range operators {
		startOperator(w.place, spy{})
	}
	w.create(longRun(redis.address()))
	return all
}

// mostAtOnce is how many of the faults were there at once, from their injection to their revert.
func mostAtOnce(t *testing.T, faults []*v1alpha1.RedisFault) int {
	t.Helper()
	most := 0
	for _, f := range faults {
		if f.Status.InjectedAt == nil || f.Status.RevertedAt == nil {
			t.Fatalf("%s: %s", f.Name, where(f.Status.Conditions))
		}
		n := 0
		for _, other := range faults {
			if !other.Status.InjectedAt.After(f.Status.InjectedAt.Time) &&
				other.Status.RevertedAt.After(f.Status.InjectedAt.Time) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// As many faults act at once as the policy permits, also with two operators, and whoever has waited for the longest
// comes first.
func TestPolicyLimitsFaults(t *testing.T) {
	t.Parallel()
	const everywhere = "version: v1alpha1\nmaxFaults: %d\n"
	const within = "version: v1alpha1\nrules:\n- name: ours\n  namespaces: {names: [test]}\n  maxFaults: %d\n"
	for _, tc := range []struct {
		name, policy     string
		limit, operators int
		of               v1alpha1.PolicyLimit
		message          string
	}{
		{
			"two of all", everywhere, 2, 1, v1alpha1.LimitFaults,
			"2 of 2 faults act: fault-0, fault-1; longer waiting: fault-2, fault-3 (policy: maxFaults)",
		},
		{
			"one in the namespace", within, 1, 1, v1alpha1.LimitNamespaceFaults,
			`1 of 1 faults act in namespace test: fault-0; longer waiting: fault-1, fault-2, fault-3 (policy: rule "ours", rules[0].maxFaults)`,
		},
		{"two operators", everywhere, 2, 2, v1alpha1.LimitFaults, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				servers := policyWorld(w, 5, tc.operators)
				w.setPolicy(fmt.Sprintf(tc.policy, tc.limit))
				for i := range servers {
					f := aloneOn(i, 40*time.Second)
					// the load belongs to one that selects for 5 s
					f.Spec.Trigger.After = length(20*time.Second + time.Duration(i)*6*time.Second)
					// together; the last one comes when two of them act
					if tc.operators > 1 && i < 4 {
						f.Spec.Trigger.After = length(20 * time.Second)
					}
					w.create(f)
				}
				waiting := w.faultHasReason("fault-4", 2*time.Minute, v1alpha1.ReasonWaitingForPolicy)
				if s := &waiting.Status; s.Waiting == nil || s.Waiting.Limit != tc.of || s.Waiting.For != "" ||
					s.StartTime != nil || s.Holding != nil ||
					!strings.Contains(where(s.Conditions), tc.message) ||
					meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionTargetsSelected) {
					t.Errorf("%s, %+v", where(waiting.Status.Conditions), waiting.Status.Waiting)
				}
				var faults []*v1alpha1.RedisFault
				for i, server := range servers {
					f := w.faultEnds(fmt.Sprint("fault-", i), 5*time.Minute)
					if faults = append(faults, f); f.Status.Waiting != nil || server.Setting("hz") != "10" {
						t.Errorf("%s: %+v, hz is %s", f.Name, f.Status.Waiting, server.Setting("hz"))
					}
				}
				if most := mostAtOnce(t, faults); most != tc.limit {
					t.Errorf("%d acted at once, want %d", most, tc.limit)
				}
				inOrder := func(a, b *v1alpha1.RedisFault) int { return a.Status.InjectedAt.Compare(b.Status.InjectedAt.Time) }
				if tc.operators == 1 && !slices.IsSortedFunc(faults, inOrder) {
					t.Error("they did not act in the order in which they came")
				}
				// Nobody waits for a look at the queue: the end of one fault is the beginning of the next.
				if last := slices.MaxFunc(faults, inOrder).Status.RevertedAt.Sub(
					slices.MinFunc(faults, inOrder).Status.InjectedAt.Time); tc.limit == 2 && last > 130*time.Second {
					t.Errorf("the five took %s", last)
				}
			})
		})
	}
}

// A policy that cannot be read keeps every fault from beginning, and says why; what acts is reverted as planned. A
// change of the policy applies to the faults that wait.
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		servers := policyWorld(w, 3, 1)
		w.setPolicy("version: v1alpha1\nmaxFaults: 1\n")
		w.create(aloneOn(0, 4*time.Minute))
		w.faultHasReason("fault-0", time.Minute, v1alpha1.ReasonActive)
		w.create(aloneOn(1, 4*time.Minute))
		w.create(aloneOn(2, 4*time.Minute))
		w.faultHasReason("fault-1", time.Minute, v1alpha1.ReasonWaitingForPolicy)
		w.faultHasReason("fault-2", time.Minute, v1alpha1.ReasonWaitingForPolicy)

		w.setPolicy("version: v1alpha1\nmaxFault: 3\n")
		for _, name := range []string{"fault-1", "fault-2"} {
			f := w.faultHasReason(name, 40*time.Second, v1alpha1.ReasonPolicyInvalid)
			if !strings.Contains(where(f.Status.Conditions),
				"policy.yaml of ConfigMap test-home/redquake-policy: line 2: field maxFault is unknown") {
				t.Errorf("%s: %s", name, where(f.Status.Conditions))
			}
		}
		time.Sleep(time.Minute) // far longer than a target may be without trouble
		w.setPolicy(
			"version: v1alpha1\nmaxFaults: 2\nrules:\n- name: no-config\n  namespaces: {selector: team=shop}\n  forbid: {faults: [Config]}\n")
		w.faultHasReason("fault-1", 40*time.Second, v1alpha1.ReasonActive)
		w.faultHasReason("fault-2", 40*time.Second, v1alpha1.ReasonWaitingForPolicy)

		w.label(w.namespace, "team", "shop")
		f := w.faultEnds("fault-2", 40*time.Second)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonForbiddenByPolicy ||
			!strings.Contains(c.Message,
				`Config is forbidden in namespace test by rule "no-config" (rules[0].forbid.faults) of ConfigMap test-home/redquake-policy`) ||
			f.Status.StartTime != nil {
			t.Errorf("fault-2: %+v", c)
		}
		if got := servers[0].Setting("hz") + " " + servers[1].Setting("hz"); got != "100 101" {
			t.Errorf("hz of the faults that act is %s: a policy stops no fault that has begun", got)
		}
		w.setPolicy("nonsense")
		for _, name := range []string{"fault-0", "fault-1"} {
			if f := w.faultEnds(name, 10*time.Minute); f.Status.RevertedAt == nil ||
				f.Status.RevertedAt.Sub(f.Status.InjectedAt.Time) > 4*time.Minute+2*time.Second {
				t.Errorf("%s: %s, %+v", name, where(f.Status.Conditions), f.Status.RevertedAt)
			}
		}
		if got := servers[0].Setting("hz") + " " + servers[1].Setting("hz") + " " +
			servers[2].Setting("hz"); got != "10 10 10" {
			t.Errorf("hz is %s in the end", got)
		}
	})
}

func (p *place) label(namespace, name, value string) {
	p.t.Helper()
	object := &corev1.Namespace{}
	if err := p.client.Get(context.Background(), client.ObjectKey{Name: namespace}, object); err != nil {
		p.t.Fatal(err)
	}
	object.Labels = map[string]string{name: value}
	p.mustChange(p.client.Update(context.Background(), object))
}

// What is forbidden fails before anything is done for it, also while it is suspended; without a key or with a missing
// value nothing begins.
func TestPolicyForbids(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		servers := policyWorld(w, 3, 1)
		w.setPolicy(
			"version: v1alpha1\nmaxTaintedNodes: 0\nrules:\n- name: all\n  namespaces: {names: ['*']}\n  forbid: {faults: " +
				"[Hang, PodKill], allow: [Eviction]}\n")
		kill := newFault("kill", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.LoadTestRef, f.Spec.Target = nil, aloneOn(0, 0).Spec.Target
		})
		w.create(kill)
		suspended := newFault("hang", "run", v1alpha1.FaultHang, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true })
		w.create(suspended)
		allows := aloneOn(1, time.Minute)
		allows.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores, v1alpha1.AllowEviction}
		w.create(allows)
		for name, want := range map[string]string{
			"kill":    "spec.action.type: PodKill is forbidden",
			"hang":    "spec.action.type: Hang is forbidden",
			"fault-1": "spec.allow: Eviction is forbidden",
		} {
			f := w.faultEnds(name, 10*time.Second)
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
			if c == nil || c.Reason != v1alpha1.ReasonForbiddenByPolicy || !strings.Contains(c.Message, want) ||
				f.Status.StartTime != nil {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if w.read(&v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "kill-probe"}}) {
			t.Error("a forbidden fault has made a load")
		}
		w.create(aloneOn(2, 10*time.Second))
		if f := w.faultEnds("fault-2", 5*time.Minute); f.Status.InjectedAt == nil || servers[2].Setting("hz") != "10" {
			t.Errorf("what is not forbidden: %s", where(f.Status.Conditions))
		}
	})
}
