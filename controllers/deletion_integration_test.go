//go:build integration

package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// elsewhere are faults of other types than Config that are deleted while something that they depend on is lost.
var elsewhere = []struct {
	name  string
	on    func(*testing.T) *place // if it needs another cluster; nil = newPlace
	scene func(*place) scene
	spec  func(*v1alpha1.RedisFault)
	lose  func(*place)
}{
	{
		name:  "scaled, the StatefulSet deleted",
		scene: fleetOf(2, nil),
		spec:  asks(v1alpha1.FaultReplicaScale, lastingly(scales(1))),
		lose: func(p *place) {
			p.mustChange(p.client.Delete(p.t.Context(), &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "redis"},
			}))
		},
	},
	{
		name:  "reverting a scaling, Redis silent",
		scene: fleetOf(2, nil),
		spec:  asks(v1alpha1.FaultReplicaScale, lastingly(scales(1))),
		lose: func(p *place) {
			silence(p, p.subnet+"2:6379")
			p.mustChange(change(p, p.fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
			p.faultHasReason("break", 20*time.Second, v1alpha1.ReasonReverting)
		},
	},
	{
		name:  "a volume held, its node deleted",
		scene: fleetOf(1, onVolume),
		spec:  asks(v1alpha1.FaultVolumeAttachDelay, holdsVolume),
		lose: func(p *place) {
			p.mustChange(p.client.Delete(p.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.namespace + "-a"}}))
		},
	},
	{
		name:  "a held volume, aborted",
		scene: fleetOf(1, onVolume),
		spec:  asks(v1alpha1.FaultVolumeAttachDelay, holdsVolume),
		lose: func(p *place) {
			p.mustChange(change(p, p.fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		},
	},
	{
		name:  "active by Chaos Mesh, whose CRD was deleted",
		on:    newOwnMeshPlace,
		scene: meshed(nil),
		spec:  asks(v1alpha1.FaultClockSkew, byMeshFor(10*time.Minute, skews)),
		lose: func(p *place) {
			p.mustChange(uninstall(p.client, "timechaos.chaos-mesh.org"))
		},
	},
}

func asks(kind v1alpha1.FaultType, spec func(*place, *v1alpha1.RedisFaultSpec)) func(*v1alpha1.RedisFault) {
	return func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Type, f.Spec.Action.Config, f.Spec.Duration = kind, nil, nil
		spec(nil, &f.Spec)
	}
}

func lastingly(spec func(*place, *v1alpha1.RedisFaultSpec)) func(*place, *v1alpha1.RedisFaultSpec) {
	return func(p *place, s *v1alpha1.RedisFaultSpec) {
		spec(p, s)
		s.Duration = length(10 * time.Minute)
	}
}

func holdsVolume(_ *place, s *v1alpha1.RedisFaultSpec) {
	s.Duration = length(10 * time.Minute)
}

// silence pauses a server for longer than the test.
func silence(p *place, address string) {
	p.t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: address, DisableIdentity: true})
	defer c.Close()
	p.mustChange(c.Do(p.t.Context(), "CLIENT", "PAUSE", 1_200_000, "ALL").Err())
}

// A fault that acts on the cluster is removed within a minute of its deletion, whatever is lost.
// TestFaultIsDeletedWithinAMinute has the other cases.
func TestClusterFaultIsDeletedWithinAMinute(t *testing.T) {
	t.Parallel()
	for _, f := range elsewhere {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			p := placeOn(t, f.on)
			target := f.scene(p).target
			startKubelet(p, nil)
			startOperator(p, spy{})
			p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: length(time.Hour)}
				test.Spec.Target = target
			}))
			p.create(hzFault(f.spec))
			broken := p.faultHasReason("break", time.Minute, v1alpha1.ReasonActive)
			if len(broken.Finalizers) == 0 {
				t.Errorf("no finalizer keeps the fault: %s", where(broken.Status.Conditions))
			}
			f.lose(p)
			p.mustChange(p.client.Delete(t.Context(), broken))
			since := time.Now()
			p.until("it is removed", 3*time.Minute, func() bool {
				return !p.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "break"}})
			}, func() string {
				f := p.fault("break")
				return fmt.Sprintf("%s, targets %+v", where(f.Status.Conditions), f.Status.Targets)
			})
			took := time.Since(since).Round(100 * time.Millisecond)
			t.Logf("removed after %s", took)
			// the operator's limit is exact in virtual time; a machine that stalls may take as long again
			if took > 2*time.Minute {
				t.Errorf("removed after %s", took)
			}
			if left := p.leftOf(broken); len(left) > 0 {
				t.Errorf("removed, but these are left: %v", left)
			}
		})
	}
}

// leftOf returns the remains of a fault: objects that it created, and tainted nodes. Its load is deleted by garbage
// collection.
func (p *place) leftOf(f *v1alpha1.RedisFault) []string {
	p.t.Helper()
	left := p.orphansOf(f)
	var nodes corev1.NodeList
	p.mustChange(p.client.List(context.Background(), &nodes, client.MatchingLabels{placeLabel: p.namespace}))
	for _, node := range nodes.Items {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintFault }) {
			left = append(left, "taint of node "+node.Name)
		}
	}
	return left
}
