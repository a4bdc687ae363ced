package controllers

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/testing/memnet"
)

func passwordSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "auth"},
		StringData: map[string]string{"password": "s3cret\n"},
	}
}

func withPassword() *v1alpha1.RedisAuth {
	return &v1alpha1.RedisAuth{PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "auth", Key: "password"}}
}

func namedTest(name string) *v1alpha1.RedisLoadTest {
	return &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (p *place) failed(name string, within time.Duration, want string, texts ...string) *v1alpha1.RedisLoadTest {
	p.t.Helper()
	test := p.testEnds(name, within)
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != want {
		p.t.Fatalf("%s: %+v, want it to fail with %s", name, c, want)
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			p.t.Errorf("%s: message %q does not contain %q", name, c.Message, text)
		}
	}
	if got := kstatusOf(p.t, test); got != status.FailedStatus {
		p.t.Errorf("%s is %s to kstatus", name, got)
	}
	return test
}

func (p *place) loseOnePod(force bool) {
	p.t.Helper()
	var pods corev1.PodList
	if err := p.client.List(p.t.Context(), &pods, client.InNamespace(p.namespace), client.HasLabels{
		v1alpha1.LabelLoadTest,
	}); err != nil || len(pods.Items) == 0 {
		p.t.Fatalf("%d load pods, %v", len(pods.Items), err)
	}
	var options []client.DeleteOption
	if force {
		options = append(options, client.GracePeriodSeconds(0))
	}
	if err := p.client.Delete(p.t.Context(), &pods.Items[len(pods.Items)-1], options...); err != nil {
		p.t.Fatal(err)
	}
}

// The Service, its endpoints and the Secret are created later: GitOps applies in any order.
func TestLateReferences(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("s3cret")
		w.kubelet.Hosts = map[string]string{"redis." + p.namespace + ".svc:6379": redis.address()}
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target = v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}, Auth: withPassword()}
		}))
		late := p.testHasReason("run", 10*time.Second, v1alpha1.ReasonServiceNotFound)
		if c := meta.FindStatusCondition(late.Status.Conditions, v1alpha1.ConditionAccepted); c == nil ||
			c.Status != metav1.ConditionFalse {
			t.Errorf("Accepted: %+v", c)
		}
		p.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "redis"},
			Ports:    []corev1.ServicePort{{Port: 6379, TargetPort: intstr.FromInt32(6379)}},
		}})
		p.testHasReason("run", 10*time.Second, v1alpha1.ReasonNoEndpoints)
		p.create(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "redis-1", Labels: map[string]string{discoveryv1.LabelServiceName: "redis"}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
		})
		p.testHasReason("run", 10*time.Second, v1alpha1.ReasonSecretNotFound)
		p.create(passwordSecret())
		test := p.testEnds("run", 30*time.Second)
		if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.Summary.Errors != 0 {
			t.Errorf("%s, %+v", where(test.Status.Conditions), test.Status.Summary)
		}
		if c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionAccepted); c == nil ||
			c.Status != metav1.ConditionTrue {
			t.Errorf("Accepted: %+v", c)
		}
	})
}

// A missing reference fails the test, with the field that names it.
func TestMissingReferences(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("s3cret")
		w.kubelet.Refuse = func(int) bool { return true }
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("secret", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target.Auth = withPassword()
			test.Spec.Pods.StartDeadline.Duration = 5 * time.Second
		}))
		p.create(newLoadTest("pods", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Pods.StartDeadline.Duration = 5 * time.Second
		}))
		p.failed("secret", 15*time.Second, v1alpha1.ReasonSecretNotFound, "spec.target.auth.passwordSecretRef", `"auth"`)
		p.failed("pods", 15*time.Second, v1alpha1.ReasonStartDeadline, "spec.pods.startDeadline", "0 of 1")
		var jobs batchv1.JobList
		if err := p.client.List(t.Context(), &jobs, client.InNamespace(p.namespace)); err != nil || len(jobs.Items) != 0 {
			t.Errorf("%d Jobs are left, %v", len(jobs.Items), err)
		}
	})
}

