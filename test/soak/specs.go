package soak

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
)

// World is a Redis in a namespace of its own, and the types of faults that can act on it: one that is listed twice is
// drawn twice as often.
type World struct {
	Name    string
	App     string // label app of its servers, and name of their StatefulSet
	Servers int
	Target  v1alpha1.RedisTarget
	Types   []v1alpha1.FaultType
}

// Worlds are the Redis of a soak: few pods, and every way to lay out Redis.
var Worlds = []World{
	{
		Name: "single", App: "redis", Servers: 1,
		Target: v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}},
		Types: []v1alpha1.FaultType{
			v1alpha1.FaultConfig, v1alpha1.FaultConfig, v1alpha1.FaultClientPause, v1alpha1.FaultHang, v1alpha1.FaultClientKill,
			v1alpha1.FaultBackgroundSave, v1alpha1.FaultResources,
			v1alpha1.FaultPodKill, v1alpha1.FaultProcessCrash, v1alpha1.FaultNodeLoss, v1alpha1.FaultVolumeAttachDelay,
			v1alpha1.FaultDrain, v1alpha1.FaultPodTemplate,
			v1alpha1.FaultIOThreads, v1alpha1.FaultExternal,
		},
	},
	{
		Name: "pair", App: "pair", Servers: 2,
		Target: v1alpha1.RedisTarget{
			Topology: v1alpha1.TopologyReplication, Addresses: []string{"pair-0.pair:6379", "pair-1.pair:6379"},
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pair"}},
		},
		Types: []v1alpha1.FaultType{
			v1alpha1.FaultConfig, v1alpha1.FaultConfig, v1alpha1.FaultClientPause, v1alpha1.FaultHang, v1alpha1.FaultClientKill,
			v1alpha1.FaultBackgroundSave, v1alpha1.FaultResources,
			v1alpha1.FaultProcessCrash, v1alpha1.FaultReplicaScale, v1alpha1.FaultPodKill,
		},
	},
	{
		Name: "sentinel", App: "redis-ha", Servers: 3,
		Target: v1alpha1.RedisTarget{
			Topology: v1alpha1.TopologySentinel,
			Sentinel: &v1alpha1.SentinelTarget{
				Service:    &v1alpha1.SentinelService{Name: "redis-sentinel"},
				MasterName: "mymaster",
			},
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis-ha"}},
		},
		Types: []v1alpha1.FaultType{
			v1alpha1.FaultConfig, v1alpha1.FaultConfig, v1alpha1.FaultFailover, v1alpha1.FaultFailover,
			v1alpha1.FaultReplicaScale, v1alpha1.FaultResources, v1alpha1.FaultPodKill,
			v1alpha1.FaultClientPause, v1alpha1.FaultHang, v1alpha1.FaultProcessCrash, v1alpha1.FaultPodTemplate,
			v1alpha1.FaultIOThreads,
		},
	},
	{
		Name: "cluster", App: "redis-cluster", Servers: 3,
		Target: v1alpha1.RedisTarget{
			Topology: v1alpha1.TopologyCluster, Service: &v1alpha1.ServiceReference{Name: "redis-cluster"},
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis-cluster"}},
		},
		Types: []v1alpha1.FaultType{
			v1alpha1.FaultConfig, v1alpha1.FaultConfig, v1alpha1.FaultClientPause, v1alpha1.FaultHang, v1alpha1.FaultClientKill,
			v1alpha1.FaultResources, v1alpha1.FaultPodKill,
			v1alpha1.FaultBackgroundSave, v1alpha1.FaultProcessCrash,
		},
	},
}

// Marks by which an effect is seen from outside, and whose it is: each fault has a number of its own.
const (
	MarkParameter  = "slowlog-max-len" // of Config: markBase + number
	MarkAnnotation = "soak.redquake.dev/fault"
	markBase       = 1000
	markCPU        = 200 // of Resources: so many thousandths of a CPU + number
)

