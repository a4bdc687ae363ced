// Package object writes the objects of Chaos Mesh and reads their status. It is pure: it holds no client, and none of Chaos Mesh's Go types
// (docs/decisions/0011-chaos-mesh-unstructured.md). hack/chaosmesh/types holds it to them.
package object

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Group and version of all kinds.
var groupVersion = schema.GroupVersion{Group: "chaos-mesh.org", Version: "v1alpha1"}

// Hit is what a child breaks, with all that was found out about it.
type Hit struct {
	Namespace, Pod, Container string
	Grace                     time.Duration // PodKill: what the pod is given; whole seconds
	VolumePath                string        // DiskDelay: where the volume is mounted
	Peers                     *Peers        // of a network fault; nil = everybody
	Lasts                     time.Duration // after which Chaos Mesh ends it by itself; not of PodKill, which is over at once
}

// Peers are the pods at the other end of a network fault: those of the names, or the running ones of the labels.
type Peers struct {
	Pods   []string
	Labels map[string]string
}

// objects are the kinds of objects that break each type of fault.
var objects = map[v1alpha1.FaultType]string{
	v1alpha1.FaultPodKill:          "PodChaos",
	v1alpha1.FaultNetworkDelay:     "NetworkChaos",
	v1alpha1.FaultNetworkLoss:      "NetworkChaos",
	v1alpha1.FaultNetworkPartition: "NetworkChaos",
	v1alpha1.FaultDiskDelay:        "IOChaos",
	v1alpha1.FaultCPUStress:        "StressChaos",
	v1alpha1.FaultClockSkew:        "TimeChaos",
}

// Types are the types of faults that Chaos Mesh knows.
func Types() []v1alpha1.FaultType { return slices.Collect(maps.Keys(objects)) }

// Kind is the kind of object that breaks a type of fault; ok is false for types that Chaos Mesh does not know.
func Kind(fault v1alpha1.FaultType) (kind schema.GroupVersionKind, ok bool) {
	name, ok := objects[fault]
	return groupVersion.WithKind(name), ok
}

// Resource is a kind's name in kubectl.
func Resource(kind schema.GroupVersionKind) string {
	return strings.ToLower(kind.Kind) + "." + kind.Group
}

// Child is the object that breaks one pod, without its metadata. The member that spec.action.type names must be set where the API asks for it.
func Child(spec *v1alpha1.RedisFaultSpec, hit Hit) *unstructured.Unstructured {
	kind, _ := Kind(spec.Action.Type)
	content := map[string]any{"selector": byName(hit.Namespace, hit.Pod), "mode": "all"}
	if spec.Action.Type != v1alpha1.FaultPodKill {
		content["duration"] = hit.Lasts.String()
	}
	switch spec.Action.Type {
	case v1alpha1.FaultPodKill:
		content["action"], content["gracePeriod"] = "pod-kill", int64(hit.Grace/time.Second)
	case v1alpha1.FaultNetworkDelay:
		delay := map[string]any{"latency": micros(spec.Action.NetworkDelay.Latency.Duration)}
		if j := spec.Action.NetworkDelay.Jitter; j != nil {
			delay["jitter"] = micros(j.Duration)
		}
		correlate(delay, spec.Action.NetworkDelay.Correlation)
		content["action"], content["delay"] = "delay", delay
		between(content, spec.Action.NetworkDelay.Direction, hit)
	case v1alpha1.FaultNetworkLoss:
		loss := map[string]any{"loss": number(spec.Action.NetworkLoss.Loss)}
		correlate(loss, spec.Action.NetworkLoss.Correlation)
		content["action"], content["loss"] = "loss", loss
		between(content, spec.Action.NetworkLoss.Direction, hit)
	case v1alpha1.FaultNetworkPartition:
		content["action"] = "partition"
		between(content, spec.Action.NetworkPartition.Direction, hit)
	case v1alpha1.FaultDiskDelay:
		d := spec.Action.DiskDelay
		content["action"], content["delay"], content["volumePath"], content["percent"] = "latency", micros(d.Delay.Duration), hit.VolumePath, int64(d.Percent)
		if d.Path != "" {
			content["path"] = d.Path
		}
		var methods []any
		for _, m := range d.Methods {
			methods = append(methods, strings.ToLower(string(m)))
		}
		content["methods"], content["containerNames"] = methods, []any{hit.Container}
	case v1alpha1.FaultCPUStress:
		workers, load := int64(1), int64(100)
		if s := spec.Action.CPUStress; s != nil {
			workers, load = int64(s.Workers), int64(s.Load)
		}
		content["stressors"] = map[string]any{"cpu": map[string]any{"workers": workers, "load": load}}
		content["containerNames"] = []any{hit.Container}
	case v1alpha1.FaultClockSkew:
		content["timeOffset"], content["clockIds"] = spec.Action.ClockSkew.Offset.Duration.String(), []any{"CLOCK_REALTIME"}
		content["containerNames"] = []any{hit.Container}
	}
	child := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	child.SetGroupVersionKind(kind)
	return child
}

// byName selects pods by name: what Chaos Mesh would choose by labels may have another role by then.
func byName(namespace string, pods ...string) map[string]any {
	names := make([]any, len(pods))
	for i, pod := range pods {
		names[i] = pod
	}
	return map[string]any{"namespaces": []any{namespace}, "pods": map[string]any{namespace: names}}
}

// between sets the other end of a network fault.
func between(content map[string]any, direction v1alpha1.NetworkDirection, hit Hit) {
	content["direction"] = strings.ToLower(string(direction))
	if hit.Peers == nil {
		return
	}
	selector := byName(hit.Namespace, hit.Peers.Pods...)
	if len(hit.Peers.Labels) > 0 {
		labels := map[string]any{}
		for key, value := range hit.Peers.Labels {
			labels[key] = value
		}
		// A pod that has ended keeps its address in its status, though another may have it by now.
		selector = map[string]any{"namespaces": []any{hit.Namespace}, "labelSelectors": labels, "podPhaseSelectors": []any{"Running"}}
	}
	content["target"] = map[string]any{"selector": selector, "mode": "all"}
}

func correlate(parameter map[string]any, correlation v1alpha1.Percentage) {
	if correlation != "" {
		parameter["correlation"] = number(correlation)
	}
}

// micros writes a duration with one unit: Chaos Mesh takes no 1m30s.
func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) + "us" }

func number(p v1alpha1.Percentage) string { return strings.TrimSuffix(string(p), "%") }
