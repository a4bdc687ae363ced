//go:build integration

package overlap

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/testing/crashtest"
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/powertest"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/sim"
	"github.com/redquake/redquake/internal/testing/stage"
)

// overlapping is one Redis, and the kinds of faults that act on the same server, workload or node of it.
type overlapping struct {
	name   string
	on     func(*testing.T) *operatortest.Place // as in Kind
	scene  func(*operatortest.Place) stage.Scene
	shard  *int32 // of a cluster
	kinds  []stage.Kind
	meets  []stage.Kind // of each pair, one is among these; nil = any
	across bool         // only one, as two of them meet on another stage
	splits int          // how many stages share the pairs; 0 = 1

	pairsOnly bool // no schedules
}

// The kinds by what they need of a Redis. Those of oneServer find that on every stage.
var (
	oneServer     = stage.KindsThatNeed(stage.NeedsServer, stage.NeedsWorkload, stage.NeedsNodes, stage.NeedsOperator)
	ofFile        = stage.KindsThatNeed(stage.NeedsFile)
	ofSettings    = stage.KindsThatNeed(stage.NeedsLoad)
	ofScaling     = stage.KindsThatNeed(stage.NeedsScaling)
	ofReplication = stage.KindsThatNeed(stage.NeedsReplication)
	ofSentinels   = stage.KindsThatNeed(stage.NeedsSentinels)
	ofCluster     = stage.KindsThatNeed(stage.NeedsCluster)
	ofMesh        = stage.KindsThatNeed(stage.NeedsMesh)
	ofNetwork     = stage.KindsThatNeed(stage.NeedsNetwork)
	ofDisk        = stage.KindsThatNeed(stage.NeedsDisk)
	ofPower       = stage.KindsThatNeed(stage.NeedsPower)
)

// overlaps are the stages of all kinds. Each has all that a kind of fault may need: a StatefulSet, nodes, a volume for
// each pod.
var overlaps = []overlapping{
	{name: "standalone", splits: 12, scene: stage.FleetOf(1, complete), kinds: oneServer},
	{
		name:   "replication",
		splits: 5,
		scene:  followedFleet,
		kinds:  slices.Concat(ofScaling, ofReplication, oneServer),
		meets:  slices.Concat(ofScaling, ofReplication),
	},
	{
		name:   "sentinel",
		splits: 4,
		scene:  watchedFleet,
		kinds:  slices.Concat(ofSentinels, ofScaling, oneServer),
		meets:  ofSentinels,
	},
	{
		name:   "cluster",
		splits: 10,
		scene:  stage.ClusterFleetOf(complete),
		shard:  new(int32(0)),
		kinds:  slices.Concat(ofCluster, oneServer),
		meets:  ofCluster,
	},
	{name: "file", splits: 2, scene: onFile, pairsOnly: true, kinds: slices.Concat(ofFile, oneServer), meets: ofFile},
	{
		name: "network", splits: 4, on: stage.NewNetworkPlace, scene: withKubelet(stage.FleetOf(1, complete)),
		pairsOnly: true,
		kinds:     slices.Concat(ofNetwork, oneServer), meets: ofNetwork,
	},
	{
		name: "network and replication", on: stage.NewNetworkPlace, scene: withKubelet(stage.FleetOf(3, complete)),
		pairsOnly: true,
		kinds:     slices.Concat(ofNetwork, ofScaling, ofReplication), meets: ofNetwork, across: true,
	},
	{
		name: "network and sentinel", on: stage.NewNetworkPlace, scene: withKubelet(watchedFleet), pairsOnly: true,
		kinds: slices.Concat(ofNetwork, ofSentinels), meets: ofNetwork, across: true,
	},
	{
		name: "network and cluster", on: stage.NewNetworkPlace, scene: withKubelet(stage.ClusterFleetOf(complete)),
		shard: new(int32(0)), pairsOnly: true,
		kinds: slices.Concat(ofNetwork, ofCluster), meets: ofNetwork, across: true,
	},
	{
		name: "network and chaosmesh", splits: 2, on: stage.NewNetworkPlace,
		scene:     withMesh(withKubelet(stage.FleetOf(1, complete))),
		pairsOnly: true,
		kinds:     slices.Concat(ofNetwork, ofMesh), meets: ofNetwork, across: true,
	},
	{
		name: "disk", splits: 2, on: stage.NewNetworkPlace, scene: withKubelet(stage.FleetOf(1, stored)), pairsOnly: true,
		kinds: slices.Concat(ofDisk, ofNetwork, oneServer), meets: ofDisk,
	},
	{
		name: "power", splits: 2, scene: stage.FleetOf(1, powered), pairsOnly: true, kinds: slices.Concat(ofPower, oneServer),
		meets: ofPower,
	},
	{
		name: "chaosmesh", splits: 12, on: meshplace.New, scene: withMesh(stage.FleetOf(1, complete)), pairsOnly: true,
		kinds: slices.Concat(ofMesh, oneServer), meets: ofMesh,
	},
	{
		name: "chaosmesh and replication", splits: 2, on: meshplace.New, scene: withMesh(stage.FleetOf(3, complete)),
		pairsOnly: true,
		kinds:     slices.Concat(ofMesh, ofScaling, ofReplication), meets: ofMesh, across: true,
	},
	{
		name: "chaosmesh and sentinel", splits: 2, on: meshplace.New, scene: withMesh(watchedFleet), pairsOnly: true,
		kinds: slices.Concat(ofMesh, ofSentinels), meets: ofMesh, across: true,
	},
	{
		name: "chaosmesh and cluster", splits: 4, on: meshplace.New, scene: withMesh(stage.ClusterFleetOf(complete)),
		shard: new(int32(0)), pairsOnly: true,
		kinds: slices.Concat(ofMesh, ofCluster), meets: ofMesh, across: true,
	},
}

