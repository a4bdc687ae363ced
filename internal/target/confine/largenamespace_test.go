package confine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// largeNamespace is an API server with many pods in the namespace beside those of the world, which are listed last.
type largeNamespace struct {
	client.WithWatch
	page      time.Duration // that one page of a list takes
	lists     atomic.Int32  // of all pods of the namespace, that have begun
	reads     atomic.Int32  // of single pods
	fails     atomic.Bool   // lists do
	noService atomic.Bool   // lists of Services take for ever
}

const pages = 20

func newLargeNamespace(w *faulttest.World, page time.Duration) *largeNamespace {
	n := &largeNamespace{page: page}
	n.WithWatch = interceptor.NewClient(w.Cluster, interceptor.Funcs{
		List: n.list,
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			options ...client.GetOption,
		) error {
			if _, pod := into.(*corev1.Pod); pod {
				n.reads.Add(1)
			}
			return c.Get(ctx, key, into, options...)
		},
	})
	return n
}

func (n *largeNamespace) list(
	ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption,
) error {
	given := client.ListOptions{}
	given.ApplyOptions(options)
	took := n.page
	if _, services := into.(*corev1.ServiceList); services && n.noService.Load() {
		took = time.Hour
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	pods, is := into.(*corev1.PodList)
	if !is || given.LabelSelector != nil && !given.LabelSelector.Empty() {
		given.Limit, given.Continue = 0, ""
		return c.List(ctx, into, &given)
	}
	number, _ := strconv.Atoi(given.Continue)
	if number == 0 {
		n.lists.Add(1)
	}
	if n.fails.Load() && number == pages/2 {
		return errors.New("the server is overloaded")
	}
	if number == pages-1 {
		return c.List(ctx, into, client.InNamespace(given.Namespace))
	}
	pods.Items = make([]corev1.Pod, 500)
	for i := range pods.Items {
		name := fmt.Sprintf("job-%d-%d", number, i)
		pods.Items[i] = corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name, UID: types.UID(name)},
			Status:     corev1.PodStatus{PodIP: fmt.Sprintf("10.%d.%d.%d", 100+number, i/250, i%250)},
		}
	}
	pods.Continue = strconv.Itoa(number + 1)
	return nil
}

// within resolves an address in at most some time.
func within(t *testing.T, book *confine.Book, address string, limit time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	places, err := book.Resolve(ctx, address)
	return strings.Join(places, " "), err
}

// isUnlisted checks that an error says what could not be listed, and neither that the address is foreign nor that a
// server is silent.
func isUnlisted(t *testing.T, err error, says string) {
	t.Helper()
	found, _ := problem.From(err)
	if err == nil || found != nil || redis.IsTimeout(err) || !errors.Is(err, redis.ErrNotSent) ||
		!strings.Contains(err.Error(), says) {
		t.Errorf("error %v (problem %v, timeout %t), want %q", err, found, redis.IsTimeout(err), says)
	}
}

// The servers of a target are reached before its pods are watched, however many other pods are in the namespace and
// however slow the API server is.
func TestServersAreReachedInALargeNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
		live := newLargeNamespace(w, 40*time.Millisecond)
		live.noService.Store(true)
		deps := w.Deps()
		deps.Live, deps.Servers = live, confine.To(w.Servers, confine.NewBook(faulttest.Namespace, nil, live, nil))
		found, err := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Survey(t.Context())
		if err != nil || len(found) != 2 {
			t.Fatalf("%d servers: %v", len(found), err)
		}
		for _, s := range found {
			if s.Err != nil {
				t.Errorf("%s: %v", s.Pod.Name, s.Err)
			}
		}
		if n := live.lists.Load(); n != 0 {
			t.Errorf("all pods of the namespace were listed %d times", n)
		}
		// They stay known as long as the API server shows them.
		time.Sleep(time.Minute)
		if _, err := deps.Servers.Ask(t.Context(), "10.0.0.1:6379", deps.Login); err != nil {
			t.Error(err)
		}
		faulttest.Must(t, w.Cluster.Delete(t.Context(), w.PodNamed("redis-0")))
		live.noService.Store(false)
		time.Sleep(5 * time.Second)
		if _, err := deps.Servers.Ask(t.Context(), "10.0.0.1:6379", deps.Login); !isForeign(err) {
			t.Errorf("a pod that is gone: %v", err)
		}
	})
}

func isForeign(err error) bool {
	_, is := errors.AsType[*confine.Foreign](err)
	return is
}

