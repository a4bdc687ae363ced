//go:build integration

package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// failpoints are before and after each call by which a fault changes something. Calls are counted
// by name: the second CONFIG SET is "CONFIG SET #2".
// Writes of the fault's status are named by their new content; those without any are no step, nor
// is the write of an existing finalizer. Before the targets are recorded nothing is injected: the
// calls of a preflight are one step, however often they are repeated.
type failpoints struct {
	mu       sync.Mutex
	dieAt    string
	pause    bool   // before the first call after the record
	pauseAt  string // before the call of this name; "" = none
	resume   chan struct{}
	times    map[string]int
	recorded bool
}

// Paused is printed when a process pauses.
const Paused = "paused"

const tried = ", tried before the record"

func (f *failpoints) arm(order Orders) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dieAt = order.DieAt
	f.pause = order.Pause
	f.pauseAt = order.PauseAt
	f.times = map[string]int{}
	f.recorded = false
}

// around executes a call between its two failpoints.
func (f *failpoints) around(name string, call func() error) error {
	store := strings.HasPrefix(name, Storing)
	name, n, dieAt, pause := f.next(name, store)
	if pause {
		fmt.Println(Paused)
		<-f.resume
	}
	if n > 1 && (store || strings.HasSuffix(name, "finalizer") || strings.HasSuffix(name, tried)) {
		return call()
	}
	name = numbered(name, n)
	fmt.Println(name)
	if IsAt(dieAt, "before "+name) {
		die()
	}
	err := call()
	if IsAt(dieAt, "after "+name) && !apierrors.IsConflict(err) {
		die()
	}
	if apierrors.IsConflict(err) { // rejected and retried: the retry is the step
		f.mu.Lock()
		f.times[strings.TrimSuffix(name, fmt.Sprintf(" #%d", n))]--
		f.mu.Unlock()
	}
	return err
}

// next counts a call, and returns its name, its number, the point to die at, and whether to pause.
func (f *failpoints) next(name string, store bool) (as string, n int, dieAt string, pause bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case store && name != Storing+waiting:
		f.recorded = true
	case !store && !f.recorded && !strings.HasSuffix(name, "finalizer"):
		name += tried
	}
	f.times[name]++
	n = f.times[name]
	pause = f.pause && f.recorded && !store || f.pauseAt != "" && f.pauseAt == numbered(name, n)
	f.pause = f.pause && !pause
	return name, n, f.dieAt, pause
}

// numbered is the name of the n-th call of a name.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s #%d", name, n)
}

// IsAt reports whether a point is the one to end the process at. Whether a write contains that the
// effect is confirmed may vary.
func IsAt(dieAt, point string) bool {
	return dieAt == point || dieAt != "" &&
		strings.TrimSuffix(point, confirmed) == strings.TrimSuffix(dieAt, confirmed)
}

// die ends this process as the out-of-memory killer or the loss of a node does: without any
// cleanup.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

const (
	// Storing begins the names of the calls that store a step in the record of a fault.
	Storing   = "store: "
	waiting   = "waiting"
	confirmed = ", effect confirmed"
)

// milestone returns the latest step that is recorded in the status of a fault.
func milestone(f *v1alpha1.RedisFault) string {
	status := &f.Status
	text := waiting
	every := func(is func(*v1alpha1.FaultTarget) bool) bool {
		return len(status.Targets) > 0 &&
			!slices.ContainsFunc(status.Targets, func(t v1alpha1.FaultTarget) bool { return !is(&t) })
	}
	switch {
	case status.CompletionTime != nil:
		return Storing + "over"
	case status.RevertedAt != nil:
		text = "reverted"
	case status.RevertingSince != nil:
		text = "reverting"
	case every(func(t *v1alpha1.FaultTarget) bool { return t.ActiveAt != nil }):
		text = "active"
	case status.InjectedAt != nil:
		text = "injecting"
	case status.StartTime != nil:
		text = "recorded"
	}
	if status.Effect == v1alpha1.EffectConfirmed {
		text += confirmed
	}
	return Storing + text
}

