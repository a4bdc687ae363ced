//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/testing/await"
)

// powerHookAddress is where the operator looks for a power hook: in the lab's network, but in no pod.
const powerHookAddress = "198.18.0.1:7447"

// TestNodePower switches a node of the lab off, and on again, with the fault of config/samples/nodeloss-power.yaml: the
// hook is a server beside the lab, the outage is measured by a client of this test as well.
func TestNodePower(t *testing.T) {
	if !onLab() {
		t.Log("only the lab's machines can be switched off here")
		return
	}
	n := newNamespace(t, "nodepower")
	bothNodes.Lock()
	defer bothNodes.Unlock()
	lost, stays := n.nodesWithoutAndWithOperator()
	hook := n.startPowerHook()
	n.applyRedis(func(object *unstructured.Unstructured) {
		if object.GetKind() == "StatefulSet" {
			n.onNode(object, lost)
		}
	})
	before := n.redisPod()
	load := n.sampleLoad("checkout-cache", 0, 0, 15*time.Minute)
	load.Spec.Load.RampUp, load.Spec.Load.WarmUp, load.Spec.Load.Rate, load.Spec.Pods.Count = nil, nil, new(int32(200)), 1
	load.Spec.Pods.NodeSelector = map[string]string{corev1.LabelHostname: stays}
	n.create(load)
	n.waitLoadTest(load.Name, patience, v1alpha1.ReasonRunning)
	watched := n.startWatcher(n.redisAddress())

	fault := &v1alpha1.RedisFault{}
	n.sample("nodeloss-power.yaml", fault)
	fault.Spec.Action.NodeLoss.Node = lost
	fault.Spec.Trigger.SteadyFor, fault.Spec.Duration = span(5*time.Second), span(10*time.Second)
	fault.Spec.Trigger.Timeout = *span(patience)
	n.rehearses(fault, hook)
	n.create(fault)
	n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonActive)
	if value := n.node(lost).Annotations[v1alpha1.AnnotationPowerPrefix+string(n.fault(fault.Name).UID)]; value != n.name+"/"+fault.Name {
		t.Errorf("node %s is marked with %q", lost, value)
	}
	done := n.waitFault(fault.Name, 4*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)

	n.checkTimeline(done, "Injected", "NodeNotReady", "Active", "NodeReady", "Reverted", "ContainerRestarted", "FirstError",
		"FirstSuccess")
	if done.Status.Effect != v1alpha1.EffectConfirmed || !strings.Contains(done.Status.EffectEvidence, "is not ready") {
		t.Errorf("effect %s: %s", done.Status.Effect, done.Status.EffectEvidence)
	}
	n.checkNothingLeft(done, lost)
	if after := n.podReady("redis-0", patience); after.UID != before.UID || after.Spec.NodeName != lost {
		t.Errorf("pod redis-0 was replaced by %s on %s: nothing deletes it", after.UID, after.Spec.NodeName)
	}
	n.impactFigures("nodePower", done.Status.Impact, map[string]string{"outage": "10s"})
	from, length := longestGap(watched.stop(), done.Status.InjectedAt.Time)
	t.Logf("the client outside: no success for %s from %s after the injection", length.Round(time.Millisecond),
		from.Sub(done.Status.InjectedAt.Time).Round(time.Millisecond))
	n.figure("nodePower", "watched", length.Round(time.Millisecond).String())
	if measured := done.Status.Impact.Outage.Value.Duration; (measured - length).Abs() > length/5 {
		t.Errorf("the outage was %s, and %s for the client outside", measured, length)
	}
	if got := hook.powers(); !slices.Equal(slices.Compact(got), []string{"Off " + lost, "On " + lost}) {
		t.Errorf("the hook was asked for %v", got)
	}
}

// TestNodePowerWithoutOperator kills the operator while a node is off: the next one switches it on.
func TestNodePowerWithoutOperator(t *testing.T) {
	if !onLab() {
		t.Log("only the lab's machines can be switched off here")
		return
	}
	n := newNamespace(t, "nodepower")
	bothNodes.Lock()
	defer bothNodes.Unlock()
	lost, stays := n.nodesWithoutAndWithOperator()
	hook := n.startPowerHook()
	n.applyRedis(func(object *unstructured.Unstructured) {
		if object.GetKind() == "StatefulSet" {
			n.onNode(object, lost)
		}
	})
	load := n.smallLoad("checkout-cache", 15*time.Minute)
	load.Spec.Pods.NodeSelector = map[string]string{corev1.LabelHostname: stays}
	n.create(load)
	fault := &v1alpha1.RedisFault{}
	n.sample("nodeloss-power.yaml", fault)
	fault.Spec.Action.NodeLoss.Node = lost
	fault.Spec.Trigger, fault.Spec.Duration = v1alpha1.FaultTrigger{After: span(0)}, span(time.Second)
	n.create(fault)
	n.eventually(2*patience, "the node is off", func() (bool, string) {
		got := hook.powers()
		return len(got) > 0, fmt.Sprint(got)
	})
	n.operatorAway()
	n.eventually(patience, "the cluster notices", func() (bool, string) {
		ready := nodeReady(n.node(lost))
		return !ready, fmt.Sprint(ready)
	})
	n.operatorBack()
	done := n.waitFault(fault.Name, 4*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered, v1alpha1.ReasonInconclusive)
	n.checkNothingLeft(done, lost)
	if got := hook.powers(); got[len(got)-1] != "On "+lost {
		t.Errorf("the hook was asked for %v", got)
	}
}

