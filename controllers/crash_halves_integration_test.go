//go:build integration

package controllers

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// The losses between two targets of a fault.
const (
	killedBetween  = "operator killed between two targets"
	stoppedBetween = "API server stopped between two targets"
)

// halves are faults on three servers, of which the first is broken when the loss comes, just before the second one.
var halves = []struct {
	kind crashKind
	call string // the second of this name breaks the second server
}{
	{
		crashKind{
			name:  "Config on three servers",
			fault: v1alpha1.FaultConfig,
			scene: threeServers,
			spec: onAll(func(spec *v1alpha1.RedisFaultSpec) {
				spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
			}),
		},
		"CONFIG SET",
	},
	{
		crashKind{
			name:  "ClientPause on three servers",
			fault: v1alpha1.FaultClientPause,
			scene: threeServers,
			fades: true,
			spec: onAll(func(spec *v1alpha1.RedisFaultSpec) {
				spec.Action.ClientPause = &v1alpha1.ClientPause{Mode: v1alpha1.PauseWrite}
			}),
		},
		"CLIENT PAUSE",
	},
}

// threeServers is the scene of a replication in pods that nothing replaces.
func threeServers(p *place) scene {
	set := redistest.NewReplication(p.t, 2, redistest.Options{})
	addresses := p.podsOf(set.Servers())
	return scene{
		target: redisPods(set.Primary.Address()),
		shows:  func() map[string]string { return serversShow(addresses) },
	}
}

func onAll(change func(*v1alpha1.RedisFaultSpec)) func(*place, *v1alpha1.RedisFaultSpec) {
	return func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
		spec.Duration = length(time.Second)
		change(spec)
	}
}

// testHalves runs the losses between two targets.
func testHalves(t *testing.T) {
	t.Run(killedBetween, func(t *testing.T) {
		var stages []*lossStage
		for _, half := range halves {
			stages = append(stages, raiseLossStage(t, half.kind, orders{}, orders{DieAt: "before " + half.call + " #2"}))
		}
		for _, s := range stages {
			s.createFault()
		}
		for _, s := range stages {
			if s.within(time.Minute, s.operator.hasEnded); !s.operator.died() {
				t.Fatalf("%s: the operator lives: %v", s.kind.name, s.operator.calls())
			}
			s.operator = startProcess(s.place)
		}
		observe(stages, 15*time.Second)
		concludeLosses(stages, killedBetween)
	})
	t.Run(stoppedBetween, func(t *testing.T) {
		server, onIt := ownAPIServer(t)
		var stages []*lossStage
		for _, half := range halves {
			half.kind.on = onIt
			stages = append(stages, raiseLossStage(t, half.kind, orders{}, orders{PauseAt: half.call + " #2"}))
		}
		for _, s := range stages {
			s.createFault()
		}
		awaitPauses(t, stages)
		wake := stop(t, server)
		resume(stages)
		observe(stages, lifecycle.InjectPatience+5*time.Second) // much longer, and connections to the API server are given up
		wake()
		concludeLosses(stages, stoppedBetween)
	})
}
