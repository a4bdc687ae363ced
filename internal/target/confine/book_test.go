package confine_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// announcing is a Service of the namespace.
func announcing(name string, selector map[string]string, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name},
		Spec:       corev1.ServiceSpec{Selector: selector},
	}
	change(&s.Spec)
	return s
}

// Only addresses that lead to pods of the namespace are dialled, and always at the IP of a pod: a name that resolves
// elsewhere a moment later, or a Service that is changed, leads nowhere else.
func TestAddressBook(t *testing.T) {
	w := faulttest.NewWorld(t,
		announcing("redis", map[string]string{"app": "redis"}, func(s *corev1.ServiceSpec) {
			s.ClusterIP = corev1.ClusterIPNone
		}),
		announcing("announce-1", map[string]string{"app": "redis-1"}, func(s *corev1.ServiceSpec) {
			s.ClusterIP = "10.96.0.11"
			s.Ports = []corev1.ServicePort{{Port: 7000, TargetPort: intstr.FromString("redis"), NodePort: 30007}}
		}),
		announcing("by-hand", nil, func(s *corev1.ServiceSpec) {
			s.ClusterIP = "10.96.0.12"
			s.Ports = []corev1.ServicePort{{Port: 6379}}
		}),
		announcing("elsewhere", nil, func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName = corev1.ServiceTypeExternalName, "redis.other.svc"
		}),
	)
	w.Pod("redis-0", "u0", "10.0.0.1", "", nil)
	w.Pod("redis-1", "u1", "10.0.0.2", "", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "redis-1"}
		p.Spec.Containers[0].Ports[0].Name = "redis"
	})
	w.Pod("ended", "u2", "10.0.0.3", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	w.Pod("on-host", "u3", "192.168.0.5", "", func(p *corev1.Pod) {
		p.Spec.HostNetwork, p.Labels = true, nil
		p.Spec.Containers[0].Ports[0].ContainerPort = 6390
	})
	w.Pod("six", "u4", "fd00::4", "", func(p *corev1.Pod) { p.Labels = nil })
	other := w.Pod("template", "u5", "10.0.0.9", "", nil).DeepCopy()
	other.Namespace, other.Name, other.ResourceVersion, other.Status.PodIP = "other", "redis-0", "", "10.9.8.7"
	faulttest.Must(t, w.Cluster.Create(t.Context(), other))
	faulttest.Must(t, w.Cluster.Delete(t.Context(), w.PodNamed("template")))
	lookup := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		known := map[string]string{
			"mine.example.com":         "10.0.0.1",
			"theirs.example.com":       "10.9.8.7",
			"metadata.google.internal": "169.254.169.254",
			"localhost":                "127.0.0.1",
			"redis.other.svc":          "10.96.0.99",
			"elsewhere.shop.svc":       "10.96.0.99",
		}
		if ip := known[host]; ip != "" {
			return []netip.Addr{netip.MustParseAddr(ip)}, nil
		}
		return nil, errors.New("no such host")
	}
	book := confine.NewBook(faulttest.Namespace, nil, w.Cluster, lookup)
	for address, want := range map[string]string{
		"10.0.0.1:6379":                          "10.0.0.1:6379",
		"[::ffff:10.0.0.1]:6379":                 "10.0.0.1:6379",
		"[fd00::4]:6379":                         "[fd00::4]:6379",
		"10.96.0.11:7000":                        "10.0.0.2:6379", // a Service for each pod, as charts announce them
		"203.0.113.9:30007":                      "10.0.0.2:6379", // the same by its node port, at whatever node
		"announce-1.shop.svc.cluster.local:7000": "10.0.0.2:6379",
		"redis:6379":                             "10.0.0.1:6379",
		"redis-0.redis:6379":                     "10.0.0.1:6379",
		"REDIS-0.redis.shop.svc.:6379":           "10.0.0.1:6379",
		"redis-0.redis.shop:6379":                "10.0.0.1:6379",
		"mine.example.com:6379":                  "10.0.0.1:6379",
		"192.168.0.5:6390":                       "192.168.0.5:6390",
		"192.168.0.5:10250":                      "", // the kubelet of its node
		"10.9.8.7:6379":                          "",
		"10.0.0.3:6379":                          "", // of a pod that has ended: it may be another's by now
		"10.96.0.11:6379":                        "",
		"10.96.0.12:6379":                        "", // without a selector: its endpoints may be anything
		"elsewhere.shop.svc:6379":                "",
		"redis-0.redis.other.svc:6379":           "",
		"redis.other.svc.cluster.local:6379":     "",
		"theirs.example.com:6379":                "",
		"metadata.google.internal:80":            "",
		"169.254.169.254:80":                     "",
		"127.0.0.1:8080":                         "",
		"localhost:8080":                         "",
		"0.0.0.0:6379":                           "",
		"[fe80::1%eth0]:6379":                    "",
		"0x0a.0.0.1:6379":                        "",
		"10.0.0.1:0":                             "", "10.0.0.1:65536": "", "10.0.0.1": "", ":6379": "", "": "",
		"10.0.0.1:http": "",
	} {
		places, err := book.Resolve(t.Context(), address)
		if got := strings.Join(places, " "); got != want {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
		foreign, is := errors.AsType[*confine.Foreign](err)
		if is != (want == "") {
			t.Errorf("%s: %v", address, err)
		}
		if is {
			if p, _ := problem.From(foreign); p == nil || p.Reason != v1alpha1.ReasonForeignAddress ||
				!errors.Is(err, redis.ErrNotSent) {
				t.Errorf("%s: %+v", address, p)
			}
		}
	}
	watched := func() []corev1.Pod {
		var all corev1.PodList
		faulttest.Must(t, w.Cluster.List(t.Context(), &all, client.InNamespace(faulttest.Namespace)))
		return all.Items
	}
	book = confine.NewBook(faulttest.Namespace, watched, w.Cluster, nil)
	if _, err := book.Resolve(t.Context(), "10.0.0.1:6379"); err != nil {
		t.Fatal(err)
	}
	// A pod that has just come is found at once, though the others were read a moment ago.
	w.Pod("redis-2", "u6", "10.0.0.7", "", nil)
	if places, err := book.Resolve(t.Context(), "10.0.0.7:6379"); !slices.Equal(places, []string{"10.0.0.7:6379"}) {
		t.Errorf("a new pod: %v, %v", places, err)
	}
	// Servers that are asked at once are all found by the first list.
	book = confine.NewBook(faulttest.Namespace, nil, w.Cluster, nil)
	var asking errgroup.Group
	for _, address := range []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.7:6379"} {
		asking.Go(func() error {
			_, err := book.Resolve(t.Context(), address)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		t.Error(err)
	}
	// While the API server does not answer, what it has listed before stays known.
	book = confine.NewBook(faulttest.Namespace, nil, w.Cluster, nil)
	if _, err := book.Resolve(t.Context(), "10.0.0.1:6379"); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	time.Sleep(1100 * time.Millisecond) // until the list is read anew
	if places, err := book.Resolve(stopped, "10.0.0.1:6379"); !slices.Equal(places, []string{"10.0.0.1:6379"}) {
		t.Errorf("without the API server: %v, %v", places, err)
	}
}
