package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// endContainer has the kubelet count an end of the container of a pod, which starts again at once.
func (w *world) endContainer(name, reason string, code int32) {
	w.t.Helper()
	pod := &corev1.Pod{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, pod); err != nil {
		w.t.Fatal(err)
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
	if err := w.client.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
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
			inWorld(t, func(w *world) {
				redis := w.startEngine()
				w.runningPod("redis", "redis-0", w.subnet+"2", "1")
				w.endContainer("redis-0", "Error", 1) // long ago
				time.Sleep(time.Minute)
				o := startOperator(w.place, spy{})
				w.create(newLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(100)), Duration: length(40 * time.Second)}
				}))
				var start time.Time
				w.until("the load begins", time.Minute, func() bool {
					if at := w.loadTest("run").Status.StartTime; at != nil {
						start = at.Time
					}
					return !start.IsZero()
				}, func() string { return where(w.loadTest("run").Status.Conditions) })
				for i, at := range tt.ends {
					time.Sleep(time.Until(start.Add(at)))
					w.endContainer("redis-0", "OOMKilled", 137)
					if tt.restart && i == 0 {
						time.Sleep(12 * time.Second)
						o.stop()
						o = startOperator(w.place, spy{})
					}
				}
				st := w.testEnds("run", time.Minute).Status
				if tt.times == 0 {
					if len(st.Exits)+len(st.Warnings) > 0 {
						w.t.Errorf("exits %+v, warnings %q", st.Exits, st.Warnings)
					}
					return
				}
				want := fmt.Sprintf(
					"container app of pod redis-0 ended %d times without a fault, the last time with exit code 137, OOMKilled",
					tt.times)
				if len(st.Exits) != 1 || st.Exits[0].Times != tt.times || st.Exits[0].Reason != "OOMKilled" ||
					!strings.HasPrefix(strings.Join(st.Warnings, " "), want) {
					w.t.Fatalf("exits %+v, warnings %q; want %s", st.Exits, st.Warnings, want)
				}
				if st.Redis == nil || st.Redis.Restarts != tt.times || len(st.Servers) != 1 || st.Servers[0].Restarts != tt.times {
					w.t.Errorf("redis %+v, servers %+v", st.Redis, st.Servers)
				}
			})
		})
	}
}
