//go:build integration

package config

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// errOperatorCrashed is the result of a call during which the operator crashes.
var errOperatorCrashed = errors.New("the operator died")

// workload is a StatefulSet whose pods are real servers. settle does the work of its controller and the kubelets. Pod 0
// is the primary.
type workload struct {
	*faulttest.Stage
	pods   *cluster.StatefulSet
	ports  []int
	rolled []string // pods in the order in which they were deleted

	deaf         bool // a script does not use the variable
	writes       int  // of the operator, so far
	dieAt        int  // number of the write in which it crashes, from 1; 0 = never
	dieAfterward bool // after that write was done
}

func newWorkload(t *testing.T, replicas int32, change func(*appsv1.StatefulSet)) *workload {
	t.Helper()
	w := &workload{Stage: faulttest.NewStage(t, Kinds, guard.Choose)}
	labels := map[string]string{"app": "redis"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis", UID: "s", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "sidecar", Args: []string{"--io-threads", "no"}},
					{Name: "redis", Image: "redis:7", Command: []string{"redis-server"}, Args: []string{"--appendonly", "no"}},
				}},
			},
		},
	}
	if change != nil {
		change(set)
	}
	faulttest.Must(t, w.Cluster.Create(t.Context(), set))
	for range replicas {
		w.ports = append(w.ports, redistest.FreePort(t))
	}
	w.pods = &cluster.StatefulSet{
		Client: w.Cluster, Namespace: faulttest.Namespace, Name: "redis", Container: "redis", Start: w.start,
		Address: func(*corev1.Pod) string { return "127.0.0.1" },
		Admit: func(pod *corev1.Pod) {
			containerIn(&pod.Spec, "redis").Ports = []corev1.ContainerPort{{ContainerPort: int32(w.ports[cluster.Ordinal(pod)])}}
		},
	}
	t.TempDir() // cleanups run in reverse order: the servers end before their directories are removed
	t.Cleanup(func() { w.pods.StopAll() })
	under := w.Cluster
	w.Cluster = interceptor.NewClient(under, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption,
		) error {
			return w.write(func() error {
				if err := c.Patch(ctx, object, patch, options...); err != nil {
					return err
				}
				object.SetGeneration(object.GetGeneration() + 1) // as an API server does when the spec changes
				return under.Update(ctx, object)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return w.write(func() error {
				w.rolled = append(w.rolled, object.GetName())
				w.checkOthersServe(object.GetName())
				return c.Delete(ctx, object, options...)
			})
		},
	})
	w.settle()
	return w
}

// write performs one write of the operator, which may crash in it.
func (w *workload) write(do func() error) error {
	w.writes++
	if w.writes == w.dieAt && !w.dieAfterward {
		return errOperatorCrashed
	}
	err := do()
	if w.writes == w.dieAt {
		return errOperatorCrashed
	}
	return err
}

