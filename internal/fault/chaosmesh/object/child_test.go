package object

import (
	"testing"
	"time"

	cmv1 "github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

func length(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

var hit = Hit{
	Namespace:  "shop",
	Pod:        "redis-0",
	Container:  "redis",
	Grace:      30 * time.Second,
	VolumePath: "/data",
	Lasts:      90 * time.Second,
}

func TestChild(t *testing.T) {
	far := hit
	far.Peers = &Peers{Pods: []string{"redis-1", "redis-2"}}
	load := hit
	load.Peers = &Peers{Labels: map[string]string{"redquake.dev/loadtest": "run"}}
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, kind, want string // want is the spec without selector and mode
		spec             v1alpha1.RedisFaultSpec
		hit              Hit
	}{
		{
			"kill",
			"PodChaos",
			`{action: pod-kill, gracePeriod: 30}`,
			v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}},
			hit,
		},
		{
			"delay of everything",
			"NetworkChaos",
			`{action: delay, direction: to, duration: 1m30s, delay: {latency: 50000us, jitter: 0us, correlation: "0"}}`,
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:         v1alpha1.FaultNetworkDelay,
					NetworkDelay: &v1alpha1.NetworkDelay{Latency: length(50 * time.Millisecond), Direction: v1alpha1.DirectionOut},
				},
			},
			hit,
		},
		{
			"delay to some",
			"NetworkChaos",
			`{action: delay, direction: both, duration: 1m30s, delay: {latency: 1500000us, jitter: 10000us, correlation: "25"},
  target: {mode: all, selector: {namespaces: [shop], pods: {shop: [redis-1, redis-2]}}}}`,
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultNetworkDelay, NetworkDelay: &v1alpha1.NetworkDelay{
					Latency:     length(1500 * time.Millisecond),
					Jitter:      new(length(10 * time.Millisecond)),
					Correlation: "25%",
					Direction:   v1alpha1.DirectionBoth,
					Peers:       []v1alpha1.NetworkPeer{v1alpha1.PeerReplicas},
				}},
			},
			far,
		},
		{
			"loss",
			"NetworkChaos",
			`{action: loss, direction: from, duration: 1m30s, loss: {loss: "0.5", correlation: "100"},
  target: {mode: all, selector: {namespaces: [shop], labelSelectors: {redquake.dev/loadtest: run}, podPhaseSelectors: [Running]}}}`,
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type: v1alpha1.FaultNetworkLoss,
					NetworkLoss: &v1alpha1.NetworkLoss{
						Loss:        "0.5%",
						Correlation: "100%",
						Direction:   v1alpha1.DirectionIn,
						Peers:       []v1alpha1.NetworkPeer{v1alpha1.PeerClients},
					},
				},
			},
			load,
		},
		{
			"partition",
			"NetworkChaos",
			`{action: partition, direction: both, duration: 1m30s, target: {mode: all, selector: {namespaces: [shop],
			  pods: {shop: [redis-1, redis-2]}}}}`,
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:             v1alpha1.FaultNetworkPartition,
					NetworkPartition: &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerServers}, Direction: v1alpha1.DirectionBoth},
				},
			},
			far,
		},
		{
			"disk",
			"IOChaos",
			`{action: latency, delay: 2000us, volumePath: /data, path: /data/a/*, percent: 50, methods: [write, fsync],
			  duration: 1m30s, containerNames: [redis]}`,
			v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultDiskDelay, DiskDelay: &v1alpha1.DiskDelay{
				Delay:   length(2 * time.Millisecond),
				Path:    "/data/a/*",
				Percent: 50,
				Methods: []v1alpha1.DiskMethod{v1alpha1.DiskWrite, v1alpha1.DiskFsync},
			}}},
			hit,
		},
		{
			"stress",
			"StressChaos",
			`{stressors: {cpu: {workers: 2, load: 60}}, duration: 1m30s, containerNames: [redis]}`,
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultCPUStress, CPUStress: &v1alpha1.CPUStress{Workers: 2, Load: 60}},
			},
			hit,
		},
		{
			"stress by default",
			"StressChaos",
			`{stressors: {cpu: {workers: 1, load: 100}}, duration: 1m30s, containerNames: [redis]}`,
			v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultCPUStress}},
			hit,
		},
		{
			"clock",
			"TimeChaos",
			`{timeOffset: -5m0s, clockIds: [CLOCK_REALTIME], duration: 1m30s, containerNames: [redis]}`,
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:      v1alpha1.FaultClockSkew,
					ClockSkew: &v1alpha1.ClockSkew{Offset: length(-5 * time.Minute)},
				},
			},
			hit,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			child := Child(&test.spec, test.hit)
			if kind, err := apiutil.GVKForObject(child, scheme); err != nil ||
				kind.String() != "chaos-mesh.org/v1alpha1, Kind="+test.kind {
				t.Errorf("it is a %s (%v)", kind, err)
			}
			if kind, ok := Kind(test.spec.Action.Type); !ok || kind.Kind != test.kind {
				t.Errorf("Kind returned %s", kind)
			}
			var want map[string]any
			if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			want["mode"] = "all"
			want["selector"] = map[string]any{"namespaces": []any{"shop"}, "pods": map[string]any{"shop": []any{"redis-0"}}}
			text, err := yaml.Marshal(child)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Spec map[string]any `json:"spec"`
			}
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Error(diff)
			}
			accepted(t, child.(cmv1.InnerObject), test.spec.Action.Type == v1alpha1.FaultPodKill)
		})
	}
}

