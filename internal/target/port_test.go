package target_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// declares is a container with ports.
func declares(name, image string, ports ...corev1.ContainerPort) corev1.Container {
	return corev1.Container{Name: name, Image: image, Ports: ports}
}

func port(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number}
}

func TestWhereRedisListens(t *testing.T) {
	service := func(target intstr.IntOrString, selector map[string]string) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{
			{Name: "metrics", Port: 9121, TargetPort: intstr.FromString("metrics")},
			{Name: "redis", Port: 6379, TargetPort: target},
		}}}
	}
	ours := map[string]string{"app": "redis"}
	by := func(target intstr.IntOrString) *corev1.Service { return service(target, ours) }
	through := v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis", Port: 6379}}
	exporter := declares("metrics", "oliver006/redis_exporter:v1", port("metrics", 9121))
	metricsFirst := declares("redis", "acme/cache:1", port("metrics", 9121))
	for _, tc := range []struct {
		name       string
		target     v1alpha1.RedisTarget
		service    *corev1.Service
		containers []corev1.Container
		container  string
		port       string
	}{
		{
			"a port that is not declared",
			v1alpha1.RedisTarget{PodPort: 7000},
			nil,
			[]corev1.Container{exporter, declares("redis", "redis:7")},
			"redis",
			"7000",
		},
		{
			"podPort before the Service",
			v1alpha1.RedisTarget{PodPort: 7000, Service: through.Service},
			by(intstr.FromInt32(7001)),
			[]corev1.Container{declares("redis", "redis:7")},
			"redis",
			"7000",
		},
		{
			"the container that declares podPort",
			v1alpha1.RedisTarget{PodPort: 7000},
			nil,
			[]corev1.Container{declares("a", "redis:7", port("", 6379)), declares("b", "x", port("", 7000))},
			"b",
			"7000",
		},
		{
			"a container by name",
			v1alpha1.RedisTarget{Container: "b"},
			nil,
			[]corev1.Container{declares("a", "redis:7", port("redis", 6379)), declares("b", "x", port("", 7000))},
			"b",
			"7000",
		},
		{
			"a container and its port",
			v1alpha1.RedisTarget{Container: "b", PodPort: 7001},
			nil,
			[]corev1.Container{declares("a", "redis:7", port("", 7001)), declares("b", "x")},
			"b",
			"7001",
		},
		{
			"a container that this pod lacks",
			v1alpha1.RedisTarget{Container: "c"},
			nil,
			[]corev1.Container{declares("a", "redis:7", port("redis", 7000))},
			"a",
			"7000",
		},
		{
			"a number in the Service",
			through,
			by(intstr.FromInt32(6380)),
			[]corev1.Container{exporter, declares("redis", "redis:7")},
			"redis",
			"6380",
		},
		{
			"a name in the Service",
			through,
			by(intstr.FromString("db")),
			[]corev1.Container{exporter, declares("redis", "x", port("admin", 1), port("db", 7002))},
			"redis",
			"7002",
		},
		{
			"a name in the Service that the pod lacks",
			through,
			by(intstr.FromString("db")),
			[]corev1.Container{declares("redis", "x", port("redis", 7003))},
			"redis",
			"7003",
		},
		{
			"the Service of a proxy",
			through,
			service(intstr.FromInt32(9000), map[string]string{"app": "proxy"}),
			[]corev1.Container{declares("redis", "x", port("redis", 6379))},
			"redis",
			"6379",
		},
		{
			"a Service without that port",
			v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis", Port: 1}},
			by(intstr.FromInt32(9000)),
			[]corev1.Container{declares("redis", "x", port("", 7004))},
			"redis",
			"7004",
		},
		{"metrics first, Redis not declared", v1alpha1.RedisTarget{}, nil, []corev1.Container{metricsFirst}, "redis", "6379"},
		{
			"metrics first, then Redis",
			v1alpha1.RedisTarget{},
			nil,
			[]corev1.Container{declares("redis", "x", port("metrics", 9121), port("cache", 7005))},
			"redis",
			"7005",
		},
		{
			"an exporter first",
			v1alpha1.RedisTarget{},
			nil,
			[]corev1.Container{exporter, declares("db", "redis:7", port("", 7006))},
			"db",
			"7006",
		},
		{
			"named after Redis before 6379",
			v1alpha1.RedisTarget{},
			nil,
			[]corev1.Container{declares("a", "x", port("", 6379), port("tcp-redis", 7007))},
			"a",
			"7007",
		},
		{
			"named after Valkey",
			v1alpha1.RedisTarget{},
			nil,
			[]corev1.Container{declares("a", "x", port("tcp-valkey", 7008), port("valkey-bus", 17008))},
			"a",
			"7008",
		},
		{
			"plain beside TLS",
			v1alpha1.RedisTarget{},
			nil,
			[]corev1.Container{declares("a", "x", port("redis-tls", 6380), port("redis", 6379))},
			"a",
			"6379",
		},
		{
			"TLS beside plain",
			v1alpha1.RedisTarget{TLS: &v1alpha1.RedisTLS{}},
			nil,
			[]corev1.Container{declares("a", "x", port("redis", 6379), port("redis-tls", 6380))},
			"a",
			"6380",
		},
		{
			"TLS alone",
			v1alpha1.RedisTarget{},
			nil,
			[]corev1.Container{declares("a", "x", port("redis-tls", 6380))},
			"a",
			"6380",
		},
		{
			"a sentinel beside Redis",
			v1alpha1.RedisTarget{},
			nil,
			[]corev1.Container{
				declares("sentinel", "redis:7", port("redis-sentinel", 26379)),
				declares("redis", "redis:7", port("redis", 6379)),
			},
			"redis",
			"6379",
		},
		{
			"sentinels of the same labels",
			v1alpha1.RedisTarget{PodPort: 7000},
			nil,
			[]corev1.Container{declares("sentinel", "redis:7", port("", 26379))},
			"sentinel",
			"26379",
		},
		{
			"sentinels at another port",
			through,
			by(intstr.FromInt32(6379)),
			[]corev1.Container{declares("sentinel", "redis:7", port("sentinel", 5000))},
			"sentinel",
			"5000",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Labels: ours},
				Spec:       corev1.PodSpec{Containers: tc.containers},
				Status:     corev1.PodStatus{PodIP: "10.0.0.1"},
			}
			r := faulttest.On(faulttest.NewWorld(t).Deps(), &tc.target).Redis
			r.Service = tc.service
			if got := r.Container(pod).Name; got != tc.container {
				t.Errorf("container %q, want %q", got, tc.container)
			}
			if got, want := r.Address(pod), "10.0.0.1:"+tc.port; got != want {
				t.Errorf("address %q, want %q", got, want)
			}
		})
	}
}

