package redisloadtest_test

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
	"github.com/redquake/redquake/internal/testing/operatortest"
)

func failed(
	p *operatortest.Place, name string, within time.Duration, want string, texts ...string,
) *v1alpha1.RedisLoadTest {
	p.T.Helper()
	test := p.TestEnds(name, within)
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != want {
		p.T.Fatalf("%s: %+v, want it to fail with %s", name, c, want)
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			p.T.Errorf("%s: message %q does not contain %q", name, c.Message, text)
		}
	}
	if got := operatortest.KstatusOf(p.T, test); got != status.FailedStatus {
		p.T.Errorf("%s is %s to kstatus", name, got)
	}
	return test
}

func loseOnePod(p *operatortest.Place, force bool) {
	p.T.Helper()
	var pods corev1.PodList
	if err := p.Client.List(p.T.Context(), &pods, client.InNamespace(p.Namespace), client.HasLabels{
		v1alpha1.LabelLoadTest,
	}); err != nil || len(pods.Items) == 0 {
		p.T.Fatalf("%d load pods, %v", len(pods.Items), err)
	}
	var options []client.DeleteOption
	if force {
		options = append(options, client.GracePeriodSeconds(0))
	}
	if err := p.Client.Delete(p.T.Context(), &pods.Items[len(pods.Items)-1], options...); err != nil {
		p.T.Fatal(err)
	}
}

// The Service, its endpoints and the Secret are created later: GitOps applies in any order.
func TestLateReferences(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartRedis("s3cret")
		w.Kubelet.Hosts = map[string]string{"redis." + p.Namespace + ".svc:6379": redis.Address()}
		w.Kubelet.Start()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target = v1alpha1.RedisTarget{
				Service: &v1alpha1.ServiceReference{Name: "redis"},
				Auth:    operatortest.WithPassword(),
			}
		}))
		late := p.TestHasReason("run", 10*time.Second, v1alpha1.ReasonServiceNotFound)
		if c := meta.FindStatusCondition(late.Status.Conditions, v1alpha1.ConditionAccepted); c == nil ||
			c.Status != metav1.ConditionFalse {
			t.Errorf("Accepted: %+v", c)
		}
		p.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "redis"},
			Ports:    []corev1.ServicePort{{Port: 6379, TargetPort: intstr.FromInt32(6379)}},
		}})
		p.TestHasReason("run", 10*time.Second, v1alpha1.ReasonNoEndpoints)
		p.Create(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "redis-1", Labels: map[string]string{discoveryv1.LabelServiceName: "redis"}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
		})
		p.TestHasReason("run", 10*time.Second, v1alpha1.ReasonSecretNotFound)
		p.Create(operatortest.PasswordSecret())
		test := p.TestEnds("run", 30*time.Second)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.Summary.Errors != 0 {
			t.Errorf("%s, %+v", operatortest.Where(test.Status.Conditions), test.Status.Summary)
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
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartRedis("s3cret")
		w.Kubelet.Refuse = func(int) bool { return true }
		w.Kubelet.Start()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("secret", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target.Auth = operatortest.WithPassword()
			test.Spec.Pods.StartDeadline.Duration = 5 * time.Second
		}))
		p.Create(operatortest.NewLoadTest("pods", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Pods.StartDeadline.Duration = 5 * time.Second
		}))
		failed(p, "secret", 15*time.Second, v1alpha1.ReasonSecretNotFound, "spec.target.auth.passwordSecretRef", `"auth"`)
		failed(p, "pods", 15*time.Second, v1alpha1.ReasonStartDeadline, "spec.pods.startDeadline", "0 of 1")
		var jobs batchv1.JobList
		if err := p.Client.List(t.Context(), &jobs, client.InNamespace(p.Namespace)); err != nil || len(jobs.Items) != 0 {
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
				operatortest.InWorld(t, func(w *operatortest.World) {
					p, t := w.Place, w.T
					redis := w.StartEngine()
					operatortest.StartOperator(p, operatortest.Spy{})
					p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
						test.Spec.Pods.Count, test.Spec.Pods.Lost = 2, policy
						test.Spec.Load.Duration = operatortest.Length(5 * time.Second)
					}))
					p.TestHasReason("run", 20*time.Second, v1alpha1.ReasonRunning)
					time.Sleep(time.Second)
					lost := time.Since(p.LoadTest("run").Status.StartTime.Time)
					loseOnePod(p, force)
					if policy == v1alpha1.LostPodFail {
						test := failed(p, "run", 10*time.Second, v1alpha1.ReasonPodsLost, "spec.pods.lost", "1 of 2")
						if test.Status.LoadPods.Lost != 1 || test.Status.Verdict != "" || test.Status.Summary == nil ||
							test.Status.Summary.Requests == 0 {
							t.Errorf("agents %+v, verdict %q, summary %+v", test.Status.LoadPods, test.Status.Verdict, test.Status.Summary)
						}
						return
					}
					test := p.TestEnds("run", 20*time.Second)
					if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
						test.Status.Verdict != v1alpha1.VerdictInconclusive || test.Status.LoadPods.Lost != 1 {
						t.Errorf("%s, verdict %s, agents %+v", operatortest.Where(test.Status.Conditions), test.Status.Verdict,
							test.Status.LoadPods)
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
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartRedis("")
		w.Kubelet.Start()
		stored := make(chan struct{}, 1)
		operatortest.StartOperator(p, operatortest.Spy{After: func(w operatortest.Write) {
			test, ok := w.Object.(*v1alpha1.RedisLoadTest)
			if ok && w.Verb == "patch-status" && test.Status.StartTime != nil {
				select {
				case stored <- struct{}{}:
					loseOnePod(p, true)
					time.Sleep(200 * time.Millisecond)
				default:
				}
			}
		}})
		p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Pods.Count, test.Spec.Pods.Lost = 2, v1alpha1.LostPodContinue
			test.Spec.Load.Duration = operatortest.Length(3 * time.Second)
		}))
		test := p.TestEnds("run", 30*time.Second)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.LoadPods.Lost != 1 ||
			test.Status.Summary == nil || test.Status.Summary.Requests != 300 {
			t.Errorf("%s, agents %+v, summary %+v", operatortest.Where(test.Status.Conditions), test.Status.LoadPods,
				test.Status.Summary)
		}
	})
}

