package redisloadtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// endContainer has the kubelet count an end of the container of a pod, which starts again at once.
func endContainer(w *operatortest.World, name, reason string, code int32) {
	w.T.Helper()
	pod := &corev1.Pod{}
	if err := w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, pod); err != nil {
		w.T.Fatal(err)
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
	}
	c := &pod.Status.ContainerStatuses[0]
	c.RestartCount++
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason:     reason,
		ExitCode:   code,
		FinishedAt: metav1.Now(),
	}
	if err := w.Client.Status().Update(w.T.Context(), pod); err != nil {
		w.T.Fatal(err)
	}
}

// Containers of Redis that end during a load, also before they could be asked for INFO, are in its status with how
// often and why, whether or not the operator ends meanwhile; those that ended before it are not.
func TestContainersThatEndDuringALoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		ends    []time.Duration // since the start
		restart bool
		times   int32
	}{
		{"none", nil, false, 0},
		{"three", []time.Duration{3 * time.Second, 12 * time.Second, 31 * time.Second}, false, 3},
		{
			"three, and the operator ends meanwhile",
			[]time.Duration{3 * time.Second, 25 * time.Second, 31 * time.Second},
			true,
			3,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartEngine()
				runningPod(w, "redis", "redis-0", w.Subnet+"2", "1")
				endContainer(w, "redis-0", "Error", 1) // long ago
				time.Sleep(time.Minute)
				o := operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(100)), Duration: operatortest.Length(40 * time.Second)}
				}))
				var start time.Time
				w.Until("the load begins", time.Minute, func() bool {
					if at := w.LoadTest("run").Status.StartTime; at != nil {
						start = at.Time
					}
					return !start.IsZero()
				}, func() string { return operatortest.Where(w.LoadTest("run").Status.Conditions) })
				for i, at := range tt.ends {
					time.Sleep(time.Until(start.Add(at)))
					endContainer(w, "redis-0", "OOMKilled", 137)
					if tt.restart && i == 0 {
						time.Sleep(12 * time.Second)
						o.Stop()
						o = operatortest.StartOperator(w.Place, operatortest.Spy{})
					}
				}
				st := w.TestEnds("run", time.Minute).Status
				if tt.times == 0 {
					if len(st.Exits)+len(st.Warnings) > 0 {
						w.T.Errorf("exits %+v, warnings %q", st.Exits, st.Warnings)
					}
					return
				}
				want := fmt.Sprintf(
					"container app of pod redis-0 ended %d times without a fault, the last time with exit code 137, OOMKilled",
					tt.times)
				if len(st.Exits) != 1 || st.Exits[0].Times != tt.times || st.Exits[0].Reason != "OOMKilled" ||
					!strings.HasPrefix(strings.Join(st.Warnings, " "), want) {
					w.T.Fatalf("exits %+v, warnings %q; want %s", st.Exits, st.Warnings, want)
				}
				if st.Redis == nil || st.Redis.Restarts != tt.times || len(st.Servers) != 1 || st.Servers[0].Restarts != tt.times {
					w.T.Errorf("redis %+v, servers %+v", st.Redis, st.Servers)
				}
			})
		})
	}
}
