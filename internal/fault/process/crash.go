// Package process is the faults of a server process: ProcessCrash, OutOfMemory, Hang, ClientPause,
// ClientKill and BackgroundSave. They need Redis alone.
package process

import (
	"cmp"
	"context"
	"fmt"
	"time"

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
	v1alpha1.FaultOutOfMemory:    newOutOfMemory,
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
	return contract.Traits{
		EndsServer: true,
		Abrupt:     true,
		Silences:   true,
		Together:   true,
	}
}

func (c processCrash) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := c.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	return restarts(pod, target)
}

// restarts refuses a server that would stay down, and one whose restart could not be told from an
// earlier one.
func restarts(pod *corev1.Pod, target *v1alpha1.FaultTarget) error {
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
	return anew(ctx, c.Deps, target)
}

// anew reports whether the server process of a target has ended, or its pod is another one.
func anew(ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := deps.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	case string(pod.UID) != target.UID, deps.RestartCount(pod, target.Container) > target.RestartCount:
		return true, nil
	}
	server, err := deps.Servers.Ask(ctx, target.Address, deps.Login)
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
	n := c.RestartCount(pod, target.Container)
	if n > target.RestartCount {
		return contract.Confirmed("container %s restarted: %d restarts instead of %d",
			target.Container, n, target.RestartCount)
	}
	if err != nil {
		return contract.Unseen(err)
	}
	return contract.NotObserved("the server still has run_id %s", server.RunID)
}

func (c processCrash) Describe(target *v1alpha1.FaultTarget) contract.Description {
	command := "SHUTDOWN NOSAVE"
	if c.method == v1alpha1.CrashSegfault {
		command = "DEBUG SEGFAULT"
	}
	return contract.Description{
		Action: fmt.Sprintf("%s at %s, whose server has run_id %s", command, target.Pod,
			target.RunID),
		SelfEnding: fmt.Sprintf("the kubelet restarts container %s", target.Container),
	}
}

func (o outOfMemory) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record memoryRecord) contract.Description {
		return contract.Description{
			Action: fmt.Sprintf(
				"fill the memory of %s by requests that are never complete, from %s to its limit of %s, until the "+
					"kernel ends container %s, at most for %s", target.Pod, inMiB(record.Used), inMiB(record.Limit), target.Container, o.within),
			Revert: "close the connections, if the server has not ended by then",
			SelfEnding: fmt.Sprintf(
				"the kubelet restarts container %s; without the operator's connections the server drops what they hold",
				target.Container),
		}
	})
}

func (h hang) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record hangRecord) contract.Description {
		d := contract.Description{
			Action:     fmt.Sprintf("DEBUG SLEEP %.3f at %s", h.lasts.Seconds(), target.Pod),
			Revert:     "wait until the server answers",
			SelfEnding: fmt.Sprintf("the server continues after %s", h.lasts),
		}
		switch record.Method {
		case v1alpha1.HangScript:
			d.Action = fmt.Sprintf("a Lua loop of %s by %s at %s", h.lasts, record.Command, target.Pod)
			d.Revert = "SCRIPT KILL, if the loop runs for longer than busy-reply-threshold"
		case v1alpha1.HangClientPause:
			return queuedPauses(target, h.lasts)
		}
		return d
	})
}

func (p clientPause) Describe(target *v1alpha1.FaultTarget) contract.Description {
	limit := p.lasts + afterwards
	if p.mode == v1alpha1.PauseAll {
		return queuedPauses(target, limit)
	}
	return contract.DescribeRecord(target, func(pauseRecord) contract.Description {
		return contract.Description{
			Action:     fmt.Sprintf("CLIENT PAUSE %d WRITE at %s", limit.Milliseconds(), target.Pod),
			Revert:     "CLIENT UNPAUSE",
			SelfEnding: fmt.Sprintf("the pause ends after %s", limit),
		}
	})
}

// queuedPauses describes a pause of all commands.
func queuedPauses(target *v1alpha1.FaultTarget, lasts time.Duration) contract.Description {
	return contract.Description{
		Action: fmt.Sprintf("CLIENT PAUSE %d, %d times in a queue of one connection, at %s",
			pauseOf(lasts).Milliseconds(), len(pauses(lasts)), target.Pod),
		Revert: "close the connection, which drops the pauses that have not begun",
		SelfEnding: fmt.Sprintf(
			"without the operator's connection the server drops the queue, and is paused for %s more at most",
			pauseOf(lasts)),
	}
}

func (k clientKill) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(killRecord) contract.Description {
		return contract.Description{
			Action:     fmt.Sprintf("CLIENT KILL TYPE %s SKIPME yes at %s", k.clients, target.Pod),
			SelfEnding: "the clients connect again",
		}
	})
}

func (b backgroundSave) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record saveRecord) contract.Description {
		d := contract.Description{
			Action:     b.command() + " at " + target.Pod,
			SelfEnding: "the child process ends when it has written its file",
		}
		if record.Risk != "" {
			d.Action += "; " + record.Risk
		}
		return d
	})
}
