// Package contract is the interface between the controller of faults and the kinds of faults. A
// kind breaks one target and reverts that; the loop over targets, the records in the status and the
// retries belong to the controller.
package contract

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// Injector is one kind of fault. The controller writes the target's record, with everything that a
// method needs, before it calls Inject, and may restart between any two calls: every method is
// idempotent and determines by itself what has already happened.
// A record that cannot be read is an error of every method that needs it: such a fault breaks
// nothing, and is not reverted by guessing.
type Injector interface {
	// Traits returns the properties of the fault that the controller depends on.
	Traits() Traits
	// Preflight returns why the fault would not work on this target, before anything is written or
	// broken. It changes nothing but the target's record, into which it puts all that Revert needs. A
	// *problem.Problem names the field and the reason.
	Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error
	// Describe says what Inject does to the target, by the record that Preflight made, and how that is
	// reverted. It queries and changes nothing.
	Describe(target *v1alpha1.FaultTarget) Description
	// Begun reports whether the target is broken already, by an operator process that ended before it
	// could store that. It changes nothing.
	Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error)
	// Inject breaks the target. On a target that it already broke, or that does not exist any more, it
	// does nothing and is complete.
	// Until its progress is complete it is called again.
	Inject(ctx context.Context, target *v1alpha1.FaultTarget) (Progress, error)
	// Revert reverts Inject. On a target that was never broken, or that does not exist any more, it
	// does nothing and is complete.
	// Until its progress is complete it is called again.
	Revert(ctx context.Context, target *v1alpha1.FaultTarget) (Progress, error)
	// Effect returns whether Redis and the cluster show the fault, with the evidence. It changes
	// nothing. The controller calls it while a fault that lasts is active; for others, until the
	// effect is confirmed and once more at the end.
	Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string)
	// ManualRevertCommand is the command with which a person reverts the fault on a target; it is
	// shown when Revert was abandoned.
	ManualRevertCommand(target *v1alpha1.FaultTarget) string
}

// Traits are the properties of a fault that the controller depends on.
type Traits struct {
	// how long it stays before it is reverted, counted from when it is complete on all targets; 0 =
	// nothing stays
	Lasts time.Duration
	// how long an injection of several steps may take; 0 = the controller's own limit
	Takes time.Duration
	// how long one step of its revert may take, such as a pod until it is ready; 0 = no longer than a
	// revert may fail
	Step time.Duration
	Node string // only servers on this node can be hit; "" = on any
	// the server process ends: its pod or its container is another one afterwards
	EndsServer bool
	Abrupt     bool // it ends without saving its data
	NewPod     bool // the pod is replaced: the server has another address afterwards
	// the server does not serve during the fault: the guard counts such targets
	Silences bool
	// it silences all containers of the pod, a sentinel beside the server, too
	WholePod bool
	// reverting it on one target has nothing to do with the others: all are reverted at once
	Separate  bool
	RollsPods bool // injecting or reverting it replaces pods by design
	// it changes the workload as a whole: its size, its template, or the roles in it
	Whole  bool
	Taints bool // it taints the nodes of its targets
	// what Effect sees of it is exact, and it does not come back by itself: once seen not to be there,
	// it is lost
	Exact    bool
	External bool // something else breaks Redis: nothing is injected, and it has no targets
}

// Stays reports whether the effect of a fault stays until it is reverted.
func (t Traits) Stays() bool {
	return t.Lasts > 0 || t.RollsPods
}

// Sighting is an observed event; it is added to the timeline once.
type Sighting struct {
	At                     time.Time
	Coarse                 bool // At is Kubernetes' timestamp of a whole second, cut off
	Event, Object, Message string
}

// Follower is an injector that observes more of a fault than the pods show.
type Follower interface {
	// Follow returns all sightings so far; those that were returned before may be returned again. It
	// changes nothing.
	Follow(ctx context.Context, target *v1alpha1.FaultTarget) []Sighting
}

// Keeper is an injector whose fault would end by itself before its time.
type Keeper interface {
	// Due returns the pods that have taken the places of the targets. The controller calls it some
	// times a second while the fault is active. It changes nothing.
	Due(ctx context.Context, targets []v1alpha1.FaultTarget) ([]corev1.Pod, error)
	// Keep ends one of them.
	Keep(ctx context.Context, replacement *corev1.Pod) error
}

// Leaver is an injector whose revert takes many steps. Where they are abandoned, the cluster can
// make the rest by itself, or lives on with what stays.
type Leaver interface {
	// Leave takes back at once what keeps the cluster's own controllers from doing the rest, and the
	// servers that stay from their work. It may be called again, and after any step of Revert.
	Leave(ctx context.Context, target *v1alpha1.FaultTarget) error
}

// Holder is an injector whose effect shows by chance, or only under load. Once it was confirmed of
// a setting, Held says whether the setting is still there.
type Holder interface {
	// Held returns whether what Inject has made is in place, with the evidence. It changes nothing.
	Held(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string)
}

// Warner is an injector whose revert may leave something: as somebody else has changed it
// meanwhile, or as nothing shows whether it is there.
type Warner interface {
	// Warnings returns what the record of a target says of that. It queries nothing.
	Warnings(target *v1alpha1.FaultTarget) []string
}

// Kinds holds for each type of fault the constructor of its injector.
type Kinds map[v1alpha1.FaultType]func(spec *v1alpha1.RedisFaultSpec, deps Deps) Injector

// For returns the injector of a fault's type, or a Problem where the type is not among the kinds.
func (k Kinds) For(spec *v1alpha1.RedisFaultSpec, deps Deps) (Injector, error) {
	make, known := k[spec.Action.Type]
	if !known {
		return nil, problem.Invalid("spec.action.type: this operator does not support the fault %q",
			spec.Action.Type)
	}
	return make(spec, deps), nil
}

// Deps are the dependencies of a kind.
type Deps struct {
	target.Redis                       // the target
	Cluster      client.Client         // writes, and reads that may be some milliseconds old
	Owner        metav1.OwnerReference // the RedisFault: what an injector creates belongs to it
	LoadTest     string                // name of the test that measures it
	DryRun       bool                  // nothing will be injected: the load need not run
}

// Instant is embedded by faults that leave nothing to revert.
type Instant struct{}

// Revert has nothing to do.
func (Instant) Revert(context.Context, *v1alpha1.FaultTarget) (Progress, error) {
	return Progress{}, nil
}

// ManualRevertCommand is none.
func (Instant) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	return ""
}