// intercept adds the failpoints to the calls of the fault reconciler to the API server.
func (f *failpoints) intercept() interceptor.Funcs {
	named := func(verb string, c client.Client, object client.Object) string {
		kind := fmt.Sprintf("%T", object)
		if gvk, err := apiutil.GVKForObject(object, c.Scheme()); err == nil {
			kind = gvk.Kind
		}
		if fault, is := object.(*v1alpha1.RedisFault); is && verb == "patch" {
			if controllerutil.ContainsFinalizer(fault, v1alpha1.FinalizerFault) {
				return "add finalizer"
			}
			return "remove finalizer"
		}
		return verb + " " + kind
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.CreateOption,
		) error {
			return f.around(named("create", c, object), func() error {
				return c.Create(ctx, object,
					options...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.UpdateOption,
		) error {
			// the result beside the record, if there is one by then: nothing is left to revert
			if _, is := object.(*corev1.ConfigMap); is {
				return c.Update(ctx, object, options...)
			}
			return f.around(named("update", c, object), func() error {
				return c.Update(ctx, object,
					options...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.DeleteOption,
		) error {
			return f.around(named("delete", c, object), func() error {
				return c.Delete(ctx, object,
					options...)
			})
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.DeleteAllOfOption,
		) error {
			return f.around(named("delete all of", c, object), func() error {
				return c.DeleteAllOf(ctx,
					object, options...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption,
		) error {
			return f.around(named("patch", c, object), func() error {
				return c.Patch(ctx, object, patch,
					options...)
			})
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string,
			object, made client.Object,
			options ...client.SubResourceCreateOption,
		) error {
			return f.around(named("create", c, object)+"/"+sub, func() error {
				return c.SubResource(sub).Create(ctx, object,
					made, options...)
			})
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object,
			options ...client.SubResourceUpdateOption,
		) error {
			return f.around(named("update", c, object)+"/"+sub, func() error {
				return c.SubResource(sub).Update(ctx, object,
					options...)
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object,
			patch client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			var asked client.SubResourcePatchOptions
			if asked.ApplyOptions(options); len(asked.DryRun) > 0 { // changes nothing
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			}
			name := named("patch", c, object) + "/" + sub
			if fault, is := object.(*v1alpha1.RedisFault); is {
				name = milestone(fault)
			}
			return f.around(name, func() error {
				return c.SubResource(sub).Patch(ctx, object, patch,
					options...)
			})
		},
	}
}

// failingHook adds the failpoints to each request for power.
type failingHook struct {
	*powerhook.Hook
	*failpoints
}

func (h failingHook) Switch(ctx context.Context, asked powerhook.Request) error {
	return h.around("power "+string(asked.Power), func() error { return h.Hook.Switch(ctx, asked) })
}

// failingServers adds the failpoints to each Redis command that changes something.
type failingServers struct {
	*topology.Real
	*failpoints
}

func (s failingServers) Do(
	ctx context.Context, address string, login redis.Login, command ...any,
) (reply any, err error) {
	name, asks := commandName(command)
	if asks {
		return s.Real.Do(ctx, address, login, command...)
	}
	ends, limited := ctx.Deadline()
	left := time.Until(ends)
	_ = s.around(name, func() error {
		// its time has passed during a pause, in which time stands still for the operator
		if limited && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), left)
			defer cancel()
		}
		reply, err = s.Real.Do(ctx, address, login, command...)
		return nil
	})
	return reply, err
}

func (s failingServers) Shutdown(ctx context.Context, address string, login redis.Login) error {
	return s.around("SHUTDOWN", func() error { return s.Real.Shutdown(ctx, address, login) })
}

func (s failingServers) Segfault(ctx context.Context, address string, login redis.Login) error {
	return s.around("DEBUG SEGFAULT", func() error { return s.Real.Segfault(ctx, address, login) })
}

func (s failingServers) Queue(
	ctx context.Context, key, address string, login redis.Login, commands [][]string,
) error {
	return s.around("queue of "+strings.Join(commands[0][:2], " "), func() error {
		return s.Real.Queue(ctx, key, address,
			login, commands)
	})
}

func (s failingServers) Flood(
	ctx context.Context, key, address string, login redis.Login, argument, most int64,
) (sent int64, err error) {
	return sent, s.around("flood", func() (err error) {
		sent, err = s.Real.Flood(ctx, key, address, login, argument, most)
		return err
	})
}

func (s failingServers) HangUp(key string) {
	if !s.Queued(key) {
		s.Real.HangUp(key)
		return
	}
	_ = s.around("end of the queue", func() error {
		s.Real.HangUp(key)
		return nil
	})
}

// twoWords are the commands with a subcommand.
var twoWords = []string{
	"ACL", "CLIENT", "CLUSTER", "CONFIG", "DEBUG", "LATENCY", "MEMORY", "SCRIPT", "SENTINEL",
	"SLOWLOG",
}

// asking are the commands that change nothing. A command that is missing here adds a failpoint.
var asking = []string{
	"ACL DRYRUN", "ACL WHOAMI", "CLIENT ID", "CLIENT INFO", "CLIENT LIST", "CLUSTER INFO",
	"CLUSTER MYID", "CLUSTER NODES",
	"CLUSTER REPLICAS", "CLUSTER SLOTS",
	"COMMAND", "CONFIG GET", "DBSIZE", "INFO", "LASTSAVE", "LATENCY LATEST", "MEMORY STATS", "PING",
	"ROLE",
	"SENTINEL CKQUORUM",
	"SENTINEL GET-MASTER-ADDR-BY-NAME", "SENTINEL MASTER", "SENTINEL MASTERS", "SENTINEL MYID",
	"SENTINEL REPLICAS",
	"SENTINEL SENTINELS", "SLOWLOG GET", "TIME", "WAIT",
}

func commandName(command []any) (name string, asks bool) {
	name = strings.ToUpper(fmt.Sprint(command[0]))
	if len(command) > 1 && slices.Contains(twoWords, name) {
		name += " " + strings.ToUpper(fmt.Sprint(command[1]))
	}
	last := fmt.Sprint(command[len(command)-1])
	// a hang of no time
	probes := strings.HasPrefix(name, "EVAL") && (command[1] == "return 0" || last == "0") ||
		name == "DEBUG SLEEP" && last == "0.000"
	return name, probes || slices.Contains(asking, name)
}
