//go:build integration

package controllers

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
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/sim"
)

// overlapping is one Redis, and the kinds of faults that act on the same server, workload or node of it.
type overlapping struct {
	name   string
	on     func(*testing.T) *place // as in crashKind
	scene  func(*place) scene
	shard  *int32 // of a cluster
	kinds  []crashKind
	meets  []crashKind // of each pair, one is among these; nil = any
	across bool        // only one, as two of them meet on another stage
	splits int         // how many stages share the pairs; 0 = 1

	pairsOnly bool // no schedules
}

// The kinds by what they need of a Redis. Those of oneServer find that on every stage.
var (
	oneServer     = kindsThatNeed(needsServer, needsWorkload, needsNodes)
	ofFile        = kindsThatNeed(needsFile)
	ofSettings    = kindsThatNeed(needsLoad)
	ofScaling     = kindsThatNeed(needsScaling)
	ofReplication = kindsThatNeed(needsReplication)
	ofSentinels   = kindsThatNeed(needsSentinels)
	ofCluster     = kindsThatNeed(needsCluster)
	ofMesh        = kindsThatNeed(needsMesh)
)

// overlaps are the stages of all kinds. Each has all that a kind of fault may need: a StatefulSet, nodes, a volume for
// each pod.
var overlaps = []overlapping{
	{name: "standalone", splits: 12, scene: fleetOf(1, complete), kinds: oneServer},
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
		scene:  clusterFleetOf(complete),
		shard:  new(int32(0)),
		kinds:  slices.Concat(ofCluster, oneServer),
		meets:  ofCluster,
	},
	{name: "file", splits: 2, scene: onFile, pairsOnly: true, kinds: slices.Concat(ofFile, oneServer), meets: ofFile},
	{
		name: "chaosmesh", splits: 12, on: newMeshPlace, scene: withMesh(fleetOf(1, complete)), pairsOnly: true,
		kinds: slices.Concat(ofMesh, oneServer), meets: ofMesh,
	},
	{
		name: "chaosmesh and replication", splits: 2, on: newMeshPlace, scene: withMesh(fleetOf(3, complete)),
		pairsOnly: true,
		kinds:     slices.Concat(ofMesh, ofScaling, ofReplication), meets: ofMesh, across: true,
	},
	{
		name: "chaosmesh and sentinel", splits: 2, on: newMeshPlace, scene: withMesh(watchedFleet), pairsOnly: true,
		kinds: slices.Concat(ofMesh, ofSentinels), meets: ofMesh, across: true,
	},
	{
		name: "chaosmesh and cluster", splits: 4, on: newMeshPlace, scene: withMesh(clusterFleetOf(complete)),
		shard: new(int32(0)), pairsOnly: true,
		kinds: slices.Concat(ofMesh, ofCluster), meets: ofMesh, across: true,
	},
}

// complete gives a fleet all that a kind of fault may need.
func complete(f *fleet, set *appsv1.StatefulSet) {
	onVolume(f, set)
	f.options = []string{"--enable-debug-command", "yes"}
}

// followedFleet is the scene of a StatefulSet of three servers whose load follows the primary: ClientKill finds its
// connections there after a Failover, too.
func followedFleet(p *place) scene {
	f := startFleet(p, 3, complete)
	return scene{
		target:  redisPods(f.address(0), f.address(1), f.address(2)),
		shows:   f.shows,
		primary: f.primaryOf,
		asksAPI: true,
	}
}

// onFile is the scene of one server whose configuration file is rewritten as soon as a fault has changed hz.
func onFile(p *place) scene {
	sc := fleetOf(1, func(f *fleet, set *appsv1.StatefulSet) {
		complete(f, set)
		f.file = true
	})(p)
	rewriteOf(p, sc.target.Addresses[0])
	return sc
}

// watchedFleet is the scene of a StatefulSet of three servers that sentinels watch, patiently.
func watchedFleet(p *place) scene {
	f := startFleet(p, 3, complete)
	set := redistest.NewWatchers(p.t, f.ipOf(0), 6379, 2, redistest.SentinelOptions{DownAfter: 10 * time.Second})
	p.podAt("sentinel-0", map[string]string{"app": "sentinel"}, set.Sentinels[0].Port)
	target := redisPods()
	target.Sentinel = &v1alpha1.SentinelTarget{Addresses: set.SentinelAddresses(), MasterName: redistest.MasterName}
	return scene{target: target, shows: f.shows, primary: f.primaryOf, asksAPI: true}
}

// withMesh adds the stand-in for Chaos Mesh.
func withMesh(of func(*place) scene) func(*place) scene {
	return func(p *place) scene {
		sc := of(p)
		startMesh(p)
		return sc
	}
}

// kindsNamed are kinds of the crash test.
func kindsNamed(names ...string) []crashKind {
	var kinds []crashKind
	for _, name := range names {
		i := slices.IndexFunc(crashKinds, func(k crashKind) bool { return k.name == name })
		kinds = append(kinds, crashKinds[i])
	}
	return kinds
}

