//go:build integration

package stage

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/crashtest"
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// meshKinds are those that Chaos Mesh injects. A stand-in replaces its controller: it deletes pods,
// and has no other effect.
var meshKinds = []Kind{
	{
		Name:  "PodKill by Chaos Mesh",
		Quick: true,
		Fault: v1alpha1.FaultPodKill,
		needs: NeedsMesh,
		On:    meshplace.New,
		Scene: Meshed(PodsDeleted),
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		}),
	},
	{
		Name:  "NetworkDelay by Chaos Mesh",
		Fault: v1alpha1.FaultNetworkDelay,
		needs: NeedsMesh,
		On:    meshplace.New,
		Scene: Meshed(nil),
		Fades: true,
		Spec:  byMesh(delays),
	},
	{
		Name:  "NetworkLoss by Chaos Mesh",
		Fault: v1alpha1.FaultNetworkLoss,
		needs: NeedsMesh,
		On:    meshplace.New,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.NetworkLoss = &v1alpha1.NetworkLoss{Loss: "25%", Direction: v1alpha1.DirectionOut}
		}),
	},
	{
		Name:  "NetworkPartition by Chaos Mesh",
		Fault: v1alpha1.FaultNetworkPartition,
		needs: NeedsMesh,
		On:    meshplace.New,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.NetworkPartition = &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerClients}}
		}),
	},
	{
		Name:  "DiskDelay",
		Fault: v1alpha1.FaultDiskDelay,
		needs: NeedsMesh,
		On:    meshplace.New,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.DiskDelay = &v1alpha1.DiskDelay{Delay: *operatortest.Length(time.Second)}
		}),
	},
	{
		Name:  "CPUStress",
		Fault: v1alpha1.FaultCPUStress,
		needs: NeedsMesh,
		On:    meshplace.New,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.CPUStress = &v1alpha1.CPUStress{Workers: 1, Load: 50}
		}),
	},
	{
		Name:  "ClockSkew",
		Fault: v1alpha1.FaultClockSkew,
		needs: NeedsMesh,
		On:    meshplace.New,
		Scene: Meshed(nil),
		Fades: true,
		Spec:  byMesh(Skews),
	},
}

func delays(s *v1alpha1.RedisFaultSpec) {
	s.Action.NetworkDelay = &v1alpha1.NetworkDelay{
		Latency: *operatortest.Length(100 * time.Millisecond),
	}
}

// Skews sets the clock back by an hour.
func Skews(s *v1alpha1.RedisFaultSpec) {
	s.Action.ClockSkew = &v1alpha1.ClockSkew{Offset: *operatortest.Length(-time.Hour)}
}

func byMesh(
	change func(*v1alpha1.RedisFaultSpec),
) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return ByMeshFor(time.Second, change)
}

// ByMeshFor is the spec of a fault that Chaos Mesh injects, for so long.
func ByMeshFor(
	lasts time.Duration, change func(*v1alpha1.RedisFaultSpec),
) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		spec.Engine = v1alpha1.EngineChaosMesh
		if spec.Action.Type != v1alpha1.FaultPodKill {
			spec.Duration = operatortest.Length(lasts)
		}
		change(spec)
	}
}

// Meshed is the scene of one server that Chaos Mesh can reach.
func Meshed(broken func(*operatortest.RedisSet) int) func(*operatortest.Place) Scene {
	one := Single(broken)
	return func(p *operatortest.Place) Scene {
		sc := one(p)
		meshplace.Start(p)
		return sc
	}
}

// Main is crashtest.Main, and ends the API servers of some kinds, if there are any.
func Main(m *testing.M) int {
	return crashtest.Main(m, meshplace.Stop, stopNetworkServer)
}
