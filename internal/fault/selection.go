package fault

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// redisPort is what Redis listens on unless told otherwise.
const redisPort = 6379

// Select finds the servers that a fault shall hit, asks each for its role and run_id, and returns their records, by name.
// It returns a Problem where there is none.
func Select(ctx context.Context, around Surroundings, target *v1alpha1.RedisTarget, selector v1alpha1.FaultSelector) ([]v1alpha1.FaultTarget, error) {
	found, err := survey(ctx, around, target)
	if err != nil {
		return nil, err
	}
	if err := settlePrimaries(ctx, around, found); err != nil {
		return nil, err
	}
	return choose(found, selector)
}

// choose takes those that a selector names, by name.
func choose(found []server, selector v1alpha1.FaultSelector) ([]v1alpha1.FaultTarget, error) {
	if selector.Shard != nil && !slices.ContainsFunc(found, func(s server) bool { return s.shard == int(*selector.Shard) }) {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: fmt.Sprintf("spec.select.shard: no server of shard %d answers", *selector.Shard)}
	}
	var matching []v1alpha1.FaultTarget
	var others []string
	for i := range found {
		s := &found[i]
		if selector.Shard != nil && s.shard != int(*selector.Shard) {
			continue
		}
		role := roleOf(s.said.Role)
		// One that does not answer INFO is no Redis, or one whose end could not be told from its beginning.
		if want := selector.Role; s.err != nil || want != "" && want != v1alpha1.RoleAny && role != want {
			others = append(others, describe(s.pod.Name, s.said.Role, s.err))
			continue
		}
		matching = append(matching, record(s.pod, s.said, role))
	}
	if len(matching) == 0 {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: fmt.Sprintf("spec.select.role: no server of role %s answers: %s", cmp.Or(selector.Role, v1alpha1.RoleAny), strings.Join(others, "; "))}
	}
	return take(matching, selector)
}

func take(found []v1alpha1.FaultTarget, selector v1alpha1.FaultSelector) ([]v1alpha1.FaultTarget, error) {
	switch selector.Mode {
	case v1alpha1.SelectAll:
		return found, nil
	case v1alpha1.SelectCount:
		if selector.Count == nil || int(*selector.Count) > len(found) {
			return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: fmt.Sprintf("spec.select.count: only %d servers match", len(found))}
		}
		return found[:*selector.Count], nil
	}
	return found[:1], nil
}

// Pods lists the running pods of a target by name: those of podSelector, else those that the Service selects.
// It returns a Problem where there is none.
func Pods(ctx context.Context, around Surroundings, target *v1alpha1.RedisTarget) ([]corev1.Pod, error) {
	all, err := AllPods(ctx, around, target)
	if err != nil {
		return nil, err
	}
	running := slices.DeleteFunc(all, func(p corev1.Pod) bool {
		return p.Labels[v1alpha1.LabelLoadTest] != "" || p.DeletionTimestamp != nil || p.Status.PodIP == "" || p.Status.Phase != corev1.PodRunning
	})
	if len(running) == 0 {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget,
			Message: fmt.Sprintf("%s: it selects no running pod in namespace %s", selectingField(target), around.Namespace)}
	}
	return running, nil
}

// AllPods lists the pods of a target by name, in whatever state.
func AllPods(ctx context.Context, around Surroundings, target *v1alpha1.RedisTarget) ([]corev1.Pod, error) {
	selector, err := podSelector(ctx, around, target)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := around.Live.List(ctx, &list, client.InNamespace(around.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func selectingField(target *v1alpha1.RedisTarget) string {
	if target.PodSelector != nil {
		return "spec.target.podSelector"
	}
	return "spec.target.service.name"
}

func podSelector(ctx context.Context, around Surroundings, target *v1alpha1.RedisTarget) (labels.Selector, error) {
	if target.PodSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(target.PodSelector)
		if err != nil {
			return nil, &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.target.podSelector: " + err.Error(), Lasting: true}
		}
		return selector, nil
	}
	if target.Service == nil {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Lasting: true,
			Message: "spec.target.podSelector: a fault on pods must know which pods are Redis, and addresses do not tell: set podSelector, or service"}
	}
	var service corev1.Service
	err := around.Live.Get(ctx, client.ObjectKey{Namespace: around.Namespace, Name: target.Service.Name}, &service)
	if apierrors.IsNotFound(err) {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonServiceNotFound,
			Message: fmt.Sprintf("spec.target.service.name: there is no Service %q in namespace %s", target.Service.Name, around.Namespace)}
	}
	if err != nil {
		return nil, err
	}
	if len(service.Spec.Selector) == 0 {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Lasting: true,
			Message: fmt.Sprintf("spec.target.podSelector: Service %q has no selector, so its pods are not known: set podSelector", service.Name)}
	}
	return labels.SelectorFromSet(service.Spec.Selector), nil
}

func record(pod *corev1.Pod, server topology.Server, role v1alpha1.RedisRole) v1alpha1.FaultTarget {
	container := containerOf(pod)
	return v1alpha1.FaultTarget{
		Pod: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Role: role, Address: Address(pod),
		RunID: server.RunID, Container: container.Name, RestartCount: restartCount(pod, container.Name),
	}
}

func roleOf(r topology.Role) v1alpha1.RedisRole {
	switch r {
	case topology.Primary:
		return v1alpha1.RolePrimary
	case topology.Replica:
		return v1alpha1.RoleReplica
	}
	return ""
}

func describe(pod string, role topology.Role, err error) string {
	if err != nil {
		return fmt.Sprintf("%s did not answer (%v)", pod, err)
	}
	return fmt.Sprintf("%s is %s", pod, role)
}

// containerOf is the container that runs Redis: the one with Redis's port, else one whose image says so, else the first.
func containerOf(pod *corev1.Pod) corev1.Container {
	for _, c := range pod.Spec.Containers {
		if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == redisPort }) {
			return c
		}
	}
	for _, c := range pod.Spec.Containers {
		if strings.Contains(c.Image, "redis") || strings.Contains(c.Image, "valkey") {
			return c
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return corev1.Container{}
	}
	return pod.Spec.Containers[0]
}

// Address is where the server in a pod listens.
func Address(pod *corev1.Pod) string {
	port := int32(redisPort)
	if c := containerOf(pod); len(c.Ports) > 0 && !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == redisPort }) {
		port = c.Ports[0].ContainerPort
	}
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
}

func restartCount(pod *corev1.Pod, container string) int32 {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.RestartCount
		}
	}
	return 0
}

// AskTimeout bounds every question to Redis that a fault depends on.
const AskTimeout = 2 * time.Second
