package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
	"github.com/redquake/redquake/internal/target/podstate"
)

// Pods lists the running pods of a target by name: those of podSelector, else those that the
// Service selects.
// It returns a Problem where there is none.
func (r Redis) Pods(ctx context.Context) ([]corev1.Pod, error) {
	all, err := r.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	return r.Running(all)
}

// Running returns those of the pods that run. It returns a Problem where there is none.
func (r Redis) Running(all []corev1.Pod) ([]corev1.Pod, error) {
	running := slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool {
		return !isServer(&p) ||
			podstate.Absence(&p) != ""
	})
	if len(running) == 0 {
		return nil, problem.NoTarget("%s: it selects no running pod in namespace %s",
			selectingField(r.Spec), r.Namespace)
	}
	return running, r.checkContainer(running)
}

// Ready returns those of the pods that run. It returns a Problem for the first that is not ready: a
// Redis that starts is not to be used without the pods that are about to come. But it waits for
// none for longer than patience, be it since the pod became so, or since the load was first to
// begin: then Redis is used as it is.
func (r Redis) Ready(
	all []corev1.Pod, since, now time.Time, patience time.Duration,
) ([]corev1.Pod, error) {
	for i := range all {
		p := &all[i]
		why, began := podstate.Unready(p)
		if why != "" && isServer(p) && now.Sub(began) < patience && now.Sub(since) < patience {
			return nil, &problem.Problem{
				Reason:  v1alpha1.ReasonTargetNotReady,
				Message: fmt.Sprintf("%s: pod %s %s", selectingField(r.Spec), p.Name, why),
			}
		}
	}
	return r.Running(all)
}

// isServer reports whether a selected pod may be one of Redis: neither one of its load, nor one of
// a Job, such as the Job that forms a cluster and has the labels of the whole release.
func isServer(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return p.Labels[v1alpha1.LabelLoadTest] == "" && (owner == nil || owner.Kind != "Job")
}

// AllPods lists the pods of a target by name, in whatever state.
func (r Redis) AllPods(ctx context.Context) ([]corev1.Pod, error) {
	selector, err := r.Selector(ctx)
	if err != nil {
		return nil, err
	}
	all, err := r.ListPods(ctx, client.MatchingLabelsSelector{Selector: selector})
	slices.SortFunc(all, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

func selectingField(target *v1alpha1.RedisTarget) string {
	if target.PodSelector != nil {
		return "spec.target.podSelector"
	}
	return "spec.target.service.name"
}

// Selector selects the pods of a target. It returns a Problem where neither podSelector nor a
// Service determines them.
func (r Redis) Selector(ctx context.Context) (labels.Selector, error) {
	target := r.Spec
	if target == nil { // the load test that named it is gone
		return nil, problem.NoTarget(
			"spec.target: the Redis is not known: neither the fault nor a load test names one")
	}
	if target.PodSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(target.PodSelector)
		if err != nil {
			return nil, &problem.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Message: "spec.target.podSelector: " + err.Error(),
				Lasting: true,
			}
		}
		return selector, nil
	}
	if target.Service == nil {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonNoTarget,
			Lasting: true,
			Message: "spec.target.podSelector: the pods of Redis cannot be determined by addresses, and a " +
				"fault on pods requires them: set podSelector, or service",
		}
	}
	var service corev1.Service
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: target.Service.Name},
		&service)
	if apierrors.IsNotFound(err) {
		return nil, &problem.Problem{
			Reason: v1alpha1.ReasonServiceNotFound,
			Message: fmt.Sprintf("spec.target.service.name: there is no Service %q in namespace %s",
				target.Service.Name, r.Namespace),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read Service %s: %w", target.Service.Name, err)
	}
	if len(service.Spec.Selector) == 0 {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonNoTarget,
			Lasting: true,
			Message: fmt.Sprintf(
				"spec.target.podSelector: Service %q has no selector, so its pods are not known: set podSelector",
				service.Name),
		}
	}
	return labels.SelectorFromSet(service.Spec.Selector), nil
}

// RestartCount is how often a container of a pod was restarted.
func (Redis) RestartCount(pod *corev1.Pod, container string) int32 {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.RestartCount
		}
	}
	return 0
}

// ListPods lists the pods of a namespace, page by page.
func (r Redis) ListPods(ctx context.Context, options ...client.ListOption) ([]corev1.Pod, error) {
	since := time.Now()
	var all []corev1.Pod
	var page corev1.PodList
	err := paging.Each(ctx, r.Live, &page, func() bool {
		all = append(all, page.Items...)
		page.Items = nil // the next page must not be decoded over these
		return true
	}, append(options[:len(options):len(options)], client.InNamespace(r.Namespace))...)
	if err != nil {
		return nil, fmt.Errorf("list pods in namespace %s: %w", r.Namespace, err)
	}
	r.learn(since, all...)
	return all, nil
}

// ServerPods lists the pods of a target that may be of Redis, by name, in whatever state.
func (r Redis) ServerPods(ctx context.Context) ([]corev1.Pod, error) {
	all, err := r.AllPods(ctx)
	return slices.DeleteFunc(all, func(p corev1.Pod) bool { return !isServer(&p) }), err
}

// LatestPods lists the pods of a target by name, in whatever state: those that the watch of them
// shows, some milliseconds late, else those of the API server. Of a target that is not known it
// lists all pods of the namespace. They must not be changed.
func (r Redis) LatestPods(ctx context.Context) ([]corev1.Pod, error) {
	if pods, ok := r.Watched.Pods(); ok {
		return pods, nil
	}
	if r.Spec == nil {
		return r.ListPods(ctx)
	}
	return r.AllPods(ctx)
}

// annotationUserIDs on a namespace of OpenShift is the range of user IDs from which the security
// context constraint restricted-v2 assigns one to each pod.
// It refuses pods that ask for another.
const annotationUserIDs = "openshift.io/sa.scc.uid-range"

// AssignsUserIDs reports whether a namespace assigns the users of its pods.
func AssignsUserIDs(ctx context.Context, reader client.Reader, namespace string) (bool, error) {
	found := &corev1.Namespace{}
	err := reader.Get(ctx, client.ObjectKey{Name: namespace},
		found)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return found.Annotations[annotationUserIDs] != "", nil
}

// CPULimit is the lowest CPU limit of the target's Redis containers, in cores; 0 where none has
// one. It returns a Problem where the target names no pods.
func (r Redis) CPULimit(ctx context.Context) (float64, error) {
	pods, err := r.Pods(ctx)
	if err != nil {
		return 0, err
	}
	lowest := 0.0
	for i := range pods {
		container := r.Container(&pods[i])
		limit, ok := container.Resources.Limits[corev1.ResourceCPU]
		n := limit.AsApproximateFloat64()
		if ok && n > 0 && (lowest == 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest, nil
}