// complete gives a fleet all that a kind of fault may need.
func complete(f *stage.Fleet, set *appsv1.StatefulSet) {
	stage.OnClaims(f, set)
	stage.Operated(f, set)
	f.Options = []string{"--enable-debug-command", "yes"}
}

// stored is complete, and the servers keep their data on their volumes.
func stored(f *stage.Fleet, set *appsv1.StatefulSet) {
	complete(f, set)
	f.Options = append(f.Options, "--appendonly", "yes")
}

// powered is complete, and a hook switches the nodes.
func powered(f *stage.Fleet, set *appsv1.StatefulSet) {
	complete(f, set)
	f.PowerHook = (&powertest.Grid{Client: f.Client}).Serve(f.T)
}

// followedFleet is the scene of a StatefulSet of three servers whose load follows the primary: ClientKill finds its
// connections there after a Failover, too.
func followedFleet(p *operatortest.Place) stage.Scene {
	f := stage.StartFleet(p, 3, complete)
	return stage.Scene{
		Target:  stage.RedisPods(f.Address(0), f.Address(1), f.Address(2)),
		Shows:   f.Shows,
		Primary: f.PrimaryOf,
		AsksAPI: true,
	}
}

// onFile is the scene of one server whose configuration file is rewritten as soon as a fault has changed hz.
func onFile(p *operatortest.Place) stage.Scene {
	sc := stage.FleetOf(1, func(f *stage.Fleet, set *appsv1.StatefulSet) {
		complete(f, set)
		f.File = true
	})(p)
	stage.RewriteOf(p, sc.Target.Addresses[0])
	return sc
}

// watchedFleet is the scene of a StatefulSet of three servers that sentinels watch, patiently.
func watchedFleet(p *operatortest.Place) stage.Scene {
	f := stage.StartFleet(p, 3, complete)
	set := redistest.NewWatchers(p.T, f.IPOf(0), 6379, 2, redistest.SentinelOptions{DownAfter: 10 * time.Second})
	stage.PodAt(p, "sentinel-0", map[string]string{"app": "sentinel"}, set.Sentinels[0].Port)
	target := stage.RedisPods()
	target.Sentinel = &v1alpha1.SentinelTarget{Addresses: set.SentinelAddresses(), MasterName: redistest.MasterName}
	return stage.Scene{Target: target, Shows: f.Shows, Primary: f.PrimaryOf, AsksAPI: true}
}