// The loss of one of two load pods during the run, with each policy and each kind of loss.
func TestLostPod(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.LostPodPolicy{v1alpha1.LostPodFail, v1alpha1.LostPodContinue} {
		for _, force := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s force %v", policy, force), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(w *world) {
					p, t := w.place, w.t
					redis := w.startEngine()
					startOperator(p, spy{})
					p.create(newLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
						test.Spec.Pods.Count, test.Spec.Pods.Lost = 2, policy
						test.Spec.Load.Duration = length(5 * time.Second)
					}))
					p.testHasReason("run", 20*time.Second, v1alpha1.ReasonRunning)
					time.Sleep(time.Second)
					lost := time.Since(p.loadTest("run").Status.StartTime.Time)
					p.loseOnePod(force)
					if policy == v1alpha1.LostPodFail {
						test := p.failed("run", 10*time.Second, v1alpha1.ReasonPodsLost, "spec.pods.lost", "1 of 2")
						if test.Status.LoadPods.Lost != 1 || test.Status.Verdict != "" || test.Status.Summary == nil ||
							test.Status.Summary.Requests == 0 {
							t.Errorf("agents %+v, verdict %q, summary %+v", test.Status.LoadPods, test.Status.Verdict, test.Status.Summary)
						}
						return
					}
					test := p.testEnds("run", 20*time.Second)
					if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
						test.Status.Verdict != v1alpha1.VerdictInconclusive || test.Status.LoadPods.Lost != 1 {
						t.Errorf("%s, verdict %s, agents %+v", where(test.Status.Conditions), test.Status.Verdict, test.Status.LoadPods)
					}
					// Half of 1000, and what the lost pod had delivered at the last pull: whole intervals.
					missing := collect.DefaultPullEvery + 2*test.Spec.Observe.Interval.Duration
					if n, most := test.Status.Summary.Requests,
						500+int64(100*lost.Seconds()); n > most || n < most-int64(100*missing.Seconds()) {
						t.Errorf("%d requests, want at most %d, and those of %s less at most", n, most, missing)
					}
				})
			})
		}
	}
}

// A pod that is lost while the start instant is being sent must not delay the others, or an abort.
func TestPodLostAroundTheStart(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		stored := make(chan struct{}, 1)
		startOperator(p, spy{After: func(w write) {
			test, ok := w.Object.(*v1alpha1.RedisLoadTest)
			if ok && w.Verb == "patch-status" && test.Status.StartTime != nil {
				select {
				case stored <- struct{}{}:
					p.loseOnePod(true)
					time.Sleep(200 * time.Millisecond)
				default:
				}
			}
		}})
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Pods.Count, test.Spec.Pods.Lost = 2, v1alpha1.LostPodContinue
			test.Spec.Load.Duration = length(3 * time.Second)
		}))
		test := p.testEnds("run", 30*time.Second)
		if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.LoadPods.Lost != 1 ||
			test.Status.Summary == nil || test.Status.Summary.Requests != 300 {
			t.Errorf("%s, agents %+v, summary %+v", where(test.Status.Conditions), test.Status.LoadPods, test.Status.Summary)
		}
	})
}

// A start instant that no load pod has taken in time is none: the load begins at another one, and faults count from
// that.
func TestFaultsCountFromTheStartThatWasReceived(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"from the trigger": 3 * time.Second, "steady": 0} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				p, t := w.place, w.t
				redis := w.startRedis("")
				w.kubelet.Start()
				var first *metav1.MicroTime
				startOperator(p, spy{After: func(w2 write) {
					test, is := w2.Object.(*v1alpha1.RedisLoadTest)
					if !is || test.Status.StartTime == nil || first != nil {
						return
					}
					first = test.Status.StartTime
					agent := p.agentAddress()
					w.network.Set(agent, memnet.Hold)
					time.AfterFunc(12*time.Second, func() { w.network.Set(agent, memnet.Pass) })
				}})
				p.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
					f.Spec.Trigger = v1alpha1.FaultTrigger{}
					if after > 0 {
						f.Spec.Trigger.After = length(after)
					}
				}))
				p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration, test.Spec.Load.WarmUp = length(80*time.Second), length(2*time.Second)
				}))
				f, test := p.faultEnds("kill", 5*time.Minute), p.testEnds("run", 5*time.Minute)
				if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || !test.Status.StartTime.After(first.Time) {
					t.Fatalf("the load: %s; it began at %v, the first instant was %v", where(test.Status.Conditions),
						test.Status.StartTime, first)
				}
				if reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded ||
					!f.Status.LoadStartTime.Equal(test.Status.StartTime) ||
					f.Status.InjectedAt.Sub(test.Status.StartTime.Time) < max(after, 2*time.Second) {
					t.Errorf("the fault: %s; load began at %v, for the fault at %v, injected at %v", where(f.Status.Conditions),
						test.Status.StartTime, f.Status.LoadStartTime, f.Status.InjectedAt)
				}
				if f.Status.StartTime.Before(test.Status.StartTime) {
					t.Errorf("the targets were chosen at %v, the load began at %v", f.Status.StartTime, test.Status.StartTime)
				}
			})
		})
	}
}

// agentAddress is where the only load pod listens.
func (p *place) agentAddress() string {
	var pods corev1.PodList
	if err := p.client.List(p.t.Context(), &pods, client.InNamespace(p.namespace), client.HasLabels{
		v1alpha1.LabelLoadTest,
	}); err != nil || len(pods.Items) != 1 {
		p.t.Errorf("%d load pods: %v", len(pods.Items), err)
		return ""
	}
	return net.JoinHostPort(pods.Items[0].Status.PodIP, strconv.Itoa(agent.Port))
}

