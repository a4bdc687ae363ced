package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// roomForThreads refuses more threads than there are cores beside one spare, at servers whose
// threads spin while they wait: these burn the container's CPU quota, and the server falls to a
// small part of its throughput.
func (t ioThreads) roomForThreads(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if t.count == 1 || slices.Contains(t.allow, v1alpha1.AllowTooFewCores) {
		return nil
	}
	server, err := t.Servers.Ask(ctx, target.Address, t.Login)
	if err != nil {
		return err
	}
	seen := spins(server)
	if seen == "" {
		return nil
	}
	cores, whose, err := t.cores(ctx, target)
	if err != nil || cores >= float64(t.count)+1 {
		return err
	}
	return problem.TooWide(
		"spec.action.ioThreads.count: %d threads require %d cores, one of them spare, and %s is %s. "+
			"The threads of %s %s spin while they wait: %s; spec.allow: [%s] lifts this guard",
		t.count, t.count+1, whose, strconv.FormatFloat(cores, 'g', 3, 64), server.Name, server.Version,
		seen, v1alpha1.AllowTooFewCores)
}

// spins is the measured effect of too few cores on such a server (SET, 50 clients, 2 cores); "" of
// one whose threads sleep while they wait.
func spins(server topology.Server) string {
	if server.Name == "valkey" {
		return "io-threads 4 on 2 cores served 5,603 SET/s instead of 192,307"
	}
	major, _, _ := strings.Cut(server.Version, ".")
	if n, err := strconv.Atoi(major); err == nil && n >= 8 {
		return ""
	}
	return "io-threads 4 on 2 cores served 1,834 SET/s instead of 132,978"
}

// cores is the CPU limit of the Redis container, else the allocatable CPU of its node.
func (t ioThreads) cores(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (n float64, whose string, err error) {
	pod, err := t.Pod(ctx, target.Pod)
	if err != nil {
		return 0, "", err
	}
	container := t.Container(pod)
	limit, ok := container.Resources.Limits[corev1.ResourceCPU]
	if ok && !limit.IsZero() {
		return limit.AsApproximateFloat64(), fmt.Sprintf("the CPU limit of container %s",
			container.Name), nil
	}
	node := &corev1.Node{}
	err = t.Live.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return 0, "", problem.Invalid(
			"spec.action.ioThreads.count: container %s has no CPU limit, and how many cores node %s has "+
				"cannot be read (%v): give it a limit, or set spec.allow: [%s]",
			container.Name, cmp.Or(pod.Spec.NodeName, "none"), err, v1alpha1.AllowTooFewCores)
	}
	return node.Status.Allocatable.Cpu().AsApproximateFloat64(),
		fmt.Sprintf("the allocatable CPU of node %s", node.Name), err
}