// accepted checks that Chaos Mesh's webhook accepts an object as it is, and that its controller ends it after a time
// unless it is a one-shot action. Where the webhook fills in nothing, the controller reads the same.
func accepted(t *testing.T, child cmv1.InnerObject, oneShot bool) {
	t.Helper()
	ctx := t.Context()
	filled := child.DeepCopyObject().(cmv1.InnerObject)
	if err := filled.Default(ctx, filled); err != nil {
		t.Error(err)
	}
	if network, ok := filled.(*cmv1.NetworkChaos); ok {
		network.Spec.PartitionBehavior = "" // which Chaos Mesh 2.8 does not know; what it does is the default
	}
	if diff := cmp.Diff(child, filled); diff != "" {
		t.Errorf("the webhook fills in: %s", diff)
	}
	if _, err := child.ValidateCreate(ctx, child); err != nil {
		t.Errorf("the webhook refuses it: %v", err)
	}
	exceeded, ends, err := child.DurationExceeded(time.Now())
	if err != nil || child.IsOneShot() != oneShot || !oneShot && !exceeded && ends == 0 {
		t.Errorf("one shot: %v; it ends in %s (%v)", child.IsOneShot(), ends, err)
	}
}

// The webhook refuses invalid objects, so that TestChild can fail.
func TestWebhookRefuses(t *testing.T) {
	spec := v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:         v1alpha1.FaultNetworkDelay,
			NetworkDelay: &v1alpha1.NetworkDelay{Latency: length(time.Second), Direction: v1alpha1.DirectionBoth},
		},
	}
	child := Child(&spec, hit).(*cmv1.NetworkChaos)
	if _, err := child.ValidateCreate(t.Context(), child); err == nil {
		t.Error("a delay in both directions without peers was accepted")
	}
}

// Every kind that a fault has is in the scheme, with its list, and what New and NewList return is of it.
func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	faults := []v1alpha1.FaultType{
		v1alpha1.FaultPodKill, v1alpha1.FaultNetworkDelay, v1alpha1.FaultNetworkLoss,
		v1alpha1.FaultNetworkPartition, v1alpha1.FaultDiskDelay, v1alpha1.FaultCPUStress, v1alpha1.FaultClockSkew,
	}
	for _, fault := range faults {
		want, ok := Kind(fault)
		one, err := apiutil.GVKForObject(New(want), scheme)
		if !ok || err != nil || one != want {
			t.Errorf("%s: %v, want %v (%v)", fault, one, want, err)
		}
		many, err := apiutil.GVKForObject(NewList(want), scheme)
		if want.Kind += "List"; err != nil || many != want {
			t.Errorf("%s: %v, want %v (%v)", fault, many, want, err)
		}
	}
}

// Chaos Mesh has no other fault.
func TestKind(t *testing.T) {
	if kind, ok := Kind(v1alpha1.FaultFailover); ok ||
		Child(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultFailover}}, hit) != nil {
		t.Errorf("Failover is a %s", kind)
	}
	if kind, _ := Kind(v1alpha1.FaultCPUStress); Resource(kind) != "stresschaos.chaos-mesh.org" {
		t.Errorf("StressChaos is %s", Resource(kind))
	}
}
