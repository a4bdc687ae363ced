package confine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// subscribed is servers that count who listens.
type subscribed struct {
	topology.Servers
	begun, open atomic.Int32
}

func (s *subscribed) Listen(ctx context.Context, _ string, _ redis.Login, _ string, _ func(time.Time, string, string)) {
	s.begun.Add(1)
	s.open.Add(1)
	defer s.open.Add(-1)
	<-ctx.Done()
}

// A subscription may last for a day: meanwhile only its pod is read, and it ends with the pod.
func TestSubscriptionsDoNotListTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		w.Pod("sentinel-0", "s0", "10.0.0.9", "", nil)
		live := newLargeNamespace(w, 40*time.Millisecond)
		servers := &subscribed{Servers: w.Servers}
		confined := confine.To(servers, confine.NewBook(faulttest.Namespace, nil, live, nil))
		ctx, cancel := context.WithCancel(t.Context())
		var listening atomic.Bool
		listening.Store(true)
		go func() {
			defer listening.Store(false)
			confined.Listen(ctx, "10.0.0.9:26379", redis.Login{}, "*", nil)
		}()
		time.Sleep(30 * time.Minute)
		if begun, open, lists := servers.begun.Load(), servers.open.Load(),
			live.lists.Load(); begun != 1 || open != 1 || lists != 1 {
			t.Errorf("%d subscriptions, %d of them open, after %d lists of all pods; want one each", begun, open, lists)
		}
		faulttest.Must(t, w.Cluster.Delete(t.Context(), w.PodNamed("sentinel-0")))
		time.Sleep(3 * time.Second)
		if open := servers.open.Load(); open != 0 {
			t.Error("the subscription lasts longer than the pod")
		}
		// Nobody has the address for a while: it is looked for more and more seldom.
		before := live.lists.Load()
		time.Sleep(5 * time.Minute)
		if lists := live.lists.Load() - before; lists > 30 || lists < 10 {
			t.Errorf("%d lists of all pods in 5 minutes", lists)
		}
		w.Pod("sentinel-0", "s1", "10.0.0.9", "", nil)
		time.Sleep(30 * time.Second)
		if open := servers.open.Load(); open != 1 {
			t.Error("the new pod of the address is not listened to")
		}
		// Another pod gets the address: the subscription is one of the pod, not of whoever has its IP.
		begun := servers.begun.Load()
		w.Replace(w.PodNamed("sentinel-0"), "s2")
		time.Sleep(30 * time.Second)
		if now := servers.begun.Load(); now != begun+1 || servers.open.Load() != 1 {
			t.Errorf("%d subscriptions after another pod has got the address, want a new one", now-begun)
		}
		cancel()
		synctest.Wait()
		if listening.Load() || servers.open.Load() != 0 {
			t.Error("the subscription does not end")
		}
	})
}