func (w *workload) set() *appsv1.StatefulSet {
	w.T.Helper()
	set := &appsv1.StatefulSet{}
	faulttest.Must(w.T, w.Cluster.Get(w.T.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis"}, set))
	return set
}

// checkOthersServe fails the test if another pod is missing or out of sync while one is deleted.
func (w *workload) checkOthersServe(name string) {
	w.T.Helper()
	for i, port := range w.ports {
		pod := fmt.Sprintf("redis-%d", i)
		if pod == name {
			continue
		}
		if _, err := w.podNamed(context.Background(), pod); err != nil {
			w.T.Errorf("%s was deleted while %s is missing", name, pod)
			continue
		}
		reply, err := w.Real.Do(context.Background(), "127.0.0.1:"+strconv.Itoa(port), w.Login, "INFO", "replication")
		if info := redis.ParseInfo(fmt.Sprint(reply)); err != nil || i > 0 && info["master_link_status"] != "up" {
			w.T.Errorf("%s is deleted while %s is not in sync (%v)", name, pod, err)
		}
	}
}

func (w *workload) podNamed(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, w.Cluster.Get(ctx, client.ObjectKey{Namespace: faulttest.Namespace, Name: name}, pod)
}

// settle does the pending work of the StatefulSet controller and the kubelets. They do not replace a pod of another
// template.
func (w *workload) settle() {
	w.T.Helper()
	faulttest.Must(w.T, w.pods.Settle(context.Background()))
	if len(w.pods.Rolled) > 0 {
		w.T.Errorf("the StatefulSet controller rolls %v by itself", w.pods.Rolled)
		w.pods.Rolled = nil
	}
}

// start runs the server of a pod with the command and arguments of its container.
func (w *workload) start(pod *corev1.Pod) (stop func(), exited <-chan struct{}, err error) {
	container := containerIn(&pod.Spec, "redis")
	var arguments []string
	switch {
	case container.Command[0] == "redis-server":
		arguments = slices.Concat(container.Command, container.Args)[1:]
	case strings.Contains(container.Command[2], bitnamiScript) && !w.deaf:
		for _, flags := range (optionSource{"redis", "REDIS_EXTRA_FLAGS"}).of(&pod.Spec) {
			arguments = strings.Fields(flags)
		}
	}
	if cluster.Ordinal(pod) > 0 {
		arguments = append(arguments, "--replicaof", "127.0.0.1", strconv.Itoa(w.ports[0]))
	}
	redis, err := cluster.RunRedis(context.Background(), w.T.TempDir(), "127.0.0.1", w.ports[cluster.Ordinal(pod)], 0, arguments...)
	if err != nil {
		return nil, nil, err
	}
	return redis.Stop, redis.Exited, nil
}

func (w *workload) deps() contract.Deps {
	deps := w.Stage.Deps()
	deps.Cluster, deps.Live = w.Cluster, w.Cluster
	return deps
}

func (w *workload) injector(spec *v1alpha1.RedisFaultSpec) contract.Injector {
	w.T.Helper()
	w.Real.Close()
	injector, err := Kinds.For(spec, w.deps())
	faulttest.Must(w.T, err)
	return injector
}

// record selects all servers and records them, as the controller does.
func (w *workload) record(spec *v1alpha1.RedisFaultSpec) []v1alpha1.FaultTarget {
	w.T.Helper()
	targets, err := guard.Choose(w.T.Context(),
		faulttest.On(w.deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}}, contract.Traits{})
	faulttest.Must(w.T, err)
	for i := range targets {
		await.Until(w.T, "preflight passes", func() error { return w.injector(spec).Preflight(w.T.Context(), &targets[i]) })
	}
	return targets
}

// work calls each target's step until all are complete, as the controller does; each call uses a new injector. A crash
// discards what the operator changed in the record.
func (w *workload) work(
	targets []v1alpha1.FaultTarget, spec *v1alpha1.RedisFaultSpec,
	step func(contract.Injector, *v1alpha1.FaultTarget) error,
) (progress []string) {
	w.T.Helper()
	await.Until(w.T, "all steps are done", func() error {
		var left error
		for i := range targets {
			before := targets[i].DeepCopy()
			err := step(w.injector(spec), &targets[i])
			var steps *faulttest.Pending
			switch {
			case errors.As(err, &steps):
				progress = append(progress, steps.Message)
				left = err
			case errors.Is(err, errOperatorCrashed) || err != nil && strings.Contains(err.Error(), errOperatorCrashed.Error()):
				targets[i] = *before
				left = err
			case err != nil:
				w.T.Fatal(err)
			}
			w.settle()
		}
		return left
	})
	return progress
}

func (w *workload) inject(targets []v1alpha1.FaultTarget, spec *v1alpha1.RedisFaultSpec) []string {
	w.T.Helper()
	return w.work(targets, spec, func(i contract.Injector, target *v1alpha1.FaultTarget) error {
		return faulttest.Called(i.Inject(w.T.Context(), target))
	})
}

func (w *workload) revert(targets []v1alpha1.FaultTarget, spec *v1alpha1.RedisFaultSpec) []string {
	w.T.Helper()
	return w.work(targets, spec, func(i contract.Injector, target *v1alpha1.FaultTarget) error {
		return faulttest.Called(i.Revert(w.T.Context(), target))
	})
}

// expectThreads fails the test unless all servers, and the template, have this number of threads.
func (w *workload) expectThreads(want string, arguments ...string) {
	w.T.Helper()
	for i, port := range w.ports {
		reply, err := w.Real.Do(w.T.Context(), "127.0.0.1:"+strconv.Itoa(port), w.Login, "CONFIG", "GET", "io-threads")
		if got := topology.Pairs(reply)["io-threads"]; err != nil || got != want {
			w.T.Errorf("redis-%d has io-threads %s (%v), want %s", i, got, err, want)
		}
	}
	if got := containerIn(&w.set().Spec.Template.Spec, "redis").Args; !slices.Equal(got, arguments) {
		w.T.Errorf("the template's arguments are %q, want %q", got, arguments)
	}
}

// busy makes many clients wait for replies at once: only then do the threads of Redis 7 run.
func (w *workload) busy() {
	w.T.Helper()
	out, err := exec.Command("redis-benchmark", "-p", strconv.Itoa(w.ports[0]), "-c", "50", "-n", "5000", "-t", "set",
		"-P", "8", "-q").CombinedOutput()
	if err != nil {
		w.T.Fatalf("%v: %s", err, out)
	}
}
