//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// TestChaosMeshAgent has Chaos Mesh's controller and its agent on the nodes break a loaded Redis, and compares what is
// reported with what a client of its own saw at the server, and with the processes and rules of the pod.
// `make e2e-chaosmesh` runs it.
func TestChaosMeshAgent(t *testing.T) {
	n := newNamespace(t, "mesh")
	n.applyRedis(nil)
	n.create(n.steadyLoad("base", standaloneTarget(), 20*time.Minute))
	n.waitLoadTest("base", 2*time.Minute, v1alpha1.ReasonRunning)
	installChaosMesh(t)
	a := startAgents(t)
	meshtest.StartController(t, os.Getenv("KUBECONFIG"), a.name)

	for _, c := range []struct {
		name string
		run  func(*namespace, *agents)
	}{
		{"partition", meshPartition},
		{"clock", meshClock},
		{"stress", meshStress},
		{"replaced-agent", meshAgentIsReplaced},
		// The kernel of the lab cannot delay or lose packets.
		{"delay", func(n *namespace, a *agents) { n.netemIsMissing(a, "delay", v1alpha1.FaultNetworkDelay, delays) }},
		{"loss", func(n *namespace, a *agents) { n.netemIsMissing(a, "loss", v1alpha1.FaultNetworkLoss, loses) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := n.in(t)
			n.podReady("redis-0", deployTime)
			n.flows("redis")
			c.run(n, &agents{namespace: a.in(t)})
		})
	}
}

// meshPartition cuts the server off from the load. What commands the server still executes, a client sees that is not cut
// off.
func meshPartition(n *namespace, a *agents) {
	const lasts = 6 * time.Second
	seen := n.follow()
	n.create(faultOn("base", "partition", v1alpha1.FaultNetworkPartition, func(s *v1alpha1.RedisFaultSpec) {
		s.Engine, s.Duration = v1alpha1.EngineChaosMesh, span(lasts)
		s.Action.NetworkPartition = &v1alpha1.NetworkPartition{
			Peers:     []v1alpha1.NetworkPeer{v1alpha1.PeerClients},
			Direction: v1alpha1.DirectionBoth,
		}
	}))
	rules := ""
	n.eventually(patience, "the kernel has dropped packets", func() (bool, string) {
		rules = a.rules(n.redisPod(), "-x -n -v -L")
		return droppedBy(rules) > 0, rules
	})
	done := n.ends("partition", "meshPartition", map[string]string{"outage": "5.5s"})
	silent := longestSilence(seen())
	outage := done.Status.Impact.Outage
	n.Logf("the server executed nothing of the load for %s; reported is an outage of %s (%s to %s); rules:\n%s",
		silent, outage.Value.Duration, outage.AtLeast.Duration, outage.AtMost.Duration, rules)
	// A request may be under way when the cut begins, and when it ends; the client looks every 20 ms or so.
	if late := silent - outage.Value.Duration; late.Abs() > 500*time.Millisecond {
		n.Errorf("an outage of %s is reported, and the server executed nothing for %s", outage.Value.Duration, silent)
	}
	// It leaves chains with rules, through which nothing passes any more.
	if left := a.rules(n.redisPod(), "-S"); strings.Contains(left, "-A CHAOS-") {
		n.Errorf("left are %s", left)
	}
}

// meshClock sets the server's clock back. A client sees it by TIME.
func meshClock(n *namespace, _ *agents) {
	const lasts, offset = 6 * time.Second, -5 * time.Minute
	seen := n.follow()
	n.create(faultOn("base", "clock", v1alpha1.FaultClockSkew, func(s *v1alpha1.RedisFaultSpec) {
		s.Engine, s.Duration = v1alpha1.EngineChaosMesh, span(lasts)
		s.Action.ClockSkew = &v1alpha1.ClockSkew{Offset: *span(offset)}
	}))
	done := n.ends("clock", "meshClockSkew", nil)
	var shifted, right int
	var from, to time.Time
	for _, s := range seen() {
		switch {
		case (s.clock - offset).Abs() <= time.Second:
			if shifted++; from.IsZero() {
				from = s.at
			}
			to = s.at
		case s.clock.Abs() <= time.Second:
			right++
		default:
			n.Errorf("the clock was off by %s", s.clock)
		}
	}
	n.Logf("TIME was off by %s in %d of %d answers, for %s", offset, shifted, shifted+right, to.Sub(from))
	if shifted == 0 || to.Sub(from) < lasts-time.Second {
		n.Errorf("the clock was off for %s", to.Sub(from))
	}
	if to.After(done.Status.Targets[0].RevertedAt.Time) {
		n.Errorf("the clock was off until %s, and %s is reported as its revert", to, done.Status.Targets[0].RevertedAt.Time)
	}
}

