package podwatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target/podwatch"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/sim"
)

func podNamed(name string, more map[string]string) *corev1.Pod {
	l := map[string]string{"app": "redis"}
	for key, value := range more {
		l[key] = value
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:     "shop",
			Name:          name,
			Labels:        l,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
	}
}

// A watch shows the selected pods alone, and tells of every change but those of load pods; also after it was
// interrupted.
func TestPodWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := sim.NewAPI(apitest.Scheme(t))
		var watches []watch.Interface
		refused := false
		live := interceptor.NewClient(api, interceptor.Funcs{
			Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
				options ...client.ListOption,
			) (watch.Interface, error) {
				if refused {
					return nil, errors.New("the API server does not answer")
				}
				w, err := c.Watch(ctx, list, options...)
				watches = append(watches, w)
				return w, err
			},
		})
		create := func(pod *corev1.Pod) {
			t.Helper()
			if err := api.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		remove := func(name string) {
			t.Helper()
			if err := api.Delete(t.Context(), podNamed(name, nil), client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
		create(podNamed("redis-1", nil))
		create(podNamed("redis-0", nil))
		create(podNamed("app-0", map[string]string{"app": "shop"}))
		changes := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := podwatch.Begin(ctx, live, "shop", labels.SelectorFromSet(labels.Set{"app": "redis"}), func() { changes++ })
		expect := func(when, want string, wantChange bool) {
			t.Helper()
			synctest.Wait()
			defer func() { changes = 0 }()
			pods, ok := w.Pods()
			var names []string
			for i := range pods {
				if names = append(names, pods[i].Name); pods[i].ManagedFields != nil {
					t.Errorf("%s: pod %s has managed fields", when, pods[i].Name)
				}
			}
			if got := strings.Join(names, " "); !ok || got != want || changes > 0 != wantChange {
				t.Errorf("%s: %q (%t) and %d changes, want %q, changed %t", when, got, ok, changes, want, wantChange)
			}
		}
		w.Synced(t.Context())
		expect("at first", "redis-0 redis-1", false)
		remove("redis-0")
		expect("a pod was deleted", "redis-1", true)
		create(podNamed("redis-0", nil))
		create(podNamed("app-1", map[string]string{"app": "shop"}))
		expect("it was replaced", "redis-0 redis-1", true)
		create(podNamed("redis-load", map[string]string{v1alpha1.LabelLoadTest: "cache"}))
		expect("a load pod has the same labels", "redis-0 redis-1 redis-load", false)

		refused = true
		watches[0].Stop()
		synctest.Wait()
		expect("the watch is interrupted", "redis-0 redis-1 redis-load", false)
		refused = false
		time.Sleep(time.Minute) // it backs off
		remove("redis-0")
		expect("the watch is there again", "redis-1 redis-load", true)
		cancel()
		synctest.Wait()
		if _, ok := w.Pods(); ok {
			t.Error("a watch that has ended has pods")
		}
	})
	if _, ok := (*podwatch.Watch)(nil).Pods(); ok {
		t.Error("no watch has pods")
	}
}
