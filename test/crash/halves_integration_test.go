//go:build integration

package crash

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/crashtest"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// The losses between two targets of a fault.
const (
	killedBetween  = "operator killed between two targets"
	stoppedBetween = "API server stopped between two targets"
)

// halves are faults on three servers, of which the first is broken when the loss comes, just before the second one.
var halves = []struct {
	kind stage.Kind
	call string // the second of this name breaks the second server
}{
	{
		stage.Kind{
			Name:  "Config on three servers",
			Fault: v1alpha1.FaultConfig,
			Scene: threeServers,
			Spec: onAll(func(spec *v1alpha1.RedisFaultSpec) {
				spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
			}),
		},
		"CONFIG SET",
	},
	{
		stage.Kind{
			Name:  "ClientPause on three servers",
			Fault: v1alpha1.FaultClientPause,
			Scene: threeServers,
			Fades: true,
			Spec: onAll(func(spec *v1alpha1.RedisFaultSpec) {
				spec.Action.ClientPause = &v1alpha1.ClientPause{Mode: v1alpha1.PauseWrite}
			}),
		},
		"CLIENT PAUSE",
	},
}

// threeServers is the scene of a replication in pods that nothing replaces.
func threeServers(p *operatortest.Place) stage.Scene {
	set := redistest.NewReplication(p.T, 2, redistest.Options{})
	addresses := stage.PodsOf(p, set.Servers())
	return stage.Scene{
		Target: stage.RedisPods(set.Primary.Address()),
		Shows:  func() map[string]string { return stage.ServersShow(addresses) },
	}
}

func onAll(change func(*v1alpha1.RedisFaultSpec)) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
		spec.Duration = operatortest.Length(time.Second)
		change(spec)
	}
}

// testHalves runs the losses between two targets.
func testHalves(t *testing.T) {
	t.Run(killedBetween, func(t *testing.T) {
		var stages []*lossStage
		for _, half := range halves {
			stages = append(stages,
				raiseLossStage(t, half.kind, crashtest.Orders{}, crashtest.Orders{DieAt: "before " + half.call + " #2"}))
		}
		for _, s := range stages {
			s.createFault()
		}
		for _, s := range stages {
			if s.Within(time.Minute, s.Operator.HasEnded); !s.Operator.Died() {
				t.Fatalf("%s: the operator lives: %v", s.kind.Name, s.Operator.Calls())
			}
			s.Operator = crashtest.Start(s.Place)
		}
		observe(stages, 15*time.Second)
		concludeLosses(stages, killedBetween)
	})
	t.Run(stoppedBetween, func(t *testing.T) {
		server, onIt := ownAPIServer(t)
		var stages []*lossStage
		for _, half := range halves {
			half.kind.On = onIt
			stages = append(stages, raiseLossStage(t, half.kind, crashtest.Orders{},
				crashtest.Orders{PauseAt: half.call + " #2"}))
		}
		for _, s := range stages {
			s.createFault()
		}
		awaitPauses(t, stages)
		wake := stage.Stop(t, server)
		resume(stages)
		observe(stages, lifecycle.InjectPatience+5*time.Second) // much longer, and connections to the API server are given up
		wake()
		concludeLosses(stages, stoppedBetween)
	})
}
