//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// isDescribed checks that `kubectl describe` of what a fault has hit shows it, with the fault's name: its workloads,
// its pods unless they were replaced, and further objects, such as Node/node-a.
func (n *namespace) isDescribed(fault *v1alpha1.RedisFault, objects ...string) {
	n.Helper()
	reasons := []string{"FaultInjected"}
	if fault.Spec.Duration != nil {
		reasons = append(reasons, "FaultReverted")
	}
	objects = append(objects, fault.Status.Workloads...)
	for _, t := range fault.Status.Targets {
		pod := &corev1.Pod{}
		if n.get(t.Pod, pod) && string(pod.UID) == t.UID {
			objects = append(objects, "Pod/"+t.Pod)
		}
	}
	about := fmt.Sprintf("RedisFault %s/%s: %s on ", n.name, fault.Name, fault.Spec.Action.Type)
	for _, object := range objects {
		n.eventually(20*time.Second, fmt.Sprintf("kubectl describe %s shows %v of %s", object, reasons, fault.Name),
			func() (bool, string) {
				shown := n.describe(object)
				return !slices.ContainsFunc(reasons, func(reason string) bool { return !hasLine(shown, reason, about) }), shown
			})
	}
}

// describe is the output of kubectl describe, or its error.
func (n *namespace) describe(object string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	shown, err := exec.CommandContext(ctx, "kubectl", "-n", n.name, "describe", object).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, shown)
	}
	return string(shown)
}

// hasLine reports whether a line of a text contains all the parts.
func hasLine(text string, parts ...string) bool {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}
