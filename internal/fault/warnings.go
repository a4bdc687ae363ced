package fault

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/owner"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/podstate"
)

// Warnings lists what else acts on the targets: hooks that run before a server ends, probes that
// restart one that hangs, operators that own the workload and may revert the fault; and copies of
// their data that are not in sync. Objects that cannot be read are skipped, and servers that do not
// answer.
func Warnings(
	ctx context.Context, redis target.Redis, traits contract.Traits, targets []v1alpha1.FaultTarget,
) []string {
	var found []string
	warn := func(format string, words ...any) {
		text := fmt.Sprintf(format, words...)
		if !slices.Contains(found, text) && len(found) < 32 {
			found = append(found, text[:min(len(text), 512)])
		}
	}
	warnOfCopies(ctx, redis, targets, warn)
	for i := range targets {
		warnOfLoss(&targets[i], warn)
		pod, err := redis.Pod(ctx, targets[i].Pod)
		if err != nil {
			continue
		}
		container := redis.Container(pod)
		if traits.EndsServer {
			warnOfHook(pod.Name, &container, warn)
		} else if traits.Silences {
			warnOfProbe(pod.Name, &container, traits.Lasts, warn)
		}
		if traits.RollsPods {
			warnOfHook(pod.Name, &container, warn)
			warnOfGitOps(ctx, redis, pod, warn)
		}
		// after a kill, recreating the pod is the owner's task; what is apart changes nothing of it
		if (traits.Lasts > 0 || !traits.EndsServer) && !traits.Apart {
			warnOfOwner(ctx, redis, pod, warn)
		}
	}
	return found
}

// warnOfCopies names the copies of the targets' data that are not in sync, such as a replica whose
// full synchronization never completes: there are fewer copies than pods, also where the guards
// find enough of them.
func warnOfCopies(
	ctx context.Context, redis target.Redis, targets []v1alpha1.FaultTarget, warn func(string, ...any),
) {
	ctx, cancel := context.WithTimeout(ctx, target.SurveyTimeout)
	defer cancel()
	asked := map[string]bool{}
	for i := range targets {
		for _, name := range targets[i].Copies {
			if asked[name] {
				continue
			}
			asked[name] = true
			pod, err := redis.Pod(ctx, name)
			if err != nil {
				continue
			}
			if why := redis.Behind(ctx, pod); why != "" {
				warn(
					"pod %s %s: it is no copy in sync of the data of pod %s, and a failover can lose data or wait for it",
					name, why, targets[i].Pod)
			}
		}
	}
}

// warnOfLoss says that a server comes back without its data, and who copies that.
func warnOfLoss(t *v1alpha1.FaultTarget, warn func(string, ...any)) {
	switch {
	case t.LosesData == "":
	case len(t.Copies) == 0:
		warn("pod %s comes back without its data, and has no other copy: %s", t.Pod, t.LosesData)
	default:
		warn("pod %s comes back without its data, and %s may copy its empty data set: %s", t.Pod,
			strings.Join(t.Copies, ", "), t.LosesData)
	}
}

func warnOfHook(pod string, container *corev1.Container, warn func(string, ...any)) {
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil {
		return
	}
	what := "a request"
	exec := container.Lifecycle.PreStop.Exec
	if exec != nil && len(exec.Command) > 0 {
		what = path.Base(exec.Command[0]) // its arguments may hold a password
	}
	warn(
		"pod %s has a preStop hook, which runs before the server ends, for up to a second also with grace period 0: %s",
		pod, what)
}

func warnOfProbe(
	pod string, container *corev1.Container, lasts time.Duration, warn func(string, ...any),
) {
	probe := container.LivenessProbe
	if probe == nil {
		return
	}
	patience := podstate.PatienceOf(probe)
	if lasts >= patience {
		warn(
			"pod %s has a liveness probe that restarts its container after %s without an answer; the fault lasts %s",
			pod, patience, lasts)
	}
}

// gitOps are labels and annotations by which tools for GitOps mark what they apply.
var gitOps = []struct{ key, tool string }{
	{"argocd.argoproj.io/tracking-id", "Argo CD, which with selfHeal"},
	{"argocd.argoproj.io/instance", "Argo CD, which with selfHeal"},
	{"kustomize.toolkit.fluxcd.io/name", "Flux, which"},
	{"helm.toolkit.fluxcd.io/name", "Flux, which with driftDetection"},
}

// warnOfGitOps names the tool that applies the StatefulSet of a pod whose template is changed.
func warnOfGitOps(
	ctx context.Context, redis target.Redis, pod *corev1.Pod, warn func(string, ...any),
) {
	controller := metav1.GetControllerOf(pod)
	if controller == nil || controller.Kind != "StatefulSet" {
		return
	}
	set := &appsv1.StatefulSet{}
	err := redis.Live.Get(ctx, client.ObjectKey{Namespace: redis.Namespace, Name: controller.Name},
		set)
	if err != nil {
		return
	}
	for _, mark := range gitOps {
		if set.Labels[mark.key] != "" || set.Annotations[mark.key] != "" {
			warn(
				"StatefulSet %s is applied by %s puts its template back while the fault acts (%s): pause that meanwhile",
				set.Name, mark.tool, mark.key)
			return
		}
	}
}

// warnOfOwner names the custom resource to which the workload belongs.
func warnOfOwner(
	ctx context.Context, redis target.Redis, pod *corev1.Pod, warn func(string, ...any),
) {
	above, err := owner.Of(ctx, redis.Live, pod)
	if err != nil || above == nil {
		return
	}
	if paused := above.Paused(); paused != "" {
		warn(
			"pod %s belongs to %s, whose operator is paused by %s: if it goes on before the fault is "+
				"reverted, it may revert it", pod.Name, above, paused)
		return
	}
	warn("pod %s belongs to %s: its operator may revert the fault", pod.Name, above)
}
