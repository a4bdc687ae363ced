package pod

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// fleet is a ReplicaSet, or a controller of another kind, whose pods have new names.
type fleet struct {
	*faulttest.World
	kind    string
	size    int32
	made    int
	now     time.Time
	running map[string]*corev1.Pod // by UID
}

func newFleet(t *testing.T, kind string, size int32) *fleet {
	f := &fleet{
		World:   faulttest.NewWorld(t),
		kind:    kind,
		now:     time.Now().Add(-time.Hour).Truncate(time.Second),
		running: map[string]*corev1.Pod{},
	}
	if kind == "ReplicaSet" {
		faulttest.Must(t,
			f.Cluster.Create(t.Context(), &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "cache", UID: "rs"},
			}))
	}
	f.scale(size)
	return f
}

// scale is what an autoscaler does, and then the controller.
func (f *fleet) scale(size int32) {
	f.T.Helper()
	f.size = size
	if f.kind == "ReplicaSet" {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "cache"}}
		faulttest.Must(f.T, f.Cluster.Get(f.T.Context(), types.NamespacedName{Namespace: faulttest.Namespace, Name: "cache"},
			set))
		set.Spec.Replicas = &size
		faulttest.Must(f.T, f.Cluster.Update(f.T.Context(), set))
	}
	f.settle()
}

// settle is what the controller does: it creates the pods that are missing, and deletes those that are too many.
func (f *fleet) settle() {
	f.T.Helper()
	for len(f.running) < int(f.size) {
		f.made++
		name, uid := fmt.Sprintf("cache-%d", f.made), fmt.Sprintf("u%d", f.made)
		f.running[uid] = f.Pod(name, uid, "", "", func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID, p.OwnerReferences[0].Name = f.kind, "rs", "cache"
			p.CreationTimestamp = metav1.NewTime(f.now)
			p.Status.Conditions = nil
		})
	}
	for len(f.running) > int(f.size) {
		f.remove(slices.MaxFunc(f.uids(), func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) }))
	}
}

func (f *fleet) uids() []string {
	var all []string
	for uid := range f.running {
		all = append(all, uid)
	}
	slices.Sort(all)
	return all
}

// remove is a pod that is drained, evicted or deleted by somebody.
func (f *fleet) remove(uid string) {
	f.T.Helper()
	faulttest.Must(f.T, f.Cluster.Delete(f.T.Context(), f.running[uid]))
	f.Deleted = slices.DeleteFunc(f.Deleted, func(deleted string) bool { return deleted == uid })
	delete(f.running, uid)
}

// becomeReady passes some seconds, in which all pods become ready.
func (f *fleet) becomeReady() {
	f.now = f.now.Add(5 * time.Second)
	for _, pod := range f.running {
		f.Update(pod, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})
	}
}

// hit records pods, and kills them.
func (f *fleet) hit(uids ...string) (keptDown, []v1alpha1.FaultTarget) {
	f.T.Helper()
	spec := &v1alpha1.RedisFaultSpec{
		Action:   v1alpha1.Action{Type: v1alpha1.FaultPodKill},
		Duration: &metav1.Duration{Duration: time.Minute},
	}
	injector, err := Kinds.For(spec, f.Deps())
	faulttest.Must(f.T, err)
	k := injector.(keptDown)
	var targets []v1alpha1.FaultTarget
	for _, uid := range uids {
		targets = append(targets, v1alpha1.FaultTarget{Pod: f.running[uid].Name, UID: uid})
		faulttest.Must(f.T, k.Preflight(f.T.Context(), &targets[len(targets)-1]))
	}
	for i, uid := range uids {
		targets[i].InjectedAt = &metav1.MicroTime{Time: f.now}
		f.remove(uid)
	}
	f.settle()
	return k, targets
}

// keep lets the fault delete what is due, and the controller replace that, some times. It returns how many pods the
// controller has afterwards, at the instant after a deletion.
func (f *fleet) keep(k keptDown, targets []v1alpha1.FaultTarget) int {
	f.T.Helper()
	for range 3 {
		f.settle()
		before := len(f.Deleted)
		keepDown(f.T, k, targets...)
		for _, uid := range f.Deleted[before:] {
			delete(f.running, uid)
		}
	}
	return len(f.running)
}

func TestKeepDownInADeployment(t *testing.T) {
	for _, kind := range []string{"ReplicaSet", "RedisReplication"} {
		t.Run(kind, func(t *testing.T) {
			f := newFleet(t, kind, 3)
			f.becomeReady()
			f.Pod("app", "app", "10.0.0.3", "", func(p *corev1.Pod) {
				p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID = kind,
					"another"
			})
			k, targets := f.hit("u1")
			if got := f.keep(k, targets); got != 2 || f.running["u2"] == nil || f.running["u3"] == nil {
				t.Fatalf("%d pods are left: %v, deleted %v", got, f.uids(), f.Deleted)
			}
			f.becomeReady()
			f.remove("u3") // a node is drained
			f.settle()
			f.keep(k, targets)
			f.becomeReady()
			stays := f.uids()
			for range 3 {
				if got := f.keep(k, targets); got != 2 || !slices.Equal(f.uids(), stays) {
					t.Errorf("after a drain: %v are left, then %v", stays, f.uids())
				}
				f.now = f.now.Add(time.Second)
			}
			if kind != "ReplicaSet" {
				return // its size is not known
			}
			f.scale(6)
			if got := f.keep(k, targets); got != 5 {
				t.Errorf("of 6 pods %d are left", got)
			}
			f.scale(1)
			if got := f.keep(k, targets); got > 1 {
				t.Errorf("of 1 pod %d are left", got)
			}
		})
	}
}

// Whatever else happens to the pods of a ReplicaSet: those that were there before stay, those that serve are not
// replaced over and over, and never are fewer left than were hit.
func TestKeepDownIsNeverTooMuch(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 3))
		f := newFleet(t, "ReplicaSet", int32(2+random.IntN(5)))
		f.becomeReady()
		old := f.uids()
		hits := 1 + random.IntN(len(old))
		k, targets := f.hit(old[:hits]...)
		old = old[hits:]
		for range 8 {
			switch random.IntN(4) {
			case 0:
				f.becomeReady()
			case 1:
				if left := f.uids(); len(left) > 0 {
					gone := left[random.IntN(len(left))]
					f.remove(gone)
					old = slices.DeleteFunc(old, func(uid string) bool { return uid == gone })
				}
			case 2:
				before := f.uids()
				f.scale(int32(1 + random.IntN(7)))
				for _, uid := range before {
					if f.running[uid] == nil {
						old = slices.DeleteFunc(old, func(o string) bool { return o == uid })
					}
				}
			}
			f.settle()
			got, want := f.keep(k, targets), max(int(f.size)-hits, 0)
			if want = max(want, len(old)); got != want {
				t.Fatalf("seed %d: %d hit, of %d pods %d are left, want %d", seed, hits, f.size, got, want)
			}
			for _, uid := range old {
				if f.running[uid] == nil {
					t.Fatalf("seed %d: %s was there before, and was deleted", seed, uid)
				}
			}
		}
	}
}