// overlapStage is a stage with two loads, of which each fault refers to one: faults must take turns whatever measures
// them.
type overlapStage struct {
	*crashStage
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
		crashStage: crashKind{on: o.on, scene: o.scene}.raise(t),
		of:         o,
		seen:       map[string]*v1alpha1.RedisFault{},
		waited:     map[string]bool{},
	}
	s.ownPods()
	second := s.loadTest(loads[0])
	s.create(&v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: loads[1]}, Spec: second.Spec})
	s.testHasReason(loads[1], time.Minute, v1alpha1.ReasonRunning)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { sim.Watch(ctx, s.client, s.namespace, &v1alpha1.RedisFaultList{}, func() {}, s.note) })
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return s
}

// ownPods gives the pods that nothing controls to a StatefulSet, as those of a real Redis have one.
func (s *overlapStage) ownPods() {
	s.t.Helper()
	var pods corev1.PodList
	s.mustChange(s.client.List(s.t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{
		"app": "redis",
	}))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if metav1.GetControllerOf(pod) != nil {
			continue
		}
		s.mustChange(change(s.place, pod, func(pod *corev1.Pod) {
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
	if reason(f.Status.Conditions) == v1alpha1.ReasonWaitingForFault {
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

// newFault is a fault on the stage; lasts applies to a kind that has a duration.
func (s *overlapStage) newFault(kind crashKind, load string, lasts time.Duration) *v1alpha1.RedisFault {
	s.t.Helper()
	s.faults++
	return newFault(fmt.Sprintf("fault-%d", s.faults), load, kind.fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = length(0), *length(time.Second)
		f.Spec.Select.Shard = s.of.shard
		if kind.fault == v1alpha1.FaultNodeLoss { // the spec of the crash test reads the pod, which may be missing now
			pod, node := s.primaryPod()
			// Not the primary, whichever that is when the fault begins: a failover may have moved that role to a server on
			// another node.
			f.Spec.Select.Role, f.Spec.Select.Names = v1alpha1.RoleAny, []string{pod}
			f.Spec.Action.NodeLoss, f.Spec.Duration = &v1alpha1.NodeLoss{Node: node}, length(lasts)
			// if the pod has been moved, which may pass: less than it may take until all is over
			f.Spec.Trigger.Timeout = *length(90 * time.Second)
			return
		}
		kind.spec(s.place, &f.Spec)
		if f.Spec.Duration != nil {
			f.Spec.Duration = length(lasts)
		}
	})
}

// primaryPod is the pod that is the primary, with the node that it is on, or would be on.
func (s *overlapStage) primaryPod() (name, node string) {
	name = redisName
	if s.primary != nil {
		name = s.primary()
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if s.read(pod) && pod.Spec.NodeName != "" {
		return name, pod.Spec.NodeName
	}
	return name, s.namespace + "-a"
}

// conclude waits until faults have finished or are deleted, and returns whether the state is that from before, and all
// that is wrong.
func (s *overlapStage) conclude(names []string) (restored bool, problems []string) {
	s.t.Helper()
	if !s.within(3*time.Minute, func() bool { return s.allOver(names) }) {
		for _, name := range names {
			problems = append(problems, fmt.Sprintf("%s: %s", name, where(s.fault(name).Status.Conditions)))
		}
		return false, append(problems, "not over after 3 minutes")
	}
	left := s.leftPaused()
	var differs []string
	s.within(time.Minute, func() bool {
		differs = differences(s.before, s.shows())
		return len(differs) == 0
	})
	left = append(left, differs...)
	var faults []*v1alpha1.RedisFault
	for _, name := range names {
		f := s.last(name)
		faults = append(faults, f)
		for _, orphan := range s.orphansOf(f) {
			left = append(left, orphan+" is left behind")
		}
		// of a deleted one, what was reverted last need not be stored
		if s.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}) {
			problems = append(problems, outcomeOf(f)...)
		}
	}
	problems = append(problems, overlapsIn(faults)...)
	for _, name := range names {
		s.mustChange(client.IgnoreNotFound(
			s.client.Delete(s.t.Context(), &v1alpha1.RedisFault{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
			})))
	}
	return len(left) == 0, append(left, problems...)
}

// allOver pushes the faults on that only wait for recovery, and reports whether all are over.
func (s *overlapStage) allOver(names []string) bool {
	over := true
	for _, name := range names {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if !s.read(f) {
			continue
		}
		over = over && state.IsFinished(f.Status.Conditions) && len(f.Finalizers) == 0
		if r := reason(f.Status.Conditions); r == v1alpha1.ReasonObserving && !f.Spec.Abort {
			s.abort(name)
		}
	}
	return over
}

func (s *overlapStage) abort(name string) {
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !s.read(f) {
		return
	}
	before := f.DeepCopy()
	f.Spec.Abort = true
	s.mustChange(client.IgnoreNotFound(s.client.Patch(context.Background(), f, client.MergeFrom(before))))
}

// restart ends the operator by SIGKILL and starts another one.
func (s *overlapStage) restart() {
	s.operator.kill()
	s.operator = startProcess(s.place)
}