// withKubelet adds the stand-in for a kubelet that runs programs.
func withKubelet(of func(*operatortest.Place) stage.Scene) func(*operatortest.Place) stage.Scene {
	return func(p *operatortest.Place) stage.Scene {
		sc := of(p)
		stage.StartEphemeral(p)
		return sc
	}
}

// withMesh adds the stand-in for Chaos Mesh.
func withMesh(of func(*operatortest.Place) stage.Scene) func(*operatortest.Place) stage.Scene {
	return func(p *operatortest.Place) stage.Scene {
		sc := of(p)
		meshplace.Start(p)
		return sc
	}
}

// overlapStage is a stage with two loads, of which each fault refers to one: faults must take turns whatever measures
// them.
type overlapStage struct {
	*stage.Stage
	of overlapping

	mu     sync.Mutex
	seen   map[string]*v1alpha1.RedisFault // the latest version of each fault, also of a deleted one
	waited map[string]bool                 // the faults that have waited for another one
}

// loads are the load tests of an overlapStage.
var loads = []string{"run", "other"}

func (o overlapping) raise(t *testing.T) *overlapStage {
	t.Helper()
	s := &overlapStage{
		Stage:  stage.Kind{On: o.on, Scene: o.scene}.Raise(t),
		of:     o,
		seen:   map[string]*v1alpha1.RedisFault{},
		waited: map[string]bool{},
	}
	s.ownPods()
	second := s.LoadTest(loads[0])
	s.Create(&v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: loads[1]}, Spec: second.Spec})
	s.TestHasReason(loads[1], time.Minute, v1alpha1.ReasonRunning)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { sim.Watch(ctx, s.Client, s.Namespace, &v1alpha1.RedisFaultList{}, func() {}, s.note) })
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return s
}

// ownPods gives the pods that nothing controls to a StatefulSet, as those of a real Redis have one.
func (s *overlapStage) ownPods() {
	s.T.Helper()
	var pods corev1.PodList
	s.MustChange(s.Client.List(s.T.Context(), &pods, client.InNamespace(s.Namespace), client.MatchingLabels{
		"app": "redis",
	}))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if metav1.GetControllerOf(pod) != nil {
			continue
		}
		s.MustChange(operatortest.Change(s.Place, pod, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "statefulset", Controller: new(true)},
			}
		}))
	}
}

func (s *overlapStage) note(object client.Object) {
	f := object.(*v1alpha1.RedisFault)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[f.Name] = f
	if operatortest.Reason(f.Status.Conditions) == v1alpha1.ReasonWaitingForFault {
		s.waited[f.Name] = true
	}
}

// last is the latest version of a fault, or one without a status if it has not been seen.
func (s *overlapStage) last(name string) *v1alpha1.RedisFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.seen[name]; f != nil {
		return f
	}
	return &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (s *overlapStage) hasWaited(names ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(names, func(name string) bool { return s.waited[name] })
}

// actedAtOnce reports whether one of two faults, of which a stage has no others, was injected while the other one
// acted: one that does not last acts until it has settled.
func (s *overlapStage) actedAtOnce(names []string) bool {
	if len(names) != 2 {
		return false
	}
	within := func(a, b *v1alpha1.RedisFault) bool {
		over := b.Status.RevertedAt
		if !traitsOf(b).Stays() {
			over = b.Status.CompletionTime
		}
		at := a.Status.InjectedAt
		return at != nil && b.Status.InjectedAt != nil && over != nil && !at.Before(b.Status.InjectedAt) && at.Before(over)
	}
	a, b := s.last(names[0]), s.last(names[1])
	return within(a, b) || within(b, a)
}

