//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// movable are the settings of the replication: a failover changes them permanently.
var movable = []string{"replicaof", "slaveof", "cluster-announce-ip"}

// stateOf is all that a fault may change of a deployment, from the servers and the API server: every setting of every
// server, its container's resources, the StatefulSet, the taints of this namespace's faults, and the objects that the
// operator has created for faults.
func (n *namespace) stateOf(app string) (map[string]string, error) {
	state := map[string]string{}
	var pods corev1.PodList
	var set appsv1.StatefulSet
	if err := cluster.List(n.Context(), &pods, client.InNamespace(n.name), client.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		c := at(pod)
		settings, err := c.ConfigGet(n.Context(), "*").Result()
		_ = c.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pod.Name, err)
		}
		for name, value := range settings {
			if !slices.Contains(movable, name) {
				state[pod.Name+": "+name] = value
			}
		}
		state[pod.Name+": containers"] = text(pod.Spec.Containers[0].Resources)
		for _, c := range pod.Status.ContainerStatuses {
			state[pod.Name+": in force"] = text(c.Resources)
			state[pod.Name+": ready"] = fmt.Sprint(c.Ready && pod.DeletionTimestamp == nil)
		}
	}
	if err := cluster.Get(n.Context(), n.key(app), &set); err != nil {
		return nil, err
	}
	state["StatefulSet"] = text(set.Spec)
	taints, err := n.taints()
	if err != nil {
		return nil, err
	}
	state["taints"] = strings.Join(taints, ", ")
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
		if err := cluster.List(n.Context(), list, client.InNamespace(n.name), client.HasLabels{
			v1alpha1.LabelFault,
		}); err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			state["left over"] += fmt.Sprintf("%T %s; ", o, o.(client.Object).GetName())
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// taints are the nodes that faults of this namespace keep closed; other tests may have closed theirs.
func (n *namespace) taints() ([]string, error) {
	var nodes corev1.NodeList
	if err := cluster.List(n.Context(), &nodes); err != nil {
		return nil, err
	}
	var closed []string
	for _, node := range nodes.Items {
		for key, by := range node.Annotations {
			if strings.HasPrefix(key, v1alpha1.AnnotationTaintPrefix) && strings.HasPrefix(by, n.name+"/") {
				closed = append(closed, node.Name+" by "+by)
			}
		}
	}
	return closed, nil
}

func text(object any) string {
	out, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// currentState is the same for a deployment, once it is ready.
func (n *namespace) currentState(app string) map[string]string {
	n.Helper()
	var state map[string]string
	// a single late readiness probe must not be part of the state
	n.eventually(patience, "everything is ready", func() (bool, string) {
		var err error
		if state, err = n.stateOf(app); err != nil {
			return false, err.Error()
		}
		for what, value := range state {
			if strings.HasSuffix(what, ": ready") && value != "true" {
				return false, what + " is " + value
			}
		}
		return true, ""
	})
	if state["left over"] != "" {
		n.Fatalf("before the fault there is %s", state["left over"])
	}
	return state
}

// waitForState waits until a deployment has its earlier state again. A server that has just been replaced needs a
// moment.
func (n *namespace) waitForState(app string, before map[string]string) {
	n.Helper()
	n.eventually(deployTime, "everything is as it was before the fault", func() (bool, string) {
		now, err := n.stateOf(app)
		if err != nil {
			return false, err.Error()
		}
		return maps.Equal(before, now), gocmp.Diff(before, now)
	})
}

// breaks runs a fault on a load to its end, and checks what every kind guarantees: the effect is confirmed with
// evidence, the fault is reverted, and there are figures.
func (n *namespace) breaks(
	scenario, app string, fault *v1alpha1.RedisFault, least map[string]string,
) *v1alpha1.RedisFault {
	n.Helper()
	before := n.currentState(app)
	n.create(fault)
	// Whether the throughput then holds for 10 s depends on the machine, too; podKill checks it.
	done := n.waitFault(fault.Name, 8*time.Minute, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	n.isReverted(done)
	n.isDescribed(done)
	n.waitForState(app, before)
	n.impactFigures(scenario, done.Status.Impact, least)
	return done
}

// isReverted checks the status of a fault that ended well.
func (n *namespace) isReverted(fault *v1alpha1.RedisFault) {
	n.Helper()
	status := &fault.Status
	for _, kind := range []string{
		v1alpha1.ConditionTargetsSelected, v1alpha1.ConditionInjected, v1alpha1.ConditionReverted, v1alpha1.ConditionComplete,
	} {
		if !meta.IsStatusConditionTrue(status.Conditions, kind) {
			n.Errorf("%s: condition %s is not True: %+v", fault.Name, kind, meta.FindStatusCondition(status.Conditions, kind))
		}
	}
	if status.Effect != v1alpha1.EffectConfirmed || status.EffectEvidence == "" {
		n.Errorf("%s: effect %s: %q; want Confirmed with evidence", fault.Name, status.Effect, status.EffectEvidence)
	}
	n.Logf("%s: %s", fault.Name, status.EffectEvidence)
	for _, t := range status.Targets {
		if t.RevertedAt == nil || t.RevertAbandoned || t.LastError != "" || t.RevertError != "" {
			n.Errorf("%s: target %+v is not reverted", fault.Name, t)
		}
	}
	n.checkTimeline(fault, "Injected")
}

// faultOn is a fault of a kind on a load, at once. edit sets what the kind needs.
func faultOn(load, name string, kind v1alpha1.FaultType, edit func(*v1alpha1.RedisFaultSpec)) *v1alpha1.RedisFault {
	fault := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisFaultSpec{
			LoadTestRef: &v1alpha1.LoadTestReference{Name: load}, Action: v1alpha1.Action{Type: kind},
			Select:           v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Mode: v1alpha1.SelectOne},
			Trigger:          v1alpha1.FaultTrigger{After: span(0)},
			RecoveryDeadline: *span(20 * time.Second),
		},
	}
	if edit != nil {
		edit(&fault.Spec)
	}
	return fault
}