// Abort keeps what was measured; the TTL deletes.
func TestAbortAndTTL(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		o := startOperator(p, spy{})
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				time.Hour)
		}))
		p.testHasReason("run", 20*time.Second, v1alpha1.ReasonRunning)
		time.Sleep(time.Second)
		p.mustChange(change(p, namedTest("run"), func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		test := p.testEnds("run", 10*time.Second)
		if reason(test.Status.Conditions) != v1alpha1.ReasonAborted || test.Status.Verdict != v1alpha1.VerdictInconclusive ||
			test.Status.Summary == nil || test.Status.Summary.Requests == 0 || test.Status.Results == nil {
			t.Errorf("%s, verdict %s, summary %+v, results %+v", where(test.Status.Conditions), test.Status.Verdict,
				test.Status.Summary, test.Status.Results)
		}
		if test.Status.Progress == 100 {
			t.Error("an aborted run shows 100 %")
		}
		uid := test.UID
		p.mustChange(change(p, namedTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.TTLSecondsAfterFinished = new(
				int32(0))
		}))
		p.until("the TTL deletes it, and all that it owned", 10*time.Second, func() bool {
			var maps corev1.ConfigMapList
			_ = p.client.List(t.Context(), &maps, client.InNamespace(p.namespace))
			return !p.read(namedTest("run")) && o.sessions.Find(uid) == nil && len(maps.Items) == 0
		}, func() string { return where(p.loadTest("run").Status.Conditions) })
	})
}

// Abort before the load pods are ready.
func TestAbortBeforeTheStart(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Refuse = func(int) bool { return true }
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("run", redis.address(), nil))
		p.testHasReason("run", 10*time.Second, v1alpha1.ReasonPreparing)
		p.mustChange(change(p, namedTest("run"), func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		test := p.testEnds("run", 10*time.Second)
		if reason(test.Status.Conditions) != v1alpha1.ReasonAborted || test.Status.StartTime != nil {
			t.Errorf("%s, started at %v", where(test.Status.Conditions), test.Status.StartTime)
		}
		p.until("its pods go", 10*time.Second, func() bool { return p.podsIn(corev1.PodPending) == 0 }, func() string {
			return ""
		})
	})
}

// A suspended test discards its run, as a Job does; resumed, it starts again and completes.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startEngine()
		startOperator(p, spy{})
		p.create(newLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(4 *
				time.Second)
		}))
		p.testHasReason("run", 20*time.Second, v1alpha1.ReasonRunning)
		suspend := func(on bool) {
			p.mustChange(change(p, namedTest("run"), func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = on }))
		}
		suspend(true)
		test := p.testHasReason("run", 10*time.Second, v1alpha1.ReasonSuspended)
		if got := kstatusOf(t, test); got != status.CurrentStatus {
			t.Errorf("a suspended test is %s to kstatus", got)
		}
		if test.Status.StartTime != nil || test.Status.Summary != nil || test.Status.Progress != 0 {
			t.Errorf("what was measured is not forgotten: %+v", test.Status)
		}
		p.until("its pods go", 10*time.Second, func() bool { return p.podsIn(corev1.PodRunning) == 0 }, func() string {
			return ""
		})
		suspend(false)
		test = p.testEnds("run", 30*time.Second)
		if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.Summary.Requests != 800 {
			t.Errorf("%s, %+v", where(test.Status.Conditions), test.Status.Summary)
		}
	})
}

// A test can be deleted in any state, with everything that it created.
func TestDeleteInAnyState(t *testing.T) {
	t.Parallel()
	for _, state := range []string{
		v1alpha1.ReasonPreparing, v1alpha1.ReasonStarting, v1alpha1.ReasonRunning,
		v1alpha1.ReasonSuspended,
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				p, t := w.place, w.t
				redis := w.startRedis("")
				if state == v1alpha1.ReasonPreparing {
					w.kubelet.Refuse = func(int) bool { return true }
				}
				w.kubelet.Start()
				o := startOperator(p, spy{})
				p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration, test.Spec.Suspend = length(time.Minute), state == v1alpha1.ReasonSuspended
				}))
				test := p.testHasReason("run", 20*time.Second, state)
				p.mustChange(p.client.Delete(t.Context(), test))
				p.until("everything is deleted", 10*time.Second, func() bool {
					var jobs batchv1.JobList
					_ = p.client.List(t.Context(), &jobs, client.InNamespace(p.namespace))
					return !p.read(namedTest("run")) && len(jobs.Items) == 0 && p.podsIn(corev1.PodRunning, corev1.PodPending) == 0 &&
						o.sessions.Find(test.UID) == nil
				}, func() string { return "" })
			})
		})
	}
}