// meshStress burdens the container of the server. Its processes say how much CPU they have used.
func meshStress(n *namespace, a *agents) {
	const lasts, workers = 10 * time.Second, 4
	seen := n.follow()
	began := time.Now()
	n.create(faultOn("base", "stress", v1alpha1.FaultCPUStress, func(s *v1alpha1.RedisFaultSpec) {
		s.Engine, s.Duration = v1alpha1.EngineChaosMesh, span(lasts)
		s.Action.CPUStress = &v1alpha1.CPUStress{Workers: workers, Load: 100}
	}))
	var processes int
	var used time.Duration
	n.eventually(patience, "the workers compute", func() (bool, string) {
		processes, used = a.stress(n.redisPod())
		return processes > workers && used > time.Second, fmt.Sprintf("%d processes, %s of CPU", processes, used)
	})
	done := n.ends("stress", "meshCPUStress", nil)
	var before, during []time.Duration
	for _, s := range seen() {
		switch {
		case s.at.Before(began):
			before = append(before, s.trip)
		case s.at.After(began.Add(2*time.Second)) && s.at.Before(done.Status.Targets[0].RevertedAt.Time):
			during = append(during, s.trip)
		}
	}
	n.Logf("%d processes used %s of CPU; round trips before %s, during %s", processes, used, spread(before), spread(during))
	if left, _ := a.stress(n.redisPod()); left > 0 {
		n.Errorf("%d processes are left", left)
	}
}

// meshAgentIsReplaced kills the agent while it has set a clock back. The next agent does not know of that, so Chaos Mesh
// reverts nothing for ever: the fault says so, and its commands put things right.
func meshAgentIsReplaced(n *namespace, a *agents) {
	const offset = -5 * time.Minute
	n.create(faultOn("base", "orphan", v1alpha1.FaultClockSkew, func(s *v1alpha1.RedisFaultSpec) {
		s.Engine, s.Duration = v1alpha1.EngineChaosMesh, span(20*time.Second)
		s.Action.ClockSkew = &v1alpha1.ClockSkew{Offset: *span(offset)}
	}))
	n.waitFault("orphan", patience, v1alpha1.ReasonActive)
	a.replace(n.redisPod().Spec.NodeName)
	message := n.revertIsDelayed("orphan")
	n.Logf("with another agent: %s", message)
	if !strings.Contains(message, "Recover failed: ") {
		n.Errorf("it does not say why: %s", message)
	}
	if off := n.clockOff(); (off - offset).Abs() > time.Second {
		n.Errorf("TIME is off by %s: somebody has reverted that", off)
	}
	n.revertManually(message)
	n.replacePod()
	done := n.waitFault("orphan", 3*time.Minute, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	_, why, _, _ := completeReason(done.Status.Conditions)
	off := n.clockOff()
	n.Logf("it ends as %q; then TIME is off by %s", why, off)
	if off.Abs() > time.Second || len(n.chaos()) > 0 {
		n.Errorf("TIME is off by %s; left are %v", off, n.chaos())
	}
}

// ends waits for the end of a fault that is created, and checks it as breaks does.
func (n *namespace) ends(name, scenario string, least map[string]string) *v1alpha1.RedisFault {
	n.Helper()
	done := n.waitFault(name, 8*time.Minute, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	n.isReverted(done)
	n.isDescribed(done)
	n.impactFigures(scenario, done.Status.Impact, least)
	if left := n.chaos(); len(left) > 0 {
		n.Errorf("left are %v", left)
	}
	return done
}

func loses(s *v1alpha1.RedisFaultSpec) {
	s.Engine, s.Action.NetworkLoss = v1alpha1.EngineChaosMesh, &v1alpha1.NetworkLoss{
		Loss: "10%", Direction: v1alpha1.DirectionOut,
	}
	s.Duration = span(5 * time.Second)
}

// netemIsMissing checks that a fault which the node's kernel does not support says so in Chaos Mesh's words, and that its
// commands remove what Chaos Mesh cannot. Only the agent's log says what the kernel lacks.
func (n *namespace) netemIsMissing(
	a *agents, name string, kind v1alpha1.FaultType, edit func(*v1alpha1.RedisFaultSpec),
) {
	const says = "unable to set tcs for pod"
	began := time.Now()
	n.create(faultOn("base", name, kind, edit))
	message := n.revertIsDelayed(name)
	n.Logf("without netem: %s", message)
	n.revertManually(message)
	done := n.waitFault(name, 3*time.Minute, v1alpha1.ReasonInjectionFailed)
	_, why, _, _ := completeReason(done.Status.Conditions)
	n.Logf("it ends as %s", why)
	if !strings.Contains(message, says) || !strings.Contains(why, says) || done.Status.Effect == v1alpha1.EffectConfirmed {
		n.Errorf("effect %s: %s; revert: %s", done.Status.Effect, why, message)
	}
	if log := a.wrote(n.redisPod().Spec.NodeName, began); !strings.Contains(log, "Specified qdisc kind is unknown") {
		n.Errorf("the agent gives another reason: %s", log)
	}
	n.replacePod()
}

// replacePod deletes the pod of the server, which the manual commands end with, and waits for another one.
func (n *namespace) replacePod() {
	n.Helper()
	pod := n.redisPod()
	n.delete(pod)
	n.eventually(deployTime, "the pod is replaced", func() (bool, string) {
		now := &corev1.Pod{}
		return n.get(pod.Name, now) && now.UID != pod.UID && isReady(now), string(now.UID)
	})
}
