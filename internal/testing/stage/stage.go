//go:build integration

package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/crashtest"
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// Stage is a Redis under load in its own place, with an operator that can be killed and functions
// that read the state. Faults run on it one after another.
type Stage struct {
	*operatortest.Place
	Operator *crashtest.Process
	Faults   int               // number of faults so far
	Before   map[string]string // result of shows before the first fault
	// the state that a fault must restore; a value that cannot be read is an error text
	Shows func() map[string]string
	// number of injections on the stage; nil if they cannot be counted
	Broken  func() int
	Primary func() string // name of the pod of the selected primary; nil = redis-0

	redisBefore map[string]string // result of redisShows before the first fault
	// the part of shows that needs no API server; nil if there is none
	redisShows func() map[string]string
}

// Need is what a kind of fault asks of a Redis, beside a server. The stages on which kinds meet,
// are planned, or act with a password take their kinds by it.
type Need int

// The needs.
const (
	NeedsServer      Need = iota // only that
	NeedsWorkload                // a StatefulSet
	NeedsNodes                   // nodes that pods can be scheduled to, and a volume for each pod
	NeedsFile                    // a configuration file that is rewritten
	NeedsLoad                    // a load that it is a setting of
	NeedsScaling                 // replicas in a StatefulSet that can have more or less of them
	NeedsReplication             // replicas, and no sentinels
	NeedsSentinels
	NeedsCluster
	NeedsNetwork  // a kubelet that runs programs in pods
	NeedsDisk     // that, and a volume on which data are kept
	NeedsOperator // the Deployment of its operator
	NeedsPower    // a power hook
	NeedsMesh     // Chaos Mesh
)

// Kind is one kind of fault on its stage.
type Kind struct {
	Name  string
	Fault v1alpha1.FaultType
	needs Need
	On    func(*testing.T) *operatortest.Place // if it needs another cluster; nil = NewPlace
	Scene func(*operatortest.Place) Scene
	Spec  func(*operatortest.Place, *v1alpha1.RedisFaultSpec)
	// of a kind that breaks what is on a node: names another node than Spec does
	OnNode func(a *v1alpha1.Action, node string)

	Quick bool // the one of its mechanism in make test; the others are in the full table
	// the effect may be invisible: it ends with the operator process, or only the real Chaos Mesh has
	// one
	Fades   bool
	Pauses  bool // clients are paused during the fault
	targets int  // how many servers it breaks; 0 = 1

	gauge func(*Stage) Gauge // if it leaves its mark neither on the servers nor on their StatefulSet
	// draws settings for the fuzz test, also such that are refused; of one kind of each type that has
	// settings
	Wild func(Draw, *v1alpha1.Action)
}

// KindsThatNeed are the kinds of the crash test that need one of these.
func KindsThatNeed(needs ...Need) []Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k Kind) bool {
		return !slices.Contains(needs,
			k.needs)
	})
}

// Scene is a Redis with the cluster around it.
type Scene struct {
	Target v1alpha1.RedisTarget // of the load
	Shows  func() map[string]string
	broken func() int

	Primary func() string // as in Stage

	AsksAPI bool // shows does
}

// Raise starts a stage and its load.
func (k Kind) Raise(t *testing.T) *Stage {
	return k.RaiseWith(t, crashtest.Orders{})
}

// RaiseWith is Raise with other orders for the operator.
func (k Kind) RaiseWith(t *testing.T, order crashtest.Orders) *Stage {
	t.Helper()
	p := operatortest.PlaceOn(t, k.On)
	set := k.Scene(p)
	operatortest.StartKubelet(p, nil)
	s := &Stage{
		Place:    p,
		Operator: crashtest.StartWith(p, order),
		Broken:   set.broken,
		Primary:  set.Primary,
	}
	s.Shows = func() map[string]string {
		all := set.Shows()
		maps.Copy(all, clusterShows(p))
		return all
	}
	p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = set.Target
		test.Spec.Client.Connections = 2
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:     new(int32(50)),
			Duration: operatortest.Length(2 * time.Hour),
		}
	}))
	p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	Settles(p, set)
	s.Before = s.Shows()
	if !set.AsksAPI {
		s.redisShows, s.redisBefore = set.Shows, set.Shows()
	}
	return s
}

// Settles waits until all servers of a scene answer and are in sync, so that what they show is what
// a fault must restore.
func Settles(p *operatortest.Place, set Scene) {
	p.T.Helper()
	await.Until(p.T, "the scene before the fault", func() error {
		shows := set.Shows()
		servers, primaries, replicas := 0, 0, 0
		for name := range shows {
			if strings.HasSuffix(name, " publishes") {
				servers++
			}
		}
		if servers > 0 { // several
			if _, err := fmt.Sscanf(shows["roles"], "%d primary, %d replicas in sync", &primaries,
				&replicas); err != nil ||
				primaries+replicas != servers {
				return fmt.Errorf("%d servers: %s, %w", servers, shows["roles"], err)
			}
		}
		return await.That(len(waitingIn(shows)) == 0 && shows["writes"] == "<nil>",
			"%v do not answer; writes: %s",
			waitingIn(shows), shows["writes"])
	})
}