// nodesWithoutAndWithOperator are the node that can be lost, once no load pods of an earlier scenario are on it, and the
// one of the operator.
func (n *namespace) nodesWithoutAndWithOperator() (lost, stays string) {
	n.Helper()
	pod, err := operatorPod(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	var nodes corev1.NodeList
	n.list(&nodes)
	for _, node := range nodes.Items {
		if node.Name != pod.Spec.NodeName {
			lost = node.Name
		}
	}
	if lost == "" {
		n.Fatal("there is no node without the operator")
	}
	n.eventually(deployTime, "no load pod is on node "+lost, func() (bool, string) {
		var pods corev1.PodList
		if err := cluster.List(n.Context(), &pods, client.HasLabels{v1alpha1.LabelLoadTest},
			client.MatchingFields{"spec.nodeName": lost}); err != nil {
			return false, err.Error()
		}
		var names []string
		for i := range pods.Items {
			names = append(names, pods.Items[i].Namespace+"/"+pods.Items[i].Name)
		}
		return len(names) == 0, strings.Join(names, ", ")
	})
	return lost, pod.Spec.NodeName
}

// onNode keeps the pods of a StatefulSet on a node.
func (n *namespace) onNode(set *unstructured.Unstructured, node string) {
	n.Helper()
	var tolerations []any // as most clusters add: the lab's pods are deleted sooner
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerations = append(tolerations, map[string]any{
			"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300),
		})
	}
	pod := []string{"spec", "template", "spec"}
	if err := errors.Join(
		unstructured.SetNestedField(set.Object, node, append(pod, "nodeSelector", corev1.LabelHostname)...),
		unstructured.SetNestedSlice(set.Object, tolerations, append(pod, "tolerations")...),
	); err != nil {
		n.Fatal(err)
	}
}

// rehearses has the fault planned, which asks the hook for nothing.
func (n *namespace) rehearses(fault *v1alpha1.RedisFault, hook *labHook) {
	n.Helper()
	fault = fault.DeepCopy()
	fault.Name, fault.Spec.DryRun = "rehearsed", true
	n.create(fault)
	done := n.waitFault(fault.Name, patience, v1alpha1.ReasonDryRun)
	for _, step := range done.Status.Plan.Steps {
		n.Logf("plan: %s; revert: %s; %s", step.Action, step.Revert, step.SelfEnding)
	}
	n.Logf("warnings: %q", done.Status.Warnings)
	if got := hook.powers(); len(got) > 0 {
		n.Errorf("the hook was asked for %v", got)
	}
}

// labHook is a power hook for the nodes of the lab.
type labHook struct {
	mu    sync.Mutex
	asked []string
	work  chan powerhook.Request
}

// powers are what was asked for so far.
func (h *labHook) powers() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// startPowerHook serves a hook until the end of the test, with which all nodes are on.
func (n *namespace) startPowerHook() *labHook {
	n.Helper()
	h := &labHook{work: make(chan powerhook.Request, 1000)}
	listener, err := net.Listen("tcp", powerHookAddress)
	if err != nil {
		n.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked powerhook.Request
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		h.asked = append(h.asked, string(asked.Power)+" "+asked.Node)
		h.mu.Unlock()
		h.work <- asked
		w.WriteHeader(http.StatusAccepted)
	}), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		off := map[string]bool{}
		for asked := range h.work { // in order
			if wanted := asked.Power == powerhook.Off; off[asked.Node] != wanted {
				off[asked.Node] = wanted
				n.switchPower(asked.Node, asked.Power)
			}
		}
		for node := range off { // whatever became of the test
			if off[node] {
				n.switchPower(node, powerhook.On)
			}
		}
	}()
	n.Cleanup(func() {
		_ = server.Close()
		close(h.work)
		<-done
		n.nodesReady()
	})
	return h
}

func (n *namespace) switchPower(node string, power powerhook.Power) {
	verb := "start"
	if power == powerhook.Off {
		verb = "crash"
	}
	if out, err := exec.CommandContext(context.Background(), labProgram, "node", verb, node).CombinedOutput(); err != nil {
		n.Errorf("lab node %s %s: %v\n%s", verb, node, err, out)
	}
}

// nodesReady waits until all nodes are: other tests need them.
func (n *namespace) nodesReady() {
	ctx := context.Background()
	err := await.Try(ctx, patience, func() error {
		var nodes corev1.NodeList
		err := cluster.List(ctx, &nodes)
		for i := range nodes.Items {
			if !nodeReady(&nodes.Items[i]) {
				err = fmt.Errorf("node %s is not ready", nodes.Items[i].Name)
			}
		}
		return err
	})
	if err != nil {
		n.Error(err)
	}
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
