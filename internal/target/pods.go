package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// Pods lists the running pods of a target by name: those of podSelector, else those that the Service selects.
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
	running := slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool { return !isServer(&p) || absence(&p) != "" })
	if len(running) == 0 {
		return nil, problem.NoTarget("%s: it selects no running pod in namespace %s", selectingField(r.Spec), r.Namespace)
	}
	return running, r.checkContainer(running)
}

// Ready returns those of the pods that run. It returns a Problem for the first that is not ready: a Redis that starts is not to be used without the pods
// that are about to come. But it waits for none for longer than patience, be it since the pod became so, or since the load was first to begin: then Redis
// is used as it is.
func (r Redis) Ready(all []corev1.Pod, since, now time.Time, patience time.Duration) ([]corev1.Pod, error) {
	for i := range all {
		p := &all[i]
		if why, began := unready(p); why != "" && isServer(p) && now.Sub(began) < patience && now.Sub(since) < patience {
			return nil, &problem.Problem{Reason: v1alpha1.ReasonTargetNotReady, Message: fmt.Sprintf("%s: pod %s %s", selectingField(r.Spec), p.Name, why)}
		}
	}
	return r.Running(all)
}

// isServer reports whether a selected pod may be one of Redis: neither one of its load, nor one of a Job, such as the Job that forms a cluster and has
// the labels of the whole release.
func isServer(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return p.Labels[v1alpha1.LabelLoadTest] == "" && (owner == nil || owner.Kind != "Job")
}

// unready is why a pod that runs, or will run, is not ready, and since when; "" if it is, or has ended.
func unready(p *corev1.Pod) (why string, since time.Time) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return "", since
	case p.DeletionTimestamp != nil: // when its grace period ends
		return absence(p), p.DeletionTimestamp.Add(-time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second)
	case absence(p) != "":
		return absence(p), p.CreationTimestamp.Time
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return strings.TrimSuffix("is not ready: "+c.Message, ": "), c.LastTransitionTime.Time
		}
	}
	return "", since
}

// IsReady reports whether a pod's condition Ready is True.
func IsReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// absence is why a pod does not run; "" where it does.
func absence(p *corev1.Pod) string {
	switch {
	case p.DeletionTimestamp != nil:
		return "is terminating"
	case p.Status.Phase != corev1.PodRunning:
		return "is " + string(cmp.Or(p.Status.Phase, corev1.PodPending))
	case p.Status.PodIP == "":
		return "has no address"
	}
	return ""
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

// Selector selects the pods of a target. It returns a Problem where neither podSelector nor a Service determines them.
func (r Redis) Selector(ctx context.Context) (labels.Selector, error) {
	target := r.Spec
	if target == nil { // the load test that named it is gone
		return nil, problem.NoTarget("spec.target: the Redis is not known: neither the fault nor a load test names one")
	}
	if target.PodSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(target.PodSelector)
		if err != nil {
			return nil, &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.target.podSelector: " + err.Error(), Lasting: true}
		}
		return selector, nil
	}
	if target.Service == nil {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Lasting: true,
			Message: "spec.target.podSelector: the pods of Redis cannot be determined by addresses, and a fault on pods requires them: set podSelector, or service"}
	}
	var service corev1.Service
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: target.Service.Name}, &service)
	if apierrors.IsNotFound(err) {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonServiceNotFound,
			Message: fmt.Sprintf("spec.target.service.name: there is no Service %q in namespace %s", target.Service.Name, r.Namespace)}
	}
	if err != nil {
		return nil, fmt.Errorf("read Service %s: %w", target.Service.Name, err)
	}
	if len(service.Spec.Selector) == 0 {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Lasting: true,
			Message: fmt.Sprintf("spec.target.podSelector: Service %q has no selector, so its pods are not known: set podSelector", service.Name)}
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