// Within waits for a state and reports whether it was reached. It checks when an object has changed
// or the operator has ended, and periodically.
func (s *Stage) Within(patience time.Duration, came func() bool) bool {
	if s.Changed == nil {
		s.Watch()
	}
	for end := time.Now().Add(patience); !came(); {
		if time.Now().After(end) {
			return false
		}
		again := time.NewTimer(s.LookEvery)
		select {
		case <-s.Changed:
		case <-s.Operator.Ended():
		case <-again.C:
		}
		again.Stop()
	}
	return true
}

// Differences returns the values that differ between two states.
func Differences(before, after map[string]string) []string {
	var lines []string
	for name := range maps.Keys(before) {
		if after[name] != before[name] {
			lines = append(lines, fmt.Sprintf("%s is %q, was %q", name, after[name], before[name]))
		}
	}
	for name := range maps.Keys(after) {
		if _, known := before[name]; !known {
			lines = append(lines, fmt.Sprintf("%s is %q, was not there", name, after[name]))
		}
	}
	slices.Sort(lines)
	return lines
}

// clusterShows returns the objects of the place that a fault can change: pods, workloads, nodes. It
// omits load pods and what only the control plane writes.
func clusterShows(p *operatortest.Place) map[string]string {
	ctx, shows := context.Background(), map[string]string{}
	add := func(err error, what string, is ...any) {
		text, _ := json.Marshal(is)
		shows[what] = string(text)
		if err != nil {
			shows[what] = err.Error()
		}
	}
	var pods corev1.PodList
	add(p.Client.List(ctx, &pods, client.InNamespace(p.Namespace)), "pods")
	for _, pod := range pods.Items {
		if pod.Labels[v1alpha1.LabelLoadTest] != "" {
			continue
		}
		container := pod.Spec.Containers[0]
		labels := maps.Clone(pod.Labels)
		delete(labels, corev1.LabelTopologyZone) // the API server's, of the node that it is on
		add(nil, "pod "+pod.Name, pod.Status.Phase, pod.DeletionTimestamp, labels, pod.Annotations,
			container.Args,
			container.Command, container.Resources)
	}
	var sets appsv1.StatefulSetList
	add(p.Client.List(ctx, &sets, client.InNamespace(p.Namespace)), "statefulsets")
	for _, set := range sets.Items {
		add(nil, "statefulset "+set.Name, set.Spec, set.Annotations)
	}
	var deployments appsv1.DeploymentList
	add(p.Client.List(ctx, &deployments, client.InNamespace(p.Namespace)), "deployments")
	for _, d := range deployments.Items {
		add(nil, "deployment "+d.Name, d.Spec, d.Annotations)
	}
	var nodes corev1.NodeList
	add(p.Client.List(ctx, &nodes, client.MatchingLabels{PlaceLabel: p.Namespace}), "nodes")
	for _, node := range nodes.Items {
		conditions := node.Status.Conditions
		add(nil, "node "+node.Name, node.Spec.Unschedulable, node.Spec.Taints, node.Labels,
			node.Annotations, len(conditions) > 0 && conditions[0].Status == corev1.ConditionTrue)
	}
	return shows
}

// PlaceLabel marks the cluster-scoped objects of a place.
const PlaceLabel = "place"

// OrphansOf returns the objects that a fault created and that still exist, except events.
func OrphansOf(p *operatortest.Place, f *v1alpha1.RedisFault) []string {
	p.T.Helper()
	var orphans []string
	lists := []client.ObjectList{
		&corev1.PodList{},
		&corev1.ConfigMapList{},
		&corev1.SecretList{},
		&corev1.ServiceList{},
		&corev1.PersistentVolumeClaimList{},
		&batchv1.JobList{},
		&appsv1.StatefulSetList{},
		&appsv1.DeploymentList{},
		&v1alpha1.RedisLoadTestList{},
	}
	if p.StopMesh != nil {
		for _, kind := range meshplace.Kinds() {
			lists = append(lists, object.NewList(kind))
		}
	}
	for _, list := range lists {
		err := p.Client.List(context.Background(), list, client.InNamespace(p.Namespace))
		// the objects were deleted with their CRD
		if err != nil && !(p.StopMesh != nil && apierrors.IsNotFound(err)) {
			p.T.Fatal(err)
		}
		for _, o := range objectsOf(list) {
			owned := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
				return r.UID == f.UID
			})
			if owned || o.GetLabels()[v1alpha1.LabelFault] != "" {
				gvk, _ := apiutil.GVKForObject(o, p.Client.Scheme())
				orphans = append(orphans, gvk.Kind+" "+o.GetName())
			}
		}
	}
	return orphans
}

func objectsOf(list client.ObjectList) []client.Object {
	items, _ := meta.ExtractList(list)
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = items[i].(client.Object)
	}
	return objects
}
