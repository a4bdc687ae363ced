// Package fault breaks Redis and undoes it. An injector knows one kind of fault and one target; the loop over targets,
// the records in the status and the retries belong to the controller.
package fault

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Injector is one kind of fault. The controller writes the target's record, with everything that a method needs, before it calls
// Inject, and may die between any two calls: every method is idempotent and finds out by itself what has already happened.
type Injector interface {
	// Traits says what the controller must know of the fault beside how to do it.
	Traits() Traits
	// Preflight says why the fault would not work on this target, before anything is written or broken. It changes nothing but the
	// record, into whose Undo it puts all that Revert needs. A *lifecycle.Problem says what is wrong, by the name of the field.
	Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error
	// Begun says whether the target is broken already, by an operator process that died before it could say so. It changes nothing.
	Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error)
	// Inject breaks the target. On a target that it already broke, or that is gone, it does nothing and returns nil.
	// It returns *Preparing where it has broken nothing yet, *InProgress where it has begun; it is then called again.
	Inject(ctx context.Context, target *v1alpha1.FaultTarget) error
	// Revert undoes Inject. On a target that was never broken, or that is gone, it does nothing and returns nil.
	// It returns *InProgress where it has begun and wants to be called again.
	Revert(ctx context.Context, target *v1alpha1.FaultTarget) error
	// Effect says what Redis and the cluster show of the fault, and what proves it. It changes nothing. The controller asks a fault that
	// lasts while it is active, and the others until the effect is confirmed and once more at the end.
	Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string)
	// ManualRevertCommand is the command with which a person undoes the fault on a target; it is told when Revert has been given up.
	ManualRevertCommand(target *v1alpha1.FaultTarget) string
}

// Traits is what the controller must know of a fault beside how to do it.
type Traits struct {
	Lasts      time.Duration // how long it stays before it is undone, counted from when it is complete on all targets; 0 = nothing stays
	Takes      time.Duration // how long an injection of several steps may take; 0 = the controller's own limit
	EndsServer bool          // the server process ends: its pod or its container is another one afterwards
	Silences   bool          // the server does not serve meanwhile: the guard counts such targets
	WholePod   bool          // it silences all containers of the pod, a sentinel beside the server, too
	Separate   bool          // undoing it on one target has nothing to do with the others: all are undone at once
	RollsPods  bool          // injecting or undoing it replaces pods by design
}

// InProgress is the error of an Inject or a Revert that has begun and is to be called again.
type InProgress struct{ Message string }

func (p *InProgress) Error() string { return p.Message }

// Preparing is the error of an Inject that has broken nothing yet and is to be called again: the instant of the injection is still to come.
type Preparing struct{ Message string }

func (p *Preparing) Error() string { return p.Message }

// Sighting is something that an injector saw happen; it goes into the timeline once.
type Sighting struct {
	At                     time.Time
	Coarse                 bool // At is Kubernetes' timestamp of a whole second, cut off
	Event, Object, Message string
}

// Follower is an injector that sees more of a fault's course than the pods show.
type Follower interface {
	// Follow returns all that is known so far; what was returned before may be returned again. It changes nothing.
	Follow(ctx context.Context, target *v1alpha1.FaultTarget) []Sighting
}

// Keeper is an injector whose fault would end by itself before its time.
type Keeper interface {
	// Keep renews the fault on a target. The controller calls it some times a second while the fault is active; it does nothing where
	// nothing is due.
	Keep(ctx context.Context, target *v1alpha1.FaultTarget) error
}

// Surroundings is what injectors act on.
type Surroundings struct {
	Namespace string
	Owner     metav1.OwnerReference // the RedisFault: what an injector creates belongs to it
	Cluster   client.Client         // writes, and reads that may be some milliseconds old
	Live      client.Reader         // reads past every cache
	Servers   topology.Servers
	Login     redis.Login
	Target    *v1alpha1.RedisTarget // what is broken; nil where it is not known
	LoadTest  string                // name of the test that measures it

	Sentinels     []string // host:port of the target's sentinels; empty without
	SentinelLogin redis.Login
	MasterName    string // under which they watch the primary; "" = the only one that they watch
}

// kinds holds for each type of fault what makes its injector.
var kinds = map[v1alpha1.FaultType]func(spec *v1alpha1.RedisFaultSpec, around Surroundings) Injector{
	v1alpha1.FaultPodKill:           newPodKill,
	v1alpha1.FaultProcessCrash:      newProcessCrash,
	v1alpha1.FaultFailover:          newFailover,
	v1alpha1.FaultVolumeAttachDelay: newVolumeAttachDelay,
	v1alpha1.FaultNodeLoss:          newNodeLoss,
	v1alpha1.FaultConfig:            newConfig,
	v1alpha1.FaultReplicaScale:      newReplicaScale,
	v1alpha1.FaultResources:         newResources,
	v1alpha1.FaultIOThreads:         newIOThreads,
	v1alpha1.FaultHang:              newHang,
	v1alpha1.FaultClientPause:       newClientPause,
	v1alpha1.FaultClientKill:        newClientKill,
	v1alpha1.FaultBackgroundSave:    newBackgroundSave,
}

// For returns the injector of a fault's type.
func For(spec *v1alpha1.RedisFaultSpec, around Surroundings) (Injector, error) {
	if spec.Engine == v1alpha1.EngineChaosMesh {
		return newChaosMesh(spec, around)
	}
	make, known := kinds[spec.Action.Type]
	if !known {
		return nil, &lifecycle.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf("spec.action.type: this operator knows no fault %q", spec.Action.Type), Lasting: true}
	}
	return make(spec, around), nil
}

// defaultDuration is how long a lasting fault stays where spec.duration says nothing.
const defaultDuration = 30 * time.Second

func durationOf(spec *v1alpha1.RedisFaultSpec) time.Duration {
	if spec.Duration == nil {
		return defaultDuration
	}
	return spec.Duration.Duration
}

// instant is embedded by faults that leave nothing to undo.
type instant struct{}

func (instant) Revert(context.Context, *v1alpha1.FaultTarget) error { return nil }

func (instant) ManualRevertCommand(*v1alpha1.FaultTarget) string { return "" }

// undoValue is what was recorded under a name for the way back.
func undoValue(target *v1alpha1.FaultTarget, name string) (string, bool) {
	for _, u := range target.Undo {
		if u.Name == name {
			return u.Value, true
		}
	}
	return "", false
}

// setUndo records a value for the way back, in place of what stood under its name.
func setUndo(target *v1alpha1.FaultTarget, name, value string) {
	for i := range target.Undo {
		if target.Undo[i].Name == name {
			target.Undo[i].Value = value
			return
		}
	}
	target.Undo = append(target.Undo, v1alpha1.UndoValue{Name: name, Value: value})
}

// unsupported is the problem of a fault that the server or the cluster cannot do; trying again does not help.
func unsupported(format string, words ...any) error {
	return &lifecycle.Problem{Reason: v1alpha1.ReasonNotSupported, Message: fmt.Sprintf(format, words...), Lasting: true}
}

// invalid is the problem of a spec that cannot work.
func invalid(format string, words ...any) error {
	return &lifecycle.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(format, words...), Lasting: true}
}