// maker makes objects. The names of all of a plan differ.
type maker struct {
	*dice
	count  int
	latest map[string]lately // by world
}

// lately is the last load test of a world.
type lately struct {
	name string
	ends time.Duration // about
}

func (m *maker) name(kind string) string {
	m.count++
	return fmt.Sprintf("%s-%d", kind, m.count)
}

func span(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d}
}

// loadSpec is a load of one small pod.
func (m *maker) loadSpec(w World, length time.Duration) v1alpha1.RedisLoadTestSpec {
	spec := v1alpha1.RedisLoadTestSpec{
		Target: *w.Target.DeepCopy(),
		Client: v1alpha1.LoadClient{Connections: 4, RequestTimeout: *span(time.Second)},
		Load:   v1alpha1.LoadShape{Rate: new(int32(20 + m.IntN(60))), Duration: span(length)},
		Workload: v1alpha1.Workload{
			Commands: []v1alpha1.WorkloadCommand{
				{Name: "set", Weight: 1, Command: []string{"SET", "{key}", "{value}"}},
				{Name: "get", Weight: 3, Command: []string{"GET", "{key}"}},
			},
			Keyspace: v1alpha1.Keyspace{Prefix: "soak:", Keys: 100},
			Values:   v1alpha1.ValueSizes{Bytes: new(int32(32))},
		},
		Pods: v1alpha1.LoadPods{
			Count:         1,
			StartDeadline: *span(90 * time.Second),
			LoadPodTemplate: v1alpha1.LoadPodTemplate{Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("20m"),
					corev1.ResourceMemory: resource.MustParse("32Mi"),
				},
				Limits: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("200m"),
					corev1.ResourceMemory: resource.MustParse("128Mi"),
				},
			}},
		},
	}
	if m.percent(30) { // a closed loop
		spec.Load.Rate, spec.Load.Users, spec.Load.ThinkTime = nil, new(int32(2)), span(50*time.Millisecond)
	}
	return spec
}

func (m *maker) loadTest(w World, at time.Duration) Event {
	length := m.within(20*time.Second, 70*time.Second)
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: m.name("load")}, Spec: m.loadSpec(w, length)}
	test.Spec.Load.WarmUp, test.Spec.Load.UntilFaultsSettle = span(2*time.Second), span(time.Minute)
	if m.percent(25) {
		test.Spec.Pods.Count = 2
	}
	if m.percent(40) {
		test.Spec.Pods.Lost = v1alpha1.LostPodContinue
	}
	if m.percent(25) && test.Spec.Load.Rate != nil {
		test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true}
	}
	if m.percent(10) {
		test.Spec.TTLSecondsAfterFinished = new(int32(5 + m.IntN(20)))
	}
	m.latest[w.Name] = lately{test.Name, at + length}
	return Event{
		At:     at,
		Kind:   CreateLoadTest,
		World:  w.Name,
		Name:   test.Name,
		Object: test,
	}
}

// experiment compares two settings of the single server, each run once.
func (m *maker) experiment(at time.Duration) Event {
	w := Worlds[0]
	e := &v1alpha1.RedisExperiment{
		ObjectMeta: metav1.ObjectMeta{Name: m.name("experiment")},
		Spec: v1alpha1.RedisExperimentSpec{
			Template: v1alpha1.LoadTestTemplate{Spec: m.loadSpec(w, m.within(4*time.Second, 8*time.Second))},
			Matrix: []v1alpha1.ExperimentParameter{{Name: "hz", Settings: []v1alpha1.ExperimentSetting{
				{Name: "as-is"}, {Name: "20", Config: map[string]v1alpha1.ParameterValue{"hz": "20"}},
			}}},
			Repeat: 1, Baseline: map[string]v1alpha1.ValueName{"hz": "as-is"},
		},
	}
	return Event{
		At:     at,
		Kind:   CreateExperiment,
		World:  w.Name,
		Name:   e.Name,
		Object: e,
	}
}

