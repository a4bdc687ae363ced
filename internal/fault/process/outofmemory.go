package process

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target/podstate"
)

// outOfMemory fills the server's memory until the kernel ends it at the limit of its container: by
// requests whose argument is never complete, so that the server executes none of them and its data
// stay as they are. There is nothing to revert once it has ended: the kubelet restarts the
// container. Before that it drops what it holds when the connections are closed.
type outOfMemory struct {
	contract.Deps
	allow  []v1alpha1.Allowance
	within time.Duration
}

func newOutOfMemory(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.OutOfMemory, v1alpha1.OutOfMemory{})
	return outOfMemory{
		Deps:   deps,
		allow:  spec.Allow,
		within: cmp.Or(given.Timeout.Duration, time.Minute),
	}
}

// memoryRecord is the record of a server whose memory is filled, in bytes.
type memoryRecord struct {
	Limit    int64 `json:"limit"`    // of its container
	Used     int64 `json:"used"`     // by the server, before
	Argument int64 `json:"argument"` // of each request
}

func (o outOfMemory) Traits() contract.Traits {
	return contract.Traits{
		Takes:      o.within,
		EndsServer: true,
		Abrupt:     true,
		Silences:   true,
	}
}

// The argument of a request: as many that some hundred fill the container, and as Redis' own limits
// permit, by default proto-max-bulk-len 512mb and client-query-buffer-limit 1gb.
const (
	usualArgument   = 64 << 20
	longestArgument = 512 << 20
	usualRequests   = 200
	leastArgument   = 512 << 10
)

// mostConnections is how many connections may be needed: maxclients is 10,000 by default, and the
// load has some of them.
const mostConnections = 1000

func (o outOfMemory) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := o.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if err := restarts(pod, target); err != nil {
		return err
	}
	limit := podstate.MemoryLimit(pod, target.Container)
	if limit == nil {
		return problem.Unsupported(
			"container %s of pod %s has no memory limit: the node would run out of memory, and the kernel "+
				"would end whatever it chooses. Set resources.limits.memory", target.Container, target.Pod)
	}
	info, err := o.Info(ctx, target.Address, "memory")
	if err != nil {
		return o.Refusal(err, target.Address, "INFO")
	}
	if err := o.mayEvict(ctx, info, target); err != nil {
		return err
	}
	record := memoryRecord{Limit: limit.Value(), Used: info.Int("used_memory")}
	if record.Argument, err = o.argument(ctx, target, record.most()); err != nil {
		return err
	}
	if n := record.most() / record.Argument; n > mostConnections {
		return problem.Unsupported(
			"the server at %s takes arguments of %s at most, so that %d connections would be needed to fill "+
				"%s: raise proto-max-bulk-len or client-query-buffer-limit", target.Address, inMiB(record.Argument), n,
			limit)
	}
	return contract.Save(target, record)
}

// mayEvict refuses a server that would evict data before its container is full, unless that is
// allowed: it counts what clients send as used memory. A replica evicts nothing by itself, unless it
// is told to.
func (o outOfMemory) mayEvict(
	ctx context.Context, info redis.Info, target *v1alpha1.FaultTarget,
) error {
	policy := info["maxmemory_policy"]
	if info.Int("maxmemory") == 0 || policy == "noeviction" || slices.Contains(o.allow, v1alpha1.AllowEviction) {
		return nil
	}
	const ignores = "replica-ignore-maxmemory"
	if target.Role == v1alpha1.RoleReplica {
		found, err := o.Settings(ctx, target.Address, ignores)
		if err != nil && !redis.IsReply(err) {
			return err
		}
		if found[ignores] == "yes" {
			return nil
		}
	}
	return problem.TooWide(
		"the server at %s has maxmemory %s and policy %s: it would evict data before the kernel ends it, "+
			"which cannot be restored; spec.allow: [%s] lifts this guard", target.Address,
		inMiB(info.Int("maxmemory")), policy, v1alpha1.AllowEviction)
}

// argument is how long an argument the server takes. What it does not say is the default.
func (o outOfMemory) argument(
	ctx context.Context, target *v1alpha1.FaultTarget, most int64,
) (int64, error) {
	length := min(max(most/usualRequests, usualArgument), longestArgument)
	for name, share := range map[string]int64{"proto-max-bulk-len": 1, "client-query-buffer-limit": 2} {
		found, err := o.Settings(ctx, target.Address, name)
		if redis.IsReply(err) { // it may not be asked
			continue
		} else if err != nil {
			return 0, err
		}
		if n, err := strconv.ParseInt(found[name], 10, 64); err == nil {
			length = min(length, n/share)
		}
	}
	found, err := o.Settings(ctx, target.Address, "maxmemory-clients")
	if err != nil && !redis.IsReply(err) {
		return 0, err
	}
	if limit := found["maxmemory-clients"]; limit != "" && limit != "0" {
		return 0, problem.Unsupported(
			"the server at %s has maxmemory-clients %s: it closes connections that would fill its memory",
			target.Address, limit)
	}
	return max(length, leastArgument), nil
}