// Whether an address is foreign is not known before the pods of the namespace were listed. A caller that cannot wait
// finds the result later.
func TestNoAddressIsForeignBeforeTheListIsComplete(t *testing.T) {
	const sentinel, foreign = "10.0.0.9:26379", "10.9.8.7:6379"
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		w.Pod("sentinel-0", "s0", "10.0.0.9", "", func(p *corev1.Pod) { p.Labels = nil })
		live := newLargeNamespace(w, 40*time.Millisecond)
		book := confine.NewBook(faulttest.Namespace, nil, live, nil)
		for _, address := range []string{sentinel, foreign} {
			_, err := within(t, book, address, 200*time.Millisecond)
			isUnlisted(t, err, "the pods of namespace shop could not be listed in time")
		}
		time.Sleep(time.Second)
		if place, err := within(t, book, sentinel, confine.QueryTimeout); place != sentinel {
			t.Errorf("%q, %v", place, err)
		}
		if _, err := within(t, book, foreign, confine.QueryTimeout); !isForeign(err) {
			t.Errorf("no pod has it: %v", err)
		}
		if n := live.lists.Load(); n != 1 {
			t.Errorf("%d lists for all of them, want 1", n)
		}
		// A list that ends half-way says nothing, neither at first nor after a complete one.
		live.fails.Store(true)
		time.Sleep(time.Minute)
		for _, book := range []*confine.Book{book, confine.NewBook(faulttest.Namespace, nil, live, nil)} {
			_, err := within(t, book, foreign, 5*time.Second)
			isUnlisted(t, err, "the server is overloaded")
			_, err = within(t, book, foreign, 5*time.Second) // while the next list is not due
			isUnlisted(t, err, "the server is overloaded")
		}
		if place, err := within(t, book, sentinel, confine.QueryTimeout); place != sentinel {
			t.Errorf("known before: %q, %v", place, err)
		}
		// Nor is it known while the Services cannot be listed.
		live.fails.Store(false)
		live.noService.Store(true)
		time.Sleep(time.Minute)
		_, err := within(t, book, foreign, confine.QueryTimeout)
		isUnlisted(t, err, "the Services of namespace shop could not be listed in time")
		time.Sleep(time.Minute) // until the list of them is given up
	})
}

// A pod that is known by a list must still be there, and have the address, when something is sent.
func TestKnownPodsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		pod := w.Pod("sentinel-0", "s0", "10.0.0.9", "", nil)
		live := newLargeNamespace(w, 40*time.Millisecond)
		book := confine.NewBook(faulttest.Namespace, nil, live, nil)
		resolve := func(ip, want string) {
			t.Helper()
			time.Sleep(20 * time.Second)
			if place, err := within(t, book, ip+":26379", 5*time.Second); place != want || isForeign(err) != (want == "") {
				t.Errorf("%s: %q, %v; want %q", ip, place, err, want)
			}
		}
		resolve("10.0.0.9", "10.0.0.9:26379")
		resolve("10.0.0.9", "10.0.0.9:26379")
		if lists, reads := live.lists.Load(), live.reads.Load(); lists != 1 || reads == 0 {
			t.Errorf("%d lists and %d reads, want 1 list", lists, reads)
		}
		w.Update(pod, func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.10" })
		resolve("10.0.0.9", "")
		resolve("10.0.0.10", "10.0.0.10:26379")
		w.Update(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		resolve("10.0.0.10", "")
		w.Replace(pod, "s1")
		resolve("10.0.0.10", "10.0.0.10:26379")
		w.Hooks.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the server is overloaded")
		}
		live.fails.Store(true)
		resolve("10.0.0.10", "10.0.0.10:26379") // what is known remains while the API server does not answer
	})
}

// The pods behind a Service are those that it selects now, and only they are listed.
func TestPodsBehindAServiceAreListedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t, announcing("sentinels", map[string]string{"app": "sentinel"}, func(s *corev1.ServiceSpec) {
			s.ClusterIP, s.Ports = "10.96.0.11", []corev1.ServicePort{{Port: 26379}}
		}))
		label := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "sentinel"} }
		first := w.Pod("sentinel-0", "s0", "10.0.0.9", "", label)
		live := newLargeNamespace(w, 40*time.Millisecond)
		book := confine.NewBook(faulttest.Namespace, nil, live, nil)
		for _, want := range []string{"10.0.0.9:26379", "10.0.0.8:26379 10.0.0.9:26379", "10.0.0.8:26379"} {
			for _, address := range []string{"sentinels:26379", "10.96.0.11:26379"} {
				place, err := within(t, book, address, confine.AskTimeout)
				if words := strings.Fields(place); !slices.Equal(slices.Sorted(slices.Values(words)), strings.Fields(want)) {
					t.Errorf("%s: %q, %v; want %q", address, place, err, want)
				}
			}
			if want == "10.0.0.9:26379" {
				w.Pod("sentinel-1", "s1", "10.0.0.8", "", label)
			} else {
				_ = w.Cluster.Delete(t.Context(), first)
			}
			time.Sleep(10 * time.Second)
		}
		if n := live.lists.Load(); n != 0 {
			t.Errorf("all pods of the namespace were listed %d times", n)
		}
	})
}
