package redisfault_test

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
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/sim"
)

// aloneOn is a fault that sets hz for some time, on a server of its own: see addServers.
func aloneOn(i int, lasts time.Duration) *v1alpha1.RedisFault {
	f := operatortest.HzFor(fmt.Sprint("fault-", i), v1alpha1.ParameterValue(fmt.Sprint(100+i)), lasts)
	f.Spec.Target = &v1alpha1.RedisTarget{
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("other-", i)}},
	}
	return f
}

// addServers starts servers that have nothing to do with each other, each in a pod of a StatefulSet of its own.
func addServers(w *operatortest.World, n int) []*sim.Server {
	w.T.Helper()
	var all []*sim.Server
	for i := range n {
		name, ip := fmt.Sprint("other-", i), fmt.Sprintf("10.0.1.%d", 2+i)
		server := w.Servers.Add(ip+":6379", "")
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
		w.Create(pod)
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
		w.MustChange(w.Client.Status().Update(context.Background(), pod))
		all = append(all, server)
	}
	return all
}

// policyWorld is a world with a load, servers for faults, and operators.
func policyWorld(w *operatortest.World, servers, operators int) []*sim.Server {
	redis := w.StartRedis("")
	all := addServers(w, servers)
	w.Kubelet.Start()
	for range operators {
		operatortest.StartOperator(w.Place, operatortest.Spy{})
	}
	w.Create(operatortest.LongRun(redis.Address()))
	return all
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
			operatortest.InWorld(t, func(w *operatortest.World) {
				servers := policyWorld(w, 5, tc.operators)
				w.SetPolicy(fmt.Sprintf(tc.policy, tc.limit))
				for i := range servers {
					f := aloneOn(i, 40*time.Second)
					// the load belongs to one that selects for 5 s
					f.Spec.Trigger.After = operatortest.Length(20*time.Second + time.Duration(i)*6*time.Second)
					// together; the last one comes when two of them act
					if tc.operators > 1 && i < 4 {
						f.Spec.Trigger.After = operatortest.Length(20 * time.Second)
					}
					w.Create(f)
				}
				waiting := w.FaultHasReason("fault-4", 2*time.Minute, v1alpha1.ReasonWaitingForPolicy)
				if s := &waiting.Status; s.Waiting == nil || s.Waiting.Limit != tc.of || s.Waiting.For != "" ||
					s.StartTime != nil || s.Holding != nil ||
					!strings.Contains(operatortest.Where(s.Conditions), tc.message) ||
					meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionTargetsSelected) {
					t.Errorf("%s, %+v", operatortest.Where(waiting.Status.Conditions), waiting.Status.Waiting)
				}
				var faults []*v1alpha1.RedisFault
				for i, server := range servers {
					f := w.FaultEnds(fmt.Sprint("fault-", i), 5*time.Minute)
					if faults = append(faults, f); f.Status.Waiting != nil || server.Setting("hz") != "10" {
						t.Errorf("%s: %+v, hz is %s", f.Name, f.Status.Waiting, server.Setting("hz"))
					}
				}
				if most := operatortest.MostAtOnce(t, faults); most != tc.limit {
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
	operatortest.InWorld(t, func(w *operatortest.World) {
		servers := policyWorld(w, 3, 1)
		w.SetPolicy("version: v1alpha1\nmaxFaults: 1\n")
		w.Create(aloneOn(0, 4*time.Minute))
		w.FaultHasReason("fault-0", time.Minute, v1alpha1.ReasonActive)
		w.Create(aloneOn(1, 4*time.Minute))
		w.Create(aloneOn(2, 4*time.Minute))
		w.FaultHasReason("fault-1", time.Minute, v1alpha1.ReasonWaitingForPolicy)
		w.FaultHasReason("fault-2", time.Minute, v1alpha1.ReasonWaitingForPolicy)

		w.SetPolicy("version: v1alpha1\nmaxFault: 3\n")
		for _, name := range []string{"fault-1", "fault-2"} {
			f := w.FaultHasReason(name, 40*time.Second, v1alpha1.ReasonPolicyInvalid)
			if !strings.Contains(operatortest.Where(f.Status.Conditions),
				"policy.yaml of ConfigMap test-home/redquake-policy: line 2: field maxFault is unknown") {
				t.Errorf("%s: %s", name, operatortest.Where(f.Status.Conditions))
			}
		}
		time.Sleep(time.Minute) // far longer than a target may be without trouble
		w.SetPolicy(
			"version: v1alpha1\nmaxFaults: 2\nrules:\n- name: no-config\n  namespaces: {selector: team=shop}\n  forbid: {faults: [Config]}\n")
		w.FaultHasReason("fault-1", 40*time.Second, v1alpha1.ReasonActive)
		w.FaultHasReason("fault-2", 40*time.Second, v1alpha1.ReasonWaitingForPolicy)

		label(w.Place, w.Namespace, "team", "shop")
		f := w.FaultEnds("fault-2", 40*time.Second)
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
		w.SetPolicy("nonsense")
		for _, name := range []string{"fault-0", "fault-1"} {
			if f := w.FaultEnds(name, 10*time.Minute); f.Status.RevertedAt == nil ||
				f.Status.RevertedAt.Sub(f.Status.InjectedAt.Time) > 4*time.Minute+2*time.Second {
				t.Errorf("%s: %s, %+v", name, operatortest.Where(f.Status.Conditions), f.Status.RevertedAt)
			}
		}
		if got := servers[0].Setting("hz") + " " + servers[1].Setting("hz") + " " +
			servers[2].Setting("hz"); got != "10 10 10" {
			t.Errorf("hz is %s in the end", got)
		}
	})
}

func label(p *operatortest.Place, namespace, name, value string) {
	p.T.Helper()
	object := &corev1.Namespace{}
	if err := p.Client.Get(context.Background(), client.ObjectKey{Name: namespace}, object); err != nil {
		p.T.Fatal(err)
	}
	object.Labels = map[string]string{name: value}
	p.MustChange(p.Client.Update(context.Background(), object))
}

// What is forbidden fails before anything is done for it, also while it is suspended; without a key or with a missing
// value nothing begins.
func TestPolicyForbids(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		servers := policyWorld(w, 3, 1)
		w.SetPolicy(
			"version: v1alpha1\nmaxTaintedNodes: 0\nrules:\n- name: all\n  namespaces: {names: ['*']}\n  forbid: {faults: " +
				"[Hang, PodKill], allow: [Eviction]}\n")
		kill := operatortest.NewFault("kill", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.LoadTestRef, f.Spec.Target = nil, aloneOn(0, 0).Spec.Target
		})
		w.Create(kill)
		suspended := operatortest.NewFault("hang", "run", v1alpha1.FaultHang, func(f *v1alpha1.RedisFault) {
			f.Spec.Suspend = true
		})
		w.Create(suspended)
		allows := aloneOn(1, time.Minute)
		allows.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores, v1alpha1.AllowEviction}
		w.Create(allows)
		for name, want := range map[string]string{
			"kill":    "spec.action.type: PodKill is forbidden",
			"hang":    "spec.action.type: Hang is forbidden",
			"fault-1": "spec.allow: Eviction is forbidden",
		} {
			f := w.FaultEnds(name, 10*time.Second)
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
			if c == nil || c.Reason != v1alpha1.ReasonForbiddenByPolicy || !strings.Contains(c.Message, want) ||
				f.Status.StartTime != nil {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if w.Read(&v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "kill-probe"}}) {
			t.Error("a forbidden fault has made a load")
		}
		w.Create(aloneOn(2, 10*time.Second))
		if f := w.FaultEnds("fault-2", 5*time.Minute); f.Status.InjectedAt == nil || servers[2].Setting("hz") != "10" {
			t.Errorf("what is not forbidden: %s", operatortest.Where(f.Status.Conditions))
		}
	})
}