// most is how many bytes are sent at most. The kernel reclaims what the container has cached of
// files before it ends anything.
func (r memoryRecord) most() int64 {
	return r.Limit + r.Limit/4 + usualArgument
}

// fillFor is how long one call fills the memory.
const fillFor = 2 * time.Second

func (o outOfMemory) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, _, err := contract.Load[memoryRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	if begun, err := o.Begun(ctx, target); begun || err != nil {
		if begun {
			o.Servers.HangUp(o.key(target))
		}
		return contract.Progress{}, err
	}
	within, cancel := context.WithTimeout(ctx, fillFor)
	defer cancel()
	sent, err := o.Servers.Flood(within, o.key(target), target.Address, o.Login, record.Argument, record.most())
	switch {
	case err != nil:
		return o.ended(ctx, target, sent, err)
	case sent >= record.most():
		o.Servers.HangUp(o.key(target))
		return contract.Progress{}, fmt.Errorf(
			"the kernel has not ended the server at %s, which holds %s more than before, at the limit of %s",
			target.Address, inMiB(sent), inMiB(record.Limit))
	}
	return contract.Underway("%s of the %s of pod %s are filled", inMiB(sent+record.Used), inMiB(record.Limit),
		target.Pod), nil
}

// ended is the progress of a fault whose connection broke: the server has ended, or it has closed
// the connection, and drops the rest as well.
func (o outOfMemory) ended(
	ctx context.Context, target *v1alpha1.FaultTarget, sent int64, broke error,
) (contract.Progress, error) {
	o.Servers.HangUp(o.key(target))
	if !redis.IsBroken(broke) {
		return contract.Progress{}, broke
	}
	server, err := o.Servers.Ask(ctx, target.Address, o.Login)
	if err == nil && server.RunID == target.RunID {
		return contract.Progress{}, fmt.Errorf(
			"the server at %s has closed a connection after %s, and goes on: %w", target.Address, inMiB(sent), broke)
	}
	return contract.Progress{}, nil
}

// key names what this fault has sent to a target.
func (o outOfMemory) key(target *v1alpha1.FaultTarget) string {
	return fmt.Sprintf("memory/%s/%s", o.Owner.UID, target.UID)
}

// Begun is true once the server has ended.
func (o outOfMemory) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	return anew(ctx, o.Deps, target)
}

// Revert has the server drop what it still holds.
func (o outOfMemory) Revert(
	_ context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	o.Servers.HangUp(o.key(target))
	return contract.Progress{}, nil
}

// ManualRevertCommand is none: the connections end with the process that made them.
func (outOfMemory) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	return ""
}

// Effect is confirmed once the kubelet reports that the kernel has ended the container.
func (o outOfMemory) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[memoryRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	pod, err := o.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != target.UID:
		return contract.Inconclusive(
			"pod %s (%s) no longer exists: something replaced it", target.Pod, target.UID)
	case err != nil:
		return contract.Unseen(err)
	}
	n, last := lastEnd(pod, target.Container)
	switch {
	case n <= target.RestartCount:
		server, err := o.Servers.Ask(ctx, target.Address, o.Login)
		if err == nil && server.RunID == target.RunID {
			return contract.NotObserved("the server still has run_id %s", server.RunID)
		}
		return contract.Inconclusive("the kubelet has not said how container %s ended", target.Container)
	case last.Reason != podstate.OOMKilled:
		return contract.NotObserved("container %s ended with %s, exit code %d, not by the kernel",
			target.Container, last.Reason, last.ExitCode)
	}
	return contract.Confirmed("the kernel ended container %s at its limit of %s (%s, exit code %d): it has ended %d times instead of %d",
		target.Container, inMiB(record.Limit), last.Reason, last.ExitCode, n, target.RestartCount)
}

// lastEnd is how often a container has ended, and how the last time; never nil where it has.
func lastEnd(pod *corev1.Pod, container string) (times int32, last *corev1.ContainerStateTerminated) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if last = podstate.LastEnd(s); s.Name == container && last != nil {
			return podstate.TimesEnded(s), last
		}
	}
	return 0, nil
}
