package redisloadtest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// metricsAPI makes list answer for the metrics API.
func metricsAPI(w *operatortest.World, list func(*unstructured.UnstructuredList) error) {
	w.Client = interceptor.NewClient(w.Client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if l, ok := into.(*unstructured.UnstructuredList); ok && l.GroupVersionKind().Group == "metrics.k8s.io" {
				return list(l)
			}
			return c.List(ctx, into, options...)
		},
	})
}

// metricsServer returns the metrics API of one pod: every 15 s a reading of the last 15 s, with a usage of CPU as cpu
// returns it.
func metricsServer(pod string, cpu func(since time.Duration) string) func(*unstructured.UnstructuredList) error {
	began := time.Now()
	return func(l *unstructured.UnstructuredList) error {
		since := time.Since(began).Truncate(15 * time.Second)
		l.Items = []unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "metrics.k8s.io/v1beta1",
			"kind":       "PodMetrics",
			"metadata":   map[string]any{"name": pod, "namespace": "test"},
			"timestamp":  began.Add(since).UTC().Format(time.RFC3339),
			"window":     "15s",
			"containers": []any{
				map[string]any{
					"name":  "app",
					"usage": map[string]any{"cpu": cpu(since), "memory": fmt.Sprintf("%dMi", 100+since/time.Second)},
				},
			},
		}}}
		return nil
	}
}

// runningPod creates a pod with a CPU limit.
func runningPod(w *operatortest.World, app, name, ip, limit string) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{
			Name: "app", Image: app,
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)},
			},
		}}},
	}
	w.Create(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip}
	if err := w.Client.Status().Update(w.T.Context(), pod); err != nil {
		w.T.Fatal(err)
	}
}

// loadOfShop is a load on an API for two minutes, whose pods are observed.
func loadOfShop(address string) *v1alpha1.RedisLoadTest {
	return operatortest.NewLoadTest("run", address, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:     new(int32(10)),
			WarmUp:   operatortest.Length(20 * time.Second),
			Duration: operatortest.Length(2 * time.Minute),
		}
		test.Spec.Workload = v1alpha1.Workload{HTTP: &v1alpha1.HTTPWorkload{URL: "http://shop/"}}
		test.Spec.Observe.Interval = metav1.Duration{Duration: time.Second}
		test.Spec.Observe.Pods = []v1alpha1.ObservedPods{
			{Name: "shop", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
		}
	})
}

// The application in front of Redis uses all its CPU: its pods are in the status and named as the bottleneck, also if
// the operator ends meanwhile.
func TestApplicationIsTheBottleneck(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restart), func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				metricsAPI(w, metricsServer("shop-0", func(since time.Duration) string {
					if since < 30*time.Second { // before and during the warm-up
						return "10m"
					}
					return "490m"
				}))
				redis := w.StartRedis("")
				w.Kubelet.Start()
				runningPod(w, "shop", "shop-0", w.Subnet+"3", "500m")
				o := operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.Create(loadOfShop(redis.Address()))
				if restart {
					time.Sleep(80 * time.Second)
					o.Stop()
					operatortest.StartOperator(w.Place, operatortest.Spy{})
				}
				test := w.TestEnds("run", 4*time.Minute)
				if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || len(test.Status.Pods) != 1 {
					w.T.Fatalf("%s, pods %+v", operatortest.Where(test.Status.Conditions), test.Status.Pods)
				}
				got := test.Status.Pods[0]
				if got.Name != "shop" || got.Count != 1 || got.Message != "" || got.CPU == nil || got.CPU.Mean != 490 ||
					got.CPU.Max != 490 || got.CPU.Limit == nil || *got.CPU.Limit != 500 {
					w.T.Errorf("pods: %+v, CPU %+v", got, got.CPU)
				}
				if got.Memory == nil || got.Memory.Max < 190<<20 {
					w.T.Errorf("memory %+v, want more than 190Mi", got.Memory)
				}
				b := test.Status.Bottleneck
				const want = "shop: container app of pod shop-0 used 0.49 cores of CPU, 98% of its limit of 0.50 cores"
				if b == nil || b.Component != "Application" || b.Pods != "shop" || b.Evidence != want {
					w.T.Errorf("bottleneck %+v, want %q", b, want)
				}
			})
		})
	}
}

