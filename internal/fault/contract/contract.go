// Package contract is the interface between the controller of faults and the kinds of faults. A
// kind breaks one target and reverts that; the loop over targets, the records in the status and the
// retries belong to the controller.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/powerhook"
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

// Place is where a fault acts, beside its targets.
type Place struct {
	Node string // only servers on this node can be hit; "" = on any
	// only servers on nodes of this zone can be hit, and all its nodes are tainted; "" = in any
	Zone string
	// the Deployment that it scales; its namespace is empty where that is the fault's
	Deployment types.NamespacedName
}

// Traits are the properties of a fault that the controller depends on.
type Traits struct {
	Place
	// how long it stays before it is reverted, counted from when it is complete on all targets; 0 =
	// nothing stays
	Lasts time.Duration
	// how long an injection of several steps may take; 0 = the controller's own limit
	Takes time.Duration
	// how long one step of its revert may take, such as a pod until it is ready; 0 = no longer than a
	// revert may fail
	Step time.Duration
	// the server process ends: its pod or its container is another one afterwards
	EndsServer bool
	Abrupt     bool // it ends without saving its data
	Empties    bool // its data is deleted with it, whatever its configuration
	NewPod     bool // the pod is replaced: the server has another address afterwards
	// the server does not serve during the fault: the guard counts such targets
	Silences bool
	// it silences all containers of the pod, a sentinel beside the server, too
	WholePod bool
	// reverting it on one target has nothing to do with the others: all are reverted at once
	Separate bool
	// one call injects it on a target, without preparations, and has nothing to do with the others:
	// all are broken at once where spec.allow has AllCopies
	Together bool
	// a target that may not be hit now is waited for, while the others are hit: what keeps it from that
	// passes
	Waits     bool
	RollsPods bool // injecting or reverting it replaces pods by design
	// it changes the workload as a whole: its size, its template, or the roles in it
	Whole  bool
	Taints bool // it taints the nodes of its targets, or switches them off
	// it touches neither the servers nor their workloads, but something beside them: other faults on
	// them act meanwhile, and it does not matter to it whether a target's pod is still there
	Apart bool
	// what Effect sees of it is exact, and it does not come back by itself: once seen not to be there,
	// it is lost
	Exact bool
	// it ends by itself unless it is renewed so often; 0 = it need not be
	Renews   time.Duration
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

// Preparer is an injector that needs something to be there before it can break a target.
type Preparer interface {
	// Prepare makes that, and breaks nothing. It is complete on all targets before Inject is called for
	// the first of them, and may be called again.
	Prepare(ctx context.Context, target *v1alpha1.FaultTarget) (Progress, error)
}

// Renewer is an injector whose fault ends by itself, some seconds after it was last renewed: what it
// breaks is reverted in time whatever becomes of the operator.
type Renewer interface {
	// Renew has a target that is broken stay so. It is called as often as Traits.Renews says, at the
	// same time for several targets, by a process that leads, until the revert begins. A fault that
	// has ended stays so: a call that comes too late does nothing.
	Renew(ctx context.Context, target *v1alpha1.FaultTarget) error
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

// Adviser is an injector that can tell beforehand what a fault on several targets means for all of
// them.
type Adviser interface {
	// Advise returns what the user should know, in sentences; also what could not be found out. It
	// changes nothing.
	Advise(ctx context.Context, targets []v1alpha1.FaultTarget) []string
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
	make, ok := k[spec.Action.Type]
	if !ok {
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
	Operator                           // what the operator itself has
}

// Operator is what the operator itself has, by which some faults act.
type Operator struct {
	Programs Programs             // in the containers of faults in pods; nil where no fault needs them
	Image    string               // of these containers: the operator's own
	OwnPod   types.NamespacedName // without a name it is unknown
	Power    PowerHook            // nil = the administrator has configured none
}

// PowerHook switches the power of nodes.
type PowerHook interface {
	// Switch asks for a power. It may be asked again, and then does nothing more.
	Switch(ctx context.Context, asked powerhook.Request) error
}

// Programs runs programs in containers of pods.
type Programs interface {
	// Run runs a program until it ends, at most until ctx does, and returns its output. Where the
	// program fails, the error has what it wrote to its error output.
	Run(ctx context.Context, pod types.NamespacedName, container string, command ...string) (
		output []byte, err error)
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

// Description is a fault on one target, in sentences with actual values.
type Description struct {
	Action     string // what is done
	Revert     string // how that is reverted; "" = there is nothing to revert
	SelfEnding string // what ends without the operator; "" = nothing does
}

// DescribeRecord describes a fault from the record of a target. Without a record that can be read,
// nothing is done.
func DescribeRecord[T any](
	target *v1alpha1.FaultTarget, describe func(record T) Description,
) Description {
	record, recorded, err := Load[T](target)
	switch {
	case err != nil:
		return Description{Action: fmt.Sprintf("nothing: %v", err)}
	case !recorded:
		return Description{Action: fmt.Sprintf("nothing: pod %s has no record", target.Pod)}
	}
	return describe(record)
}

// Events of the timeline that servers and sentinels show during a recovery.
const (
	// a sentinel (+sdown) or a node of the cluster (PFAIL) misses a primary
	EventSubjectivelyDown = "SubjectivelyDown"
	EventObjectivelyDown  = "ObjectivelyDown" // enough of them do (+odown, FAIL)
	EventElected          = "Elected"         // a sentinel was elected to lead the failover
	EventPromoted         = "Promoted"        // a server is the primary that was not before
	// the sentinels direct clients to another primary (+switch-master)
	EventSwitched = "Switched"
	// a new server process answers, and refuses commands until it has its data (LOADING)
	EventLoading          = "Loading"
	EventDatasetLoaded    = "DatasetLoaded"    // a new server process answers and has its data
	EventClusterDown      = "ClusterDown"      // the nodes refuse commands: cluster_state fail
	EventSlotsCovered     = "SlotsCovered"     // all slots are served again
	EventReplicasResynced = "ReplicasResynced" // as many replicas as before follow a primary, in sync
)

// Events of a volume that moves to another node.
const (
	EventMultiAttach = "MultiAttachError" // the attach-detach controller refused it
	EventAttached    = "VolumeAttached"   // it attached it to the replacement's node
)

// Events of a node that loses its power.
const (
	EventNodeNotReady = "NodeNotReady" // the cluster has noticed it
	EventNodeReady    = "NodeReady"    // the node is back
)

// Stage is how far an injection or a revert is.
type Stage int

// The stages. What is complete is not called again.
const (
	StageComplete  Stage = iota
	StagePreparing       // of an injection: nothing is broken yet
	StageUnderway        // begun; it is to be called again
)

// Progress is the result of a call of Inject or Revert that did not fail. The zero value is
// complete.
type Progress struct {
	Stage   Stage
	Message string // what is missing, for people; empty where it is complete
}

// Complete reports whether nothing is left to do.
func (p Progress) Complete() bool {
	return p.Stage == StageComplete
}

// Preparing is the progress of an injection that has broken nothing yet.
func Preparing(format string, words ...any) Progress {
	return Progress{Stage: StagePreparing, Message: fmt.Sprintf(format, words...)}
}

// Underway is the progress of an injection or a revert that has begun.
func Underway(format string, words ...any) Progress {
	return Progress{Stage: StageUnderway, Message: fmt.Sprintf(format, words...)}
}

// RecordVersion is the version of the records that this operator writes, and the only one that it
// reads. It is increased by every change of a record's type that an older operator could misread.
const RecordVersion = 1

// LongestRecord is the size limit of a record in the status, in bytes.
const LongestRecord = 16384

// Load reads the record for the revert of a target into the kind's own type. found is false where
// none was stored.
func Load[R any](target *v1alpha1.FaultTarget) (record R, found bool, err error) {
	stored := target.Revert
	if stored == nil {
		return record, false, nil
	}
	if stored.Version != RecordVersion {
		return record, false, fmt.Errorf(
			"the record of pod %s in status.targets[].revert has version %d, and this operator reads "+
				"version %d: run the version of the operator that injected the fault",
			target.Pod, stored.Version, RecordVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(stored.Data)))
	// a record of another kind, or of another version with the same number
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&record)
	if err == nil && decoder.More() {
		err = errors.New("there is data after its end")
	}
	if err != nil {
		var none R
		return none, false, fmt.Errorf(
			"the record of pod %s in status.targets[].revert cannot be read as %s: %w", target.Pod,
			reflect.TypeFor[R]().Name(), err)
	}
	return record, true, nil
}

// Save puts the record for the revert into the target. The controller stores it. A record that is
// too long is a Problem, and the one before stays.
func Save[R any](target *v1alpha1.FaultTarget, record R) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode the record of pod %s: %w", target.Pod, err)
	}
	if len(data) > LongestRecord {
		return problem.Unsupported(
			"the record for the revert of the fault on pod %s has %d bytes, and at most %d can be stored",
			target.Pod, len(data), LongestRecord)
	}
	target.Revert = &v1alpha1.RevertRecord{Version: RecordVersion, Data: string(data)}
	return nil
}