// fault is a fault on the load of its world, or with a probe of its own. It ends by itself within minutes, whatever
// happens.
func (m *maker) fault(w World, at time.Duration) Event {
	kind := oneOf(m.dice, w.Types...)
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: m.name("fault")}, Spec: v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: kind},
		Select: v1alpha1.FaultSelector{
			Role: v1alpha1.RolePrimary,
			Mode: v1alpha1.SelectOne,
			Pick: oneOf(m.dice, v1alpha1.PickFirst, v1alpha1.PickRandom),
		},
		Trigger:          v1alpha1.FaultTrigger{After: span(m.within(0, 8*time.Second)), Timeout: *span(30 * time.Second)},
		RecoveryDeadline: *span(m.within(8*time.Second, 20*time.Second)),
		Deadline:         span(2 * time.Minute),
	}}
	s := &f.Spec
	if load := m.latest[w.Name]; at < load.ends && m.percent(75) {
		s.LoadTestRef = &v1alpha1.LoadTestReference{Name: load.name}
	} else {
		s.Target = w.Target.DeepCopy()
	}
	if m.percent(25) {
		s.Trigger.After, s.Trigger.SteadyFor = nil, span(m.within(3*time.Second, 6*time.Second))
	}
	m.act(s, w, f.Name)
	switch {
	case m.percent(6):
		s.DryRun = true
	case (kind == v1alpha1.FaultConfig || kind == v1alpha1.FaultResources) && s.LoadTestRef != nil && m.percent(20):
		s.Setting, s.Trigger = true, v1alpha1.FaultTrigger{}
	}
	if m.percent(8) {
		s.TTLSecondsAfterFinished = new(int32(5 + m.IntN(20)))
	}
	return Event{
		At:     at,
		Kind:   CreateFault,
		World:  w.Name,
		Name:   f.Name,
		Type:   kind,
		Object: f,
	}
}

// act sets what a type needs.
func (m *maker) act(s *v1alpha1.RedisFaultSpec, w World, name string) {
	if m.actOnServer(s) || m.actOnce(s) {
		return
	}
	m.actOnWorkload(s, w, name)
}

// actOnServer sets the types that change a server for a while; false if it is another type.
func (m *maker) actOnServer(s *v1alpha1.RedisFaultSpec) bool {
	a := &s.Action
	s.Duration = span(m.within(3*time.Second, 18*time.Second))
	switch a.Type {
	case v1alpha1.FaultConfig:
		a.Config = &v1alpha1.Config{
			Parameters: map[string]v1alpha1.ParameterValue{
				MarkParameter: v1alpha1.ParameterValue(fmt.Sprint(markBase + m.count)),
			},
		}
		if m.percent(30) {
			a.Config.Parameters["appendfsync"] = "always"
		}
	case v1alpha1.FaultClientPause:
		a.ClientPause = &v1alpha1.ClientPause{Mode: oneOf(m.dice, v1alpha1.PauseAll, v1alpha1.PauseWrite)}
	case v1alpha1.FaultHang:
		a.Hang = &v1alpha1.Hang{Method: v1alpha1.HangAuto}
		s.Duration = span(m.within(time.Second, 4*time.Second))
	case v1alpha1.FaultResources:
		a.Resources = &v1alpha1.Resources{CPU: resource.NewMilliQuantity(int64(markCPU+m.count), resource.DecimalSI)}
	default:
		return false
	}
	return true
}