// What the metrics API does not know is a message in the status, and never a failure.
func TestMetricsAPIThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Group: "metrics.k8s.io", Kind: "PodMetrics"}
	pods := schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}
	for want, list := range map[string]func(*unstructured.UnstructuredList) error{
		"the metrics API is not available: install metrics-server": func(*unstructured.UnstructuredList) error {
			return &meta.NoKindMatchError{GroupKind: kind}
		},
		"its role needs list of pods in metrics.k8s.io": func(*unstructured.UnstructuredList) error {
			return apierrors.NewForbidden(pods, "", fmt.Errorf("no"))
		},
		"the metrics API cannot be read: ": func(*unstructured.UnstructuredList) error {
			return apierrors.NewServiceUnavailable("starting")
		},
		"has no readings of the pods yet": func(*unstructured.UnstructuredList) error { return nil },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				var calls atomic.Int32
				metricsAPI(w, func(l *unstructured.UnstructuredList) error { calls.Add(1); return list(l) })
				redis := w.StartRedis("")
				w.Kubelet.Start()
				runningPod(w, "shop", "shop-0", w.Subnet+"3", "500m")
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.Create(loadOfShop(redis.Address()))
				test := w.TestEnds("run", 4*time.Minute)
				if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
					test.Status.Verdict != v1alpha1.VerdictPass {
					w.T.Fatalf("%s", operatortest.Where(test.Status.Conditions))
				}
				if got := test.Status.Pods; len(got) != 1 || got[0].CPU != nil || !strings.Contains(got[0].Message, want) {
					w.T.Errorf("pods %+v, want a message with %q", got, want)
				}
				if n := calls.Load(); n < 10 || n > 15 {
					w.T.Errorf("the metrics API was read %d times in 140 s, want once per 10 s", n)
				}
			})
		})
	}
}

// Readings that are old, that end, or that are outside of the measured time are told as such: there is no figure
// without a word, and no figure of a part that is not said to be one.
func TestMetricsAPIWithoutNewReadings(t *testing.T) {
	t.Parallel()
	cpu := func(time.Duration) string { return "250m" }
	for _, c := range []struct {
		name    string
		metrics func() func(*unstructured.UnstructuredList) error
		measure time.Duration
		figures bool
		message string // part of it
	}{
		{"10 minutes old", func() func(*unstructured.UnstructuredList) error {
			return shifted(metricsServer("shop-0", cpu), -10*time.Minute)
		}, 2 * time.Minute, false, "the metrics API has no new readings of the pods: the newest ended 10m"},
		{"frozen after a minute", func() func(*unstructured.UnstructuredList) error {
			return frozen(metricsServer("shop-0", cpu), time.Minute)
		}, 3 * time.Minute, true, "the metrics API has no new readings of the pods: the newest ended 2m"},
		{"frozen for half a minute", func() func(*unstructured.UnstructuredList) error {
			list := metricsServer("shop-0", cpu)
			began, before := time.Now(), &unstructured.UnstructuredList{}
			return func(l *unstructured.UnstructuredList) error {
				if since := time.Since(began); since > 45*time.Second && since < 75*time.Second {
					l.Items = before.Items
					return nil
				}
				err := list(l)
				before.Items = l.Items
				return err
			}
		}, 2 * time.Minute, true, ""},
		{"a minute late, as its readings are of a minute", func() func(*unstructured.UnstructuredList) error {
			return minutes(metricsServer("shop-0", cpu))
		}, 3 * time.Minute, true, ""},
		{
			"too short a load", func() func(*unstructured.UnstructuredList) error {
				return metricsServer("shop-0",
					cpu)
			}, 5 * time.Second, false,
			"no reading falls into the measured time",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				metricsAPI(w, c.metrics())
				redis := w.StartRedis("")
				w.Kubelet.Start()
				runningPod(w, "shop", "shop-0", w.Subnet+"3", "500m")
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				test := loadOfShop(redis.Address())
				test.Spec.Load.Duration = operatortest.Length(c.measure)
				w.Create(test)
				test = w.TestEnds("run", 5*time.Minute)
				got := test.Status.Pods
				if len(got) != 1 || (got[0].CPU != nil) != c.figures || !strings.Contains(got[0].Message, c.message) ||
					(got[0].Message == "") != (c.message == "") {
					w.T.Errorf("pods %+v; want figures %v and a message with %q", got, c.figures, c.message)
				}
			})
		})
	}
}

// each changes the readings of a metrics API.
func each(
	list func(*unstructured.UnstructuredList) error, change func(reading map[string]any, at time.Time),
) func(*unstructured.UnstructuredList) error {
	return func(l *unstructured.UnstructuredList) error {
		if err := list(l); err != nil {
			return err
		}
		for _, item := range l.Items {
			at, err := time.Parse(time.RFC3339, item.Object["timestamp"].(string))
			if err != nil {
				return err
			}
			change(item.Object, at)
		}
		return nil
	}
}

func shifted(
	list func(*unstructured.UnstructuredList) error, by time.Duration,
) func(*unstructured.UnstructuredList) error {
	return each(list, func(reading map[string]any, at time.Time) {
		reading["timestamp"] = at.Add(by).UTC().Format(time.RFC3339)
	})
}

// frozen repeats the readings from an age of the API on.
func frozen(
	list func(*unstructured.UnstructuredList) error, age time.Duration,
) func(*unstructured.UnstructuredList) error {
	last := time.Now().Add(age)
	return each(list, func(reading map[string]any, at time.Time) {
		if at.After(last) {
			reading["timestamp"] = last.UTC().Format(time.RFC3339)
		}
	})
}

// minutes has a reading per minute, 30 s after its end.
func minutes(list func(*unstructured.UnstructuredList) error) func(*unstructured.UnstructuredList) error {
	return each(list, func(reading map[string]any, at time.Time) {
		reading["timestamp"], reading["window"] = at.Add(-30*time.Second).Truncate(time.Minute).UTC().
			Format(time.RFC3339), "1m"
	})
}