// A start instant that no load pod has taken in time is none: the load begins at another one, and faults count from
// that.
func TestFaultsCountFromTheStartThatWasReceived(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"from the trigger": 3 * time.Second, "steady": 0} {
		t.Run(name, func(t *testing.T) {
			operatortest.InWorld(t, func(w *operatortest.World) {
				p, t := w.Place, w.T
				redis := w.StartRedis("")
				w.Kubelet.Start()
				var first *metav1.MicroTime
				operatortest.StartOperator(p, operatortest.Spy{After: func(w2 operatortest.Write) {
					test, is := w2.Object.(*v1alpha1.RedisLoadTest)
					if !is || test.Status.StartTime == nil || first != nil {
						return
					}
					first = test.Status.StartTime
					agent := agentAddress(p)
					w.Network.Set(agent, memnet.Hold)
					time.AfterFunc(12*time.Second, func() { w.Network.Set(agent, memnet.Pass) })
				}})
				p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
					f.Spec.Trigger = v1alpha1.FaultTrigger{}
					if after > 0 {
						f.Spec.Trigger.After = operatortest.Length(after)
					}
				}))
				p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration, test.Spec.Load.WarmUp = operatortest.Length(80*time.Second),
						operatortest.Length(2*time.Second)
				}))
				f, test := p.FaultEnds("kill", 5*time.Minute), p.TestEnds("run", 5*time.Minute)
				if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
					!test.Status.StartTime.After(first.Time) {
					t.Fatalf("the load: %s; it began at %v, the first instant was %v", operatortest.Where(test.Status.Conditions),
						test.Status.StartTime, first)
				}
				if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded ||
					!f.Status.LoadStartTime.Equal(test.Status.StartTime) ||
					f.Status.InjectedAt.Sub(test.Status.StartTime.Time) < max(after, 2*time.Second) {
					t.Errorf("the fault: %s; load began at %v, for the fault at %v, injected at %v",
						operatortest.Where(f.Status.Conditions),
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
func agentAddress(p *operatortest.Place) string {
	var pods corev1.PodList
	if err := p.Client.List(p.T.Context(), &pods, client.InNamespace(p.Namespace), client.HasLabels{
		v1alpha1.LabelLoadTest,
	}); err != nil || len(pods.Items) != 1 {
		p.T.Errorf("%d load pods: %v", len(pods.Items), err)
		return ""
	}
	return net.JoinHostPort(pods.Items[0].Status.PodIP, strconv.Itoa(agent.Port))
}

// Abort keeps what was measured; the TTL deletes.
func TestAbortAndTTL(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.Lasting(time.Hour)}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.TestHasReason("run", 20*time.Second, v1alpha1.ReasonRunning)
		time.Sleep(time.Second)
		p.MustChange(operatortest.Change(p, operatortest.NamedTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Abort = true
		}))
		test := p.TestEnds("run", 10*time.Second)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonAborted ||
			test.Status.Verdict != v1alpha1.VerdictInconclusive ||
			test.Status.Summary == nil || test.Status.Summary.Requests == 0 || test.Status.Results == nil {
			t.Errorf("%s, verdict %s, summary %+v, results %+v", operatortest.Where(test.Status.Conditions), test.Status.Verdict,
				test.Status.Summary, test.Status.Results)
		}
		if test.Status.Progress == 100 {
			t.Error("an aborted run shows 100 %")
		}
		uid := test.UID
		p.MustChange(operatortest.Change(p, operatortest.NamedTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.TTLSecondsAfterFinished = new(
				int32(0))
		}))
		p.Until("the TTL deletes it, and all that it owned", 10*time.Second, func() bool {
			var maps corev1.ConfigMapList
			_ = p.Client.List(t.Context(), &maps, client.InNamespace(p.Namespace))
			return !p.Read(operatortest.NamedTest("run")) && p.Operator.Sessions.Find(uid) == nil && len(maps.Items) == 0
		}, func() string { return operatortest.Where(p.LoadTest("run").Status.Conditions) })
	})
}

