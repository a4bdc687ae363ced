package object

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	cmv1 "github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Hit is the target of a child, with the parameters that are not in the spec.
type Hit struct {
	Namespace, Pod, Container string
	Grace                     time.Duration // PodKill: the grace period; whole seconds
	VolumePath                string        // DiskDelay: where the volume is mounted
	Peers                     *Peers        // of a network fault; nil = everybody
	// after which Chaos Mesh ends it by itself; not of PodKill, which is over at once
	Lasts time.Duration
}

// Peers are the pods at the other end of a network fault: those of the names, or the running ones
// of the labels.
type Peers struct {
	Pods   []string
	Labels map[string]string
}

// Child is the object that breaks one pod, without its metadata. The member that spec.action.type
// names must be set where the API asks for it; nil for types that Chaos Mesh does not have.
func Child(spec *v1alpha1.RedisFaultSpec, hit Hit) Object {
	switch spec.Action.Type {
	case v1alpha1.FaultPodKill:
		return &cmv1.PodChaos{Spec: cmv1.PodChaosSpec{
			ContainerSelector: cmv1.ContainerSelector{PodSelector: byName(hit.Namespace, hit.Pod)},
			Action:            cmv1.PodKillAction,
			GracePeriod:       int64(hit.Grace / time.Second),
		}}
	case v1alpha1.FaultNetworkDelay, v1alpha1.FaultNetworkLoss, v1alpha1.FaultNetworkPartition:
		return networkChaos(&spec.Action, hit)
	case v1alpha1.FaultDiskDelay:
		return ioChaos(spec.Action.DiskDelay, hit)
	case v1alpha1.FaultCPUStress:
		return stressChaos(spec.Action.CPUStress, hit)
	case v1alpha1.FaultClockSkew:
		return &cmv1.TimeChaos{Spec: cmv1.TimeChaosSpec{
			ContainerSelector: inContainer(hit),
			Duration:          new(hit.Lasts.String()),
			TimeOffset:        spec.Action.ClockSkew.Offset.Duration.String(),
			ClockIds:          []string{"CLOCK_REALTIME"},
		}}
	}
	return nil
}

func networkChaos(action *v1alpha1.Action, hit Hit) *cmv1.NetworkChaos {
	child := &cmv1.NetworkChaos{Spec: cmv1.NetworkChaosSpec{
		PodSelector: byName(hit.Namespace, hit.Pod),
		Duration:    new(hit.Lasts.String()),
		Target:      others(hit),
	}}
	var direction v1alpha1.NetworkDirection
	switch action.Type {
	case v1alpha1.FaultNetworkDelay:
		d := action.NetworkDelay
		// Chaos Mesh's controller fails by a delay without a jitter or a correlation, and for ever: it
		// counts on its webhook to fill them in.
		delay := &cmv1.DelaySpec{
			Latency:     micros(d.Latency.Duration),
			Jitter:      micros(0),
			Correlation: number(d.Correlation),
		}
		if d.Jitter != nil {
			delay.Jitter = micros(d.Jitter.Duration)
		}
		child.Spec.Action, child.Spec.Delay, direction = cmv1.DelayAction, delay, d.Direction
	case v1alpha1.FaultNetworkLoss:
		l := action.NetworkLoss
		child.Spec.Action, direction = cmv1.LossAction, l.Direction
		child.Spec.Loss = &cmv1.LossSpec{Loss: number(l.Loss), Correlation: number(l.Correlation)}
	case v1alpha1.FaultNetworkPartition:
		child.Spec.Action, direction = cmv1.PartitionAction, action.NetworkPartition.Direction
	}
	child.Spec.Direction = directions[direction]
	return child
}

// directions are Chaos Mesh's names, from the perspective of the pod as well.
var directions = map[v1alpha1.NetworkDirection]cmv1.Direction{
	v1alpha1.DirectionIn:   cmv1.From,
	v1alpha1.DirectionOut:  cmv1.To,
	v1alpha1.DirectionBoth: cmv1.Both,
}

func ioChaos(d *v1alpha1.DiskDelay, hit Hit) *cmv1.IOChaos {
	var methods []cmv1.IoMethod
	for _, m := range d.Methods {
		methods = append(methods, cmv1.IoMethod(strings.ToLower(string(m))))
	}
	return &cmv1.IOChaos{Spec: cmv1.IOChaosSpec{
		ContainerSelector: inContainer(hit),
		Duration:          new(hit.Lasts.String()),
		Action:            cmv1.IoLatency,
		Delay:             micros(d.Delay.Duration),
		VolumePath:        hit.VolumePath,
		Path:              d.Path,
		Percent:           int(d.Percent),
		Methods:           methods,
	}}
}

func stressChaos(s *v1alpha1.CPUStress, hit Hit) *cmv1.StressChaos {
	workers, load := 1, 100
	if s != nil {
		workers, load = int(s.Workers), int(s.Load)
	}
	return &cmv1.StressChaos{Spec: cmv1.StressChaosSpec{
		ContainerSelector: inContainer(hit),
		Duration:          new(hit.Lasts.String()),
		Stressors: &cmv1.Stressors{
			CPUStressor: &cmv1.CPUStressor{Stressor: cmv1.Stressor{Workers: workers}, Load: &load},
		},
	}}
}

func inContainer(hit Hit) cmv1.ContainerSelector {
	return cmv1.ContainerSelector{
		PodSelector:    byName(hit.Namespace, hit.Pod),
		ContainerNames: []string{hit.Container},
	}
}

// others selects the other end of a network fault; nil = everybody.
func others(hit Hit) *cmv1.PodSelector {
	switch {
	case hit.Peers == nil:
		return nil
	case len(hit.Peers.Labels) == 0:
		return new(byName(hit.Namespace, hit.Peers.Pods...))
	}
	return &cmv1.PodSelector{Mode: cmv1.AllMode, Selector: cmv1.PodSelectorSpec{
		GenericSelectorSpec: cmv1.GenericSelectorSpec{
			Namespaces:     []string{hit.Namespace},
			LabelSelectors: hit.Peers.Labels,
		},
		// A pod that has ended keeps its address in its status, though another may have it by now.
		PodPhaseSelectors: []string{string(corev1.PodRunning)},
	}}
}

// byName selects pods by name: a pod that Chaos Mesh chose by labels might have another role by
// then.
func byName(namespace string, pods ...string) cmv1.PodSelector {
	return cmv1.PodSelector{Mode: cmv1.AllMode, Selector: cmv1.PodSelectorSpec{
		GenericSelectorSpec: cmv1.GenericSelectorSpec{Namespaces: []string{namespace}},
		Pods:                map[string][]string{namespace: pods},
	}}
}

// micros writes a duration with one unit: Chaos Mesh takes no 1m30s.
func micros(d time.Duration) string {
	return strconv.FormatInt(d.Microseconds(), 10) + "us"
}

// number writes a percentage as Chaos Mesh does, none as 0.
func number(p v1alpha1.Percentage) string {
	return strings.TrimSuffix(cmp.Or(string(p), "0%"), "%")
}
