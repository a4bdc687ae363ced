//go:build integration

package operator

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
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// elsewhere are faults of other types than Config that are deleted while something that they depend on is lost.
var elsewhere = []struct {
	name  string
	on    func(*testing.T) *operatortest.Place // if it needs another cluster; nil = NewPlace
	scene func(*operatortest.Place) stage.Scene
	spec  func(*v1alpha1.RedisFault)
	lose  func(*operatortest.Place)
}{
	{
		name:  "scaled, the StatefulSet deleted",
		scene: stage.FleetOf(2, nil),
		spec:  asks(v1alpha1.FaultReplicaScale, lastingly(stage.Scales(1))),
		lose: func(p *operatortest.Place) {
			p.MustChange(p.Client.Delete(p.T.Context(), &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "redis"},
			}))
		},
	},
	{
		name:  "reverting a scaling, Redis silent",
		scene: stage.FleetOf(2, nil),
		spec:  asks(v1alpha1.FaultReplicaScale, lastingly(stage.Scales(1))),
		lose: func(p *operatortest.Place) {
			silence(p, p.Subnet+"2:6379")
			p.MustChange(operatortest.Change(p, p.Fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
			p.FaultHasReason("break", 20*time.Second, v1alpha1.ReasonReverting)
		},
	},
	{
		name:  "a volume held, its node deleted",
		scene: stage.FleetOf(1, stage.OnVolume),
		spec:  asks(v1alpha1.FaultVolumeAttachDelay, holdsVolume),
		lose: func(p *operatortest.Place) {
			p.MustChange(p.Client.Delete(p.T.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace + "-a"}}))
		},
	},
	{
		name:  "a held volume, aborted",
		scene: stage.FleetOf(1, stage.OnVolume),
		spec:  asks(v1alpha1.FaultVolumeAttachDelay, holdsVolume),
		lose: func(p *operatortest.Place) {
			p.MustChange(operatortest.Change(p, p.Fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		},
	},
	{
		name:  "active by Chaos Mesh, whose CRD was deleted",
		on:    meshplace.NewOwn,
		scene: stage.Meshed(nil),
		spec:  asks(v1alpha1.FaultClockSkew, stage.ByMeshFor(10*time.Minute, stage.Skews)),
		lose: func(p *operatortest.Place) {
			p.MustChange(meshplace.Uninstall(p.Client, "timechaos.chaos-mesh.org"))
		},
	},
}

func asks(
	kind v1alpha1.FaultType, spec func(*operatortest.Place, *v1alpha1.RedisFaultSpec),
) func(*v1alpha1.RedisFault) {
	return func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Type, f.Spec.Action.Config, f.Spec.Duration = kind, nil, nil
		spec(nil, &f.Spec)
	}
}

func lastingly(
	spec func(*operatortest.Place, *v1alpha1.RedisFaultSpec),
) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(p *operatortest.Place, s *v1alpha1.RedisFaultSpec) {
		spec(p, s)
		s.Duration = operatortest.Length(10 * time.Minute)
	}
}

func holdsVolume(_ *operatortest.Place, s *v1alpha1.RedisFaultSpec) {
	s.Duration = operatortest.Length(10 * time.Minute)
}

// silence pauses a server for longer than the test.
func silence(p *operatortest.Place, address string) {
	p.T.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: address, DisableIdentity: true})
	defer c.Close()
	p.MustChange(c.Do(p.T.Context(), "CLIENT", "PAUSE", 1_200_000, "ALL").Err())
}

// A fault that acts on the cluster is removed within a minute of its deletion, whatever is lost.
// TestFaultIsDeletedWithinAMinute has the other cases.
func TestClusterFaultIsDeletedWithinAMinute(t *testing.T) {
	t.Parallel()
	for _, f := range elsewhere {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			p := operatortest.PlaceOn(t, f.on)
			target := f.scene(p).Target
			operatortest.StartKubelet(p, nil)
			operatortest.StartOperator(p, operatortest.Spy{})
			p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: operatortest.Length(time.Hour)}
				test.Spec.Target = target
			}))
			p.Create(operatortest.HzFault(f.spec))
			broken := p.FaultHasReason("break", time.Minute, v1alpha1.ReasonActive)
			if len(broken.Finalizers) == 0 {
				t.Errorf("no finalizer keeps the fault: %s", operatortest.Where(broken.Status.Conditions))
			}
			f.lose(p)
			p.MustChange(p.Client.Delete(t.Context(), broken))
			since := time.Now()
			p.Until("it is removed", 3*time.Minute, func() bool {
				return !p.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "break"}})
			}, func() string {
				f := p.Fault("break")
				return fmt.Sprintf("%s, targets %+v", operatortest.Where(f.Status.Conditions), f.Status.Targets)
			})
			took := time.Since(since).Round(100 * time.Millisecond)
			t.Logf("removed after %s", took)
			// the operator's limit is exact in virtual time; a machine that stalls may take as long again
			if took > 2*time.Minute {
				t.Errorf("removed after %s", took)
			}
			if left := leftOf(p, broken); len(left) > 0 {
				t.Errorf("removed, but these are left: %v", left)
			}
		})
	}
}

// leftOf returns the remains of a fault: objects that it created, and tainted nodes. Its load is deleted by garbage
// collection.
func leftOf(p *operatortest.Place, f *v1alpha1.RedisFault) []string {
	p.T.Helper()
	left := stage.OrphansOf(p, f)
	var nodes corev1.NodeList
	p.MustChange(p.Client.List(context.Background(), &nodes, client.MatchingLabels{stage.PlaceLabel: p.Namespace}))
	for _, node := range nodes.Items {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintFault }) {
			left = append(left, "taint of node "+node.Name)
		}
	}
	return left
}