func TestContainerThatNoPodHas(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", "", nil)
	of := faulttest.ByPods(map[string]string{"app": "redis"})
	of.Container = "cache"
	_, err := faulttest.On(w.Deps(), of).Pods(t.Context())
	if p := faulttest.ProblemOf(t, err); p.Lasting || p.Reason != v1alpha1.ReasonNoTarget ||
		!strings.Contains(p.Message,
			`spec.target.container: no running pod of the target has a container "cache", only redis`) {
		t.Errorf("problem %+v", p)
	}
}

func TestReadService(t *testing.T) {
	w := faulttest.NewWorld(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"},
	})
	for name, want := range map[string]bool{"redis": true, "gone": false} {
		r, err := faulttest.On(w.Deps(), &v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: name}}).ReadService(
			t.Context())
		if err != nil || (r.Service != nil) != want {
			t.Errorf("%s: %v, %v", name, r.Service, err)
		}
	}
}

// A fault is reverted at the recorded port, whatever the Service says by then.
func TestRecordedPortIsKept(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.2", "", nil)
	recorded := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: "10.0.0.1:7000"}
	if exists, err := w.Deps().PodExists(t.Context(), recorded); !exists || err != nil ||
		recorded.Address != "10.0.0.2:7000" {
		t.Errorf("%v, %v, at %s", exists, err, recorded.Address)
	}
}