// Abort before the load pods are ready.
func TestAbortBeforeTheStart(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartRedis("")
		w.Kubelet.Refuse = func(int) bool { return true }
		w.Kubelet.Start()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("run", redis.Address(), nil))
		p.TestHasReason("run", 10*time.Second, v1alpha1.ReasonPreparing)
		p.MustChange(operatortest.Change(p, operatortest.NamedTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Abort = true
		}))
		test := p.TestEnds("run", 10*time.Second)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonAborted || test.Status.StartTime != nil {
			t.Errorf("%s, started at %v", operatortest.Where(test.Status.Conditions), test.Status.StartTime)
		}
		p.Until("its pods go", 10*time.Second, func() bool { return p.PodsIn(corev1.PodPending) == 0 }, func() string {
			return ""
		})
	})
}

// A suspended test discards its run, as a Job does; resumed, it starts again and completes.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartEngine()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = operatortest.Length(4 *
				time.Second)
		}))
		p.TestHasReason("run", 20*time.Second, v1alpha1.ReasonRunning)
		suspend := func(on bool) {
			p.MustChange(operatortest.Change(p, operatortest.NamedTest("run"), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Suspend = on
			}))
		}
		suspend(true)
		test := p.TestHasReason("run", 10*time.Second, v1alpha1.ReasonSuspended)
		if got := operatortest.KstatusOf(t, test); got != status.CurrentStatus {
			t.Errorf("a suspended test is %s to kstatus", got)
		}
		if test.Status.StartTime != nil || test.Status.Summary != nil || test.Status.Progress != 0 {
			t.Errorf("what was measured is not forgotten: %+v", test.Status)
		}
		p.Until("its pods go", 10*time.Second, func() bool { return p.PodsIn(corev1.PodRunning) == 0 }, func() string {
			return ""
		})
		suspend(false)
		test = p.TestEnds("run", 30*time.Second)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.Summary.Requests != 800 {
			t.Errorf("%s, %+v", operatortest.Where(test.Status.Conditions), test.Status.Summary)
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
			operatortest.InWorld(t, func(w *operatortest.World) {
				p, t := w.Place, w.T
				redis := w.StartRedis("")
				if state == v1alpha1.ReasonPreparing {
					w.Kubelet.Refuse = func(int) bool { return true }
				}
				w.Kubelet.Start()
				o := operatortest.StartOperator(p, operatortest.Spy{})
				p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration, test.Spec.Suspend = operatortest.Length(time.Minute), state == v1alpha1.ReasonSuspended
				}))
				test := p.TestHasReason("run", 20*time.Second, state)
				p.MustChange(p.Client.Delete(t.Context(), test))
				p.Until("everything is deleted", 10*time.Second, func() bool {
					var jobs batchv1.JobList
					_ = p.Client.List(t.Context(), &jobs, client.InNamespace(p.Namespace))
					return !p.Read(operatortest.NamedTest("run")) && len(jobs.Items) == 0 &&
						p.PodsIn(corev1.PodRunning, corev1.PodPending) == 0 &&
						o.Sessions.Find(test.UID) == nil
				}, func() string { return "" })
			})
		})
	}
}