// withUse adds readings of the load generator itself: a quarter of a core, of a limit of one.
type withUse struct{ *engine.Runner }

func (r withUse) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	return r.Runner.Run(ctx, start, r.Watch(func() record.AgentUse {
		return record.AgentUse{CPUSeconds: time.Since(start).Seconds() / 4, CPULimit: 1}
	}, sink))
}

// The status names the pod of each server, the CPU of the load pods and the round trip, from readings of the real load.
func TestUseOfServersInTheStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, app, ip string }{
		{"the pod with the address", "other", "2"},
		{"the only pod of the target, behind a Service", "redis", "99"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) { useOfServers(w, c.app, w.Subnet+c.ip) })
		})
	}
}

func useOfServers(w *operatortest.World, app, ip string) {
	redis := w.StartEngine()
	unwatched := w.Kubelet.Load
	w.Kubelet.Load = func(p *plan.Plan, pod int) (agent.Runner, error) {
		r, err := unwatched(p, pod)
		return withUse{r.(*engine.Runner)}, err
	}
	runningPod(w, app, "redis-0", ip, "1")
	operatortest.StartOperator(w.Place, operatortest.Spy{})
	w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(100)), Duration: operatortest.Length(10 * time.Second)}
	}))
	test := w.TestEnds("run", time.Minute)
	if got := test.Status.Servers; len(got) != 1 || got[0].Address != redis.Address() || got[0].Pod != "redis-0" ||
		got[0].Role != v1alpha1.ServerPrimary || got[0].CPU == nil {
		w.T.Errorf("servers %+v", got)
	} else if limit := got[0].CPU.Limit; app == "redis" && (limit == nil || *limit != 1000) ||
		app != "redis" && limit != nil {
		w.T.Errorf("CPU %+v of a server in a pod of %s, want the limit of 1 core if it is the target's", got[0].CPU, app)
	}
	if got := test.Status.RoundTrip; got == nil || got.Idle == nil || got.UnderLoad == nil {
		w.T.Errorf("round trip %+v", got)
	}
	if got := test.Status.LoadPods; got == nil || got.CPU == nil ||
		*got.CPU != (v1alpha1.CPUUse{Mean: 250, Max: 250, Limit: got.CPU.Limit}) || *got.CPU.Limit != 1000 {
		w.T.Errorf("load pods %+v", got)
	}
}

// A server that another pod replaces behind the same address has the new pod's name; one whose pod is gone keeps it.
func TestPodOfAReplacedServer(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartEngine()
		runningPod(w, "redis", "redis-0", w.Subnet+"99", "1")
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(100)), Duration: operatortest.Length(60 * time.Second)}
		}))
		named := func(pod string, restarts int32) {
			w.T.Helper()
			var servers []v1alpha1.ServerUse
			w.Until(fmt.Sprintf("%d restarts, now in %s", restarts, pod), 30*time.Second, func() bool {
				servers = w.LoadTest("run").Status.Servers
				return len(servers) == 1 && servers[0].Pod == pod && servers[0].Restarts == restarts
			}, func() string { return fmt.Sprintf("servers %+v", servers) })
		}
		gone := func(name string) {
			w.T.Helper()
			w.MustChange(w.Client.Delete(w.T.Context(),
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}, client.GracePeriodSeconds(0)))
		}
		named("redis-0", 0)
		gone("redis-0")
		runningPod(w, "redis", "redis-1", w.Subnet+"99", "1")
		redis.Restart()
		named("redis-1", 1)
		gone("redis-1")
		redis.Restart()
		named("redis-1", 2)
	})
}

// A Redis that is not observed is no Redis at rest: the status says why there are no figures of it.
func TestRedisThatIsNotObserved(t *testing.T) {
	t.Parallel()
	const denied = "NOPERM this user has no permissions to run the 'info' command"
	for _, c := range []struct {
		name, want string
		change     func(*memredis.Server, *v1alpha1.RedisLoadTest)
	}{
		{"no permission", "INFO: " + denied, func(redis *memredis.Server, _ *v1alpha1.RedisLoadTest) {
			redis.Answer("INFO",
				"-"+denied)
		}},
		{
			"disabled",
			"observe.redisInfo is 0s",
			func(_ *memredis.Server, test *v1alpha1.RedisLoadTest) {
				test.Spec.Observe.RedisInfo = operatortest.Length(0)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartEngine()
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(100)), Duration: operatortest.Length(10 * time.Second)}
					c.change(redis, test)
				}))
				test := w.TestEnds("run", time.Minute)
				if got := test.Status; got.Target == nil || got.Target.Message != c.want || len(got.Servers) > 0 ||
					got.Redis != nil {
					w.T.Errorf("target %+v, want the message %q; servers %+v, %+v", got.Target, c.want, got.Servers, got.Redis)
				}
				if b := test.Status.Bottleneck; b == nil || !strings.HasSuffix(b.Evidence, "; Redis was not observed: "+c.want) {
					w.T.Errorf("bottleneck %+v", b)
				}
			})
		})
	}
}
