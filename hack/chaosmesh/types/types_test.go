// Package types_test holds internal/fault/chaosmesh/object, which writes and reads Chaos Mesh's objects without its Go types, to these types.
package types_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	cmv1 "github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	chaosmesh "github.com/redquake/redquake/internal/fault/chaosmesh/object"
)

func length(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

var (
	alone  = chaosmesh.Hit{Namespace: "shop", Pod: "redis-0", Container: "redis", Grace: 7 * time.Second, VolumePath: "/data", Lasts: 90 * time.Second}
	named  = chaosmesh.Hit{Namespace: "shop", Pod: "redis-0", Lasts: time.Minute, Peers: &chaosmesh.Peers{Pods: []string{"redis-1"}}}
	loaded = chaosmesh.Hit{Namespace: "shop", Pod: "redis-0", Lasts: time.Minute, Peers: &chaosmesh.Peers{Labels: map[string]string{"redquake.dev/loadtest": "run"}}}
)

var specs = []struct {
	name string
	spec v1alpha1.RedisFaultSpec
	hit  chaosmesh.Hit
}{
	{"kill", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, alone},
	{"delay", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultNetworkDelay, NetworkDelay: &v1alpha1.NetworkDelay{
		Latency: length(1500 * time.Millisecond), Jitter: new(length(time.Millisecond)), Correlation: "25.5%", Direction: v1alpha1.DirectionTo}}}, alone},
	{"delay of some", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultNetworkDelay, NetworkDelay: &v1alpha1.NetworkDelay{
		Latency: length(time.Millisecond), Direction: v1alpha1.DirectionFrom, Peers: v1alpha1.PeersServers}}}, named},
	{"loss", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultNetworkLoss, NetworkLoss: &v1alpha1.NetworkLoss{
		Loss: "99%", Correlation: "1%", Direction: v1alpha1.DirectionBoth, Peers: v1alpha1.PeersClients}}}, loaded},
	{"partition", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultNetworkPartition, NetworkPartition: &v1alpha1.NetworkPartition{
		From: v1alpha1.PeersServers, Direction: v1alpha1.DirectionBoth}}}, named},
	{"disk", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultDiskDelay, DiskDelay: &v1alpha1.DiskDelay{Delay: length(50 * time.Millisecond), Path: "/data/*", Percent: 50,
		Methods: []v1alpha1.DiskMethod{v1alpha1.DiskRead, v1alpha1.DiskWrite, v1alpha1.DiskFlush, v1alpha1.DiskFsync}}}}, alone},
	{"stress", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultCPUStress, CPUStress: &v1alpha1.CPUStress{Workers: 2, Load: 60}}}, alone},
	{"clock", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultClockSkew, ClockSkew: &v1alpha1.ClockSkew{Offset: length(-5 * time.Minute)}}}, alone},
}

var kinds = map[string]func() cmv1.InnerObject{
	"PodChaos":     func() cmv1.InnerObject { return &cmv1.PodChaos{} },
	"NetworkChaos": func() cmv1.InnerObject { return &cmv1.NetworkChaos{} },
	"IOChaos":      func() cmv1.InnerObject { return &cmv1.IOChaos{} },
	"StressChaos":  func() cmv1.InnerObject { return &cmv1.StressChaos{} },
	"TimeChaos":    func() cmv1.InnerObject { return &cmv1.TimeChaos{} },
}

// Every object is one of Chaos Mesh's: no field is unknown, none is lost on the way back, and its webhook takes it.
func TestObjects(t *testing.T) {
	for _, test := range specs {
		t.Run(test.name, func(t *testing.T) {
			child := chaosmesh.Child(&test.spec, test.hit)
			child.SetNamespace("shop")
			child.SetName("break-0123456789")
			typed := kinds[child.GetKind()]()
			text, err := json.Marshal(child)
			if err != nil {
				t.Fatal(err)
			}
			strict := json.NewDecoder(bytes.NewReader(text))
			strict.DisallowUnknownFields()
			if err := strict.Decode(typed); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(child.Object["spec"], back["spec"]); diff != "" {
				t.Errorf("lost on the way back: %s", diff)
			}
			ctx := context.Background()
			if err := typed.Default(ctx, typed); err != nil {
				t.Error(err)
			}
			if _, err := typed.ValidateCreate(ctx, typed); err != nil {
				t.Errorf("the webhook says: %v", err)
			}
			exceeded, ends, err := typed.DurationExceeded(time.Now())
			oneShot := test.spec.Action.Type == v1alpha1.FaultPodKill
			if err != nil || typed.IsOneShot() != oneShot || !oneShot && (!exceeded && ends == 0) {
				t.Errorf("one shot: %v; it ends in %s (%v)", typed.IsOneShot(), ends, err)
			}
		})
	}
}

// What the webhook refuses would be refused of us, too: the test above can fail.
func TestWebhookRefuses(t *testing.T) {
	spec := v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultNetworkDelay, NetworkDelay: &v1alpha1.NetworkDelay{Latency: length(time.Second), Direction: v1alpha1.DirectionBoth}}}
	typed := &cmv1.NetworkChaos{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chaosmesh.Child(&spec, alone).Object, typed); err != nil {
		t.Fatal(err)
	}
	if _, err := typed.ValidateCreate(context.Background(), typed); err == nil {
		t.Error("a delay in both directions without peers was taken")
	}
}

// The status is read by the names of Chaos Mesh's own fields and phases.
func TestStatus(t *testing.T) {
	failed := cmv1.NewRecordEvent(cmv1.TypeFailed, cmv1.Recover, "container is dead", metav1.Now())
	for name, test := range map[string]struct {
		status cmv1.ExperimentStatus
		want   chaosmesh.State
	}{
		"injected": {cmv1.ExperimentStatus{DesiredPhase: cmv1.RunningPhase, Records: []*cmv1.Record{{Id: "shop/redis-0", SelectorKey: ".", Phase: cmv1.Injected, InjectedCount: 1}}},
			chaosmesh.State{Selected: true, Injected: true, Ever: true, Where: "shop/redis-0 is Injected"}},
		"undone": {cmv1.ExperimentStatus{DesiredPhase: cmv1.StoppedPhase, Records: []*cmv1.Record{{Id: "shop/redis-0", Phase: cmv1.NotInjected, InjectedCount: 1, RecoveredCount: 1}}},
			chaosmesh.State{Selected: true, Ever: true, Stopped: true, Healed: true, Where: "shop/redis-0 is Not Injected"}},
		"not undone": {cmv1.ExperimentStatus{DesiredPhase: cmv1.StoppedPhase, Records: []*cmv1.Record{{Id: "shop/redis-0", Phase: cmv1.Injected, InjectedCount: 1, Events: []cmv1.RecordEvent{*failed}}}},
			chaosmesh.State{Selected: true, Injected: true, Ever: true, Stopped: true, Where: "shop/redis-0 is Injected", Failure: "shop/redis-0: Recover failed: container is dead"}},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&cmv1.PodChaos{Status: cmv1.PodChaosStatus{ChaosStatus: cmv1.ChaosStatus{Experiment: test.status}}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, chaosmesh.Read(&unstructured.Unstructured{Object: object})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