// newFault is a fault on the stage; lasts applies to a kind that has a duration.
func (s *overlapStage) newFault(kind stage.Kind, load string, lasts time.Duration) *v1alpha1.RedisFault {
	s.T.Helper()
	s.Faults++
	return operatortest.NewFault(fmt.Sprintf("fault-%d", s.Faults), load, kind.Fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = operatortest.Length(0), *operatortest.Length(time.Second)
		f.Spec.Select.Shard = s.of.shard
		if kind.OnNode != nil { // the spec of the crash test reads the pod, which may be missing now
			pod, node := s.primaryPod()
			// Not the primary, whichever that is when the fault begins: a failover may have moved that role to a server on
			// another node.
			f.Spec.Select.Role, f.Spec.Select.Names = v1alpha1.RoleAny, []string{pod}
			kind.OnNode(&f.Spec.Action, node)
			f.Spec.Duration = operatortest.Length(lasts)
			// if the pod has been moved, which may pass: less than it may take until all is over
			f.Spec.Trigger.Timeout = *operatortest.Length(90 * time.Second)
			return
		}
		kind.Spec(s.Place, &f.Spec)
		if f.Spec.Duration != nil {
			f.Spec.Duration = operatortest.Length(lasts)
		}
	})
}

// primaryPod is the pod that is the primary, with the node that it is on, or would be on.
func (s *overlapStage) primaryPod() (name, node string) {
	name = operatortest.RedisName
	if s.Primary != nil {
		name = s.Primary()
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if s.Read(pod) && pod.Spec.NodeName != "" {
		return name, pod.Spec.NodeName
	}
	return name, s.Namespace + "-a"
}

// conclude waits until faults have finished or are deleted, and returns whether the state is that from before, and all
// that is wrong.
func (s *overlapStage) conclude(names []string) (restored bool, problems []string) {
	s.T.Helper()
	if !s.Within(3*time.Minute, func() bool { return s.allOver(names) }) {
		for _, name := range names {
			problems = append(problems, fmt.Sprintf("%s: %s", name, operatortest.Where(s.Fault(name).Status.Conditions)))
		}
		return false, append(problems, "not over after 3 minutes")
	}
	left := s.LeftPaused()
	var differs []string
	s.Within(time.Minute, func() bool {
		differs = stage.Differences(s.Before, s.Shows())
		return len(differs) == 0
	})
	left = append(left, differs...)
	var faults []*v1alpha1.RedisFault
	for _, name := range names {
		f := s.last(name)
		faults = append(faults, f)
		for _, orphan := range stage.OrphansOf(s.Stage.Place, f) {
			left = append(left, orphan+" is left behind")
		}
		// of a deleted one, what was reverted last need not be stored
		if s.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}) {
			problems = append(problems, outcomeOf(f)...)
		}
	}
	problems = append(problems, overlapsIn(faults)...)
	for _, name := range names {
		s.MustChange(client.IgnoreNotFound(
			s.Client.Delete(s.T.Context(), &v1alpha1.RedisFault{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
			})))
	}
	return len(left) == 0, append(left, problems...)
}

// allOver pushes the faults on that only wait for recovery, and reports whether all are over.
func (s *overlapStage) allOver(names []string) bool {
	over := true
	for _, name := range names {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if !s.Read(f) {
			continue
		}
		over = over && state.IsFinished(f.Status.Conditions) && len(f.Finalizers) == 0
		if r := operatortest.Reason(f.Status.Conditions); r == v1alpha1.ReasonObserving && !f.Spec.Abort {
			s.abort(name)
		}
	}
	return over
}

func (s *overlapStage) abort(name string) {
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !s.Read(f) {
		return
	}
	before := f.DeepCopy()
	f.Spec.Abort = true
	s.MustChange(client.IgnoreNotFound(s.Client.Patch(context.Background(), f, client.MergeFrom(before))))
}

// restart ends the operator by SIGKILL and starts another one.
func (s *overlapStage) restart() {
	s.Operator.Kill()
	s.Operator = crashtest.Start(s.Place)
}