// actOnce sets the types that do not last; false if it is another type.
func (m *maker) actOnce(s *v1alpha1.RedisFaultSpec) bool {
	a := &s.Action
	switch a.Type {
	case v1alpha1.FaultClientKill:
		a.ClientKill = &v1alpha1.ClientKill{Type: v1alpha1.ClientNormal}
	case v1alpha1.FaultBackgroundSave:
		a.BackgroundSave = &v1alpha1.BackgroundSave{
			Kind: oneOf(m.dice, v1alpha1.SaveSnapshot, v1alpha1.SaveAppendOnlyRewrite),
		}
	case v1alpha1.FaultProcessCrash:
		a.ProcessCrash = &v1alpha1.ProcessCrash{Method: v1alpha1.CrashShutdown}
	case v1alpha1.FaultFailover:
		a.Failover = &v1alpha1.Failover{
			Method:  v1alpha1.FailoverAuto,
			Mode:    oneOf(m.dice, v1alpha1.FailoverPlain, v1alpha1.FailoverCoordinated),
			Timeout: *span(30 * time.Second),
		}
	case v1alpha1.FaultExternal:
		a.External = &v1alpha1.External{WaitFor: *span(m.within(10*time.Second, 30*time.Second))}
		s.Select = v1alpha1.FaultSelector{}
	default:
		return false
	}
	s.Duration = nil
	return true
}

// actOnWorkload sets the types that change a pod, its StatefulSet or its node.
func (m *maker) actOnWorkload(s *v1alpha1.RedisFaultSpec, w World, name string) {
	a := &s.Action
	switch a.Type {
	case v1alpha1.FaultPodKill:
		a.PodKill = &v1alpha1.PodKill{}
		if m.percent(50) {
			a.PodKill.GracePeriodSeconds = new(int64(0))
		}
		if m.percent(70) {
			s.Duration = nil
		}
		if w.Name == "pair" { // its primary is always the same pod
			s.Select.Role = v1alpha1.RoleReplica
		}
	case v1alpha1.FaultReplicaScale:
		a.ReplicaScale = &v1alpha1.ReplicaScale{By: oneOf(m.dice, int32(1), int32(-1)), SyncTimeout: *span(time.Minute)}
		s.Select.Role = v1alpha1.RoleReplica
	case v1alpha1.FaultPodTemplate:
		a.PodTemplate = &v1alpha1.PodTemplate{Patch: v1alpha1.PodTemplatePatch{Metadata: &runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"annotations": {%q: %q}}`, MarkAnnotation, name),
		}}}
	case v1alpha1.FaultIOThreads:
		a.IOThreads = &v1alpha1.IOThreads{Count: 2, Method: v1alpha1.ApplyRoll}
		s.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores}
	case v1alpha1.FaultNodeLoss:
		a.NodeLoss = &v1alpha1.NodeLoss{Node: oneOf(m.dice, Nodes...)}
	case v1alpha1.FaultDrain:
		a.Drain = &v1alpha1.Drain{Node: oneOf(m.dice, Nodes...)}
	case v1alpha1.FaultVolumeAttachDelay:
		a.VolumeAttachDelay = &v1alpha1.VolumeAttachDelay{KeepAway: v1alpha1.KeepAwayTaint}
	}
}

// anchor is a fault that lasts for a minute and more. While it is in force, a manager that loses its Lease does not
// end: the same process leads again.
func (m *maker) anchor(at time.Duration) Event {
	w := Worlds[len(Worlds)-1]
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: m.name("fault")}, Spec: v1alpha1.RedisFaultSpec{
		Target: w.Target.DeepCopy(), Action: v1alpha1.Action{Type: v1alpha1.FaultConfig},
		Select: v1alpha1.FaultSelector{
			Role: v1alpha1.RolePrimary,
			Mode: v1alpha1.SelectOne,
			Pick: v1alpha1.PickRandom,
		},
		Trigger:          v1alpha1.FaultTrigger{After: span(0), Timeout: *span(30 * time.Second)},
		RecoveryDeadline: *span(10 * time.Second), Deadline: span(5 * time.Minute),
	}}
	m.act(&f.Spec, w, f.Name)
	f.Spec.Duration = span(m.within(time.Minute, 100*time.Second))
	return Event{
		At:     at,
		Kind:   CreateFault,
		World:  w.Name,
		Name:   f.Name,
		Type:   f.Spec.Action.Type,
		Object: f,
	}
}
