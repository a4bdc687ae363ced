// Package process is the faults of a server process: ProcessCrash, Hang, ClientPause, ClientKill
// and BackgroundSave. They need Redis alone.
package process

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// Kinds are the faults of server processes.
var Kinds = contract.Kinds{
	v1alpha1.FaultProcessCrash:   newProcessCrash,
	v1alpha1.FaultHang:           newHang,
	v1alpha1.FaultClientPause:    newClientPause,
	v1alpha1.FaultClientKill:     newClientKill,
	v1alpha1.FaultBackgroundSave: newBackgroundSave,
}

// processCrash ends the server process by a Redis command: a signal to PID 1 from inside its own
// container is ignored by the kernel.
// There is nothing to revert: the kubelet restarts the container.
type processCrash struct {
	contract.Deps
	contract.Instant
	method v1alpha1.CrashMethod
}

func newProcessCrash(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.ProcessCrash, v1alpha1.ProcessCrash{})
	return processCrash{Deps: deps, method: cmp.Or(given.Method, v1alpha1.CrashShutdown)}
}

func (processCrash) Traits() contract.Traits {
	return contract.Traits{EndsServer: true, Abrupt: true, Silences: true}
}

func (c processCrash) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := c.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && pod.Spec.RestartPolicy != "" {
		return problem.Invalid("pod %s has restartPolicy %s: its server would stay down", target.Pod,
			pod.Spec.RestartPolicy)
	}
	if target.RunID == "" {
		return &problem.Problem{
			Reason: v1alpha1.ReasonInjectionFailed,
			Message: fmt.Sprintf(
				"Redis at %s did not answer INFO, so a restart that the fault causes could not be distinguished from an earlier one",
				target.Address),
		}
	}
	return nil
}

func (c processCrash) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	if begun, err := c.Begun(ctx, target); begun || err != nil {
		return contract.Progress{}, err
	}
	if c.method == v1alpha1.CrashSegfault {
		return contract.Progress{}, c.Servers.Segfault(ctx, target.Address, c.Login)
	}
	return contract.Progress{}, c.Servers.Shutdown(ctx, target.Address, c.Login)
}

func (c processCrash) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := c.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	case string(pod.UID) != target.UID, c.RestartCount(pod, target.Container) > target.RestartCount:
		return true, nil
	}
	server, err := c.Servers.Ask(ctx, target.Address, c.Login)
	return err == nil && server.RunID != target.RunID, err
}

func (c processCrash) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	pod, err := c.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != target.UID:
		return contract.Inconclusive(
			"pod %s (%s) no longer exists: something replaced it", target.Pod, target.UID)
	case err != nil:
		return contract.Unseen(err)
	}
	server, err := c.Servers.Ask(ctx, c.Address(pod), c.Login)
	if err == nil && server.RunID != target.RunID {
		return contract.Confirmed("the server has run_id %s instead of %s",
			server.RunID, target.RunID)
	}
	if n := c.RestartCount(pod, target.Container); n > target.RestartCount {
		return contract.Confirmed("container %s restarted: %d restarts instead of %d",
			target.Container, n, target.RestartCount)
	}
	if err != nil {
		return contract.Unseen(err)
	}
	return contract.NotObserved("the server still has run_id %s", server.RunID)
}
