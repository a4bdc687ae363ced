//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// TestChaosMesh makes the real chaos-controller-manager kill the pod of a loaded Redis. Its agents, which would break
// network, disk, CPU and clock, do not run: a fault that needs one reports that and breaks nothing. The operator starts
// before Chaos Mesh is installed, and continues after it was removed. `make e2e-chaosmesh` runs it.
func TestChaosMesh(t *testing.T) {
	n := newNamespace(t, "chaosmesh")
	n.applyRedis(nil)
	n.create(n.steadyLoad("base", standaloneTarget(), 15*time.Minute))
	n.waitLoadTest("base", 2*time.Minute, v1alpha1.ReasonRunning)
	initial := n.currentState("redis")

	n.create(faultOn("base", "too-early", v1alpha1.FaultNetworkDelay, delays))
	early := n.waitFault("too-early", 2*time.Minute, v1alpha1.ReasonEngineUnavailable)
	if _, message, _, failed := completeReason(early.Status.Conditions); len(early.Status.Targets) > 0 ||
		early.Status.InjectedAt != nil {
		t.Errorf("without Chaos Mesh: failed %v: %s; %+v", failed, message, early.Status.Targets)
	}
	n.delete(early)
	n.waitFaultDeleted(early.Name)

	installChaosMesh(t)
	stop := meshtest.StartController(t, os.Getenv("KUBECONFIG"), n.name)

	fault := faultOn("base", "kill", v1alpha1.FaultPodKill, func(s *v1alpha1.RedisFaultSpec) {
		s.Engine, s.Action.PodKill = v1alpha1.EngineChaosMesh, &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		s.RecoveryDeadline = *span(time.Minute)
	})
	before := n.redisPod()
	done := n.breaks("meshPodKill", "redis", fault, nil)
	n.checkTimeline(done, "Injected", "PodDeleted", "ReplacementCreated", "ContainerStarted", "Ready", "FirstError",
		"FirstSuccess", "Recovered")
	if after := n.redisPod(); after.UID == before.UID {
		t.Error("the pod is the same")
	}
	if left := n.chaos(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}

	n.create(faultOn("base", "slow-network", v1alpha1.FaultNetworkDelay, delays))
	// Without its agent Chaos Mesh does not detect that it broke nothing, and keeps the object. The fault says so with the
	// manual command, and goes on.
	message := n.revertIsDelayed("slow-network")
	t.Logf("without an agent: %s", message)
	n.revertManually(message)
	slow := n.waitFault("slow-network", 3*time.Minute, v1alpha1.ReasonInjectionFailed) // it never took effect
	if !strings.Contains(message, "cannot find daemonIP") || slow.Status.Effect == v1alpha1.EffectConfirmed ||
		slow.Status.Targets[0].RevertAbandoned {
		t.Errorf("without an agent: effect %s: %s; %+v", slow.Status.Effect, message, slow.Status.Targets)
	}
	n.eventually(30*time.Second, "the manually released object is deleted", func() (bool, string) {
		left := n.chaos()
		return len(left) == 0, fmt.Sprint(left)
	})
	n.waitForState("redis", initial)

	stop()
	n.create(faultOn("base", "no-controller", v1alpha1.FaultNetworkDelay, delays))
	n.waitFault("no-controller", time.Minute, v1alpha1.ReasonInjecting)
	n.delete(n.fault("no-controller"))
	n.waitFaultDeleted("no-controller")
	n.waitForState("redis", initial)
}

// installChaosMesh installs its CRDs, until the test ends.
func installChaosMesh(t *testing.T) {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	crds, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths:              []string{filepath.Dir(meshtest.CRDs(t)[0])},
		ErrorIfPathMissing: true,
		MaxTime:            2 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds}); err != nil {
			t.Error(err)
		}
	})
}

func delays(s *v1alpha1.RedisFaultSpec) {
	s.Engine, s.Action.NetworkDelay = v1alpha1.EngineChaosMesh, &v1alpha1.NetworkDelay{
		Latency: *span(50 * time.Millisecond),
	}
	s.Duration = span(5 * time.Second)
}

// revertIsDelayed waits until the revert of a fault is delayed, and returns what the fault says of it.
func (n *namespace) revertIsDelayed(name string) (message string) {
	n.Helper()
	n.eventually(3*time.Minute, "the revert is delayed", func() (bool, string) {
		c := meta.FindStatusCondition(n.fault(name).Status.Conditions, v1alpha1.ConditionReverted)
		if c == nil {
			return false, "it has no condition Reverted"
		}
		message = c.Message
		return c.Reason == v1alpha1.ReasonRevertDelayed, c.Reason + ": " + c.Message
	})
	return message
}

// revertManually runs the commands that a condition shows, except for the last one, which deletes the pod.
func (n *namespace) revertManually(message string) {
	n.Helper()
	_, all, _ := strings.Cut(message, "To revert manually: ")
	command, _, _ := strings.Cut(all, ";")
	if !strings.HasPrefix(command, "kubectl -n "+n.name) {
		n.Fatalf("manual command: %q in %s", all, message)
	}
	if out, err := exec.CommandContext(n.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		n.Fatalf("%s: %v: %s", command, err, out)
	}
}

// chaos are the objects of Chaos Mesh that are left.
func (n *namespace) chaos() []string {
	n.Helper()
	var left []string
	for _, fault := range []v1alpha1.FaultType{
		v1alpha1.FaultPodKill, v1alpha1.FaultNetworkDelay, v1alpha1.FaultCPUStress, v1alpha1.FaultClockSkew,
	} {
		kind, _ := object.Kind(fault)
		children, err := meshtest.Children(n.Context(), cluster, kind, n.name)
		if err != nil {
			n.Fatal(err)
		}
		for _, object := range children {
			left = append(left, kind.Kind+" "+object.GetName())
		}
	}
	return left
}
