package sentinel_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// The sentinel that leads a failover already names the promoted server while the reported time is still that of the old
// primary.
func TestSwitchTimeIgnoresTheOldPrimary(t *testing.T) {
	at := time.Now()
	leader := sentinel.Watcher{
		Watched: topology.Watched{Address: "10.0.0.1:6379", FailingOver: true, RoleFor: 20 * time.Second},
		Primary: "10.0.0.2:6379",
	}
	w := sentinel.Watchers{At: at, Answered: []sentinel.Watcher{leader}}
	if got := w.Switched("10.0.0.2:6379"); !got.IsZero() {
		t.Errorf("switched %s ago, want no switch", at.Sub(got))
	}
	for _, since := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond} {
		w.Answered = append(w.Answered, sentinel.Watcher{
			Watched: topology.Watched{Address: "10.0.0.2:6379", RoleFor: since},
			Primary: "10.0.0.2:6379",
		})
	}
	if got := at.Sub(w.Switched("10.0.0.2:6379")); got != 700*time.Millisecond {
		t.Errorf("switched %s ago, want 700ms", got)
	}
}

// Sentinels by short names resolve in load pods, by the search path of their namespace. The manager runs in another
// one.
func TestSentinelNamesAreQualified(t *testing.T) {
	w := faulttest.NewWorld(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "headless"}})
	of := &v1alpha1.RedisTarget{Sentinel: &v1alpha1.SentinelTarget{Addresses: []string{
		"sentinel:26379", "redis-0.headless:26379", "sentinel.other:26379", "sentinel.other.svc:26379", "10.0.0.1:26379",
		"[fd00::1]:26379",
	}}}
	got, err := sentinel.Of(t.Context(), w.Cluster, "shop", of, nil)
	want := []string{
		"sentinel.shop.svc:26379", "redis-0.headless.shop.svc:26379", "sentinel.other:26379",
		"sentinel.other.svc:26379", "10.0.0.1:26379", "[fd00::1]:26379",
	}
	if err != nil || !slices.Equal(got.Addresses, want) {
		t.Errorf("%q, %v, want %q", got.Addresses, err, want)
	}
}
