package chaosmesh

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// The guard counts what a fault really does: a server that loses most packets is as silent as one that is cut off, and
// a sentinel beside it only if its peers are servers or sentinels.
func TestChaosMeshSilences(t *testing.T) {
	loss := func(share v1alpha1.Percentage, peers ...v1alpha1.NetworkPeer) v1alpha1.Action {
		return v1alpha1.Action{Type: v1alpha1.FaultNetworkLoss, NetworkLoss: &v1alpha1.NetworkLoss{Loss: share, Peers: peers}}
	}
	partition := func(from ...v1alpha1.NetworkPeer) v1alpha1.Action {
		return v1alpha1.Action{Type: v1alpha1.FaultNetworkPartition, NetworkPartition: &v1alpha1.NetworkPartition{Peers: from}}
	}
	delay := func(latency time.Duration) v1alpha1.Action {
		return v1alpha1.Action{
			Type:         v1alpha1.FaultNetworkDelay,
			NetworkDelay: &v1alpha1.NetworkDelay{Latency: metav1.Duration{Duration: latency}},
		}
	}
	disk := func(delay time.Duration) v1alpha1.Action {
		return v1alpha1.Action{
			Type:      v1alpha1.FaultDiskDelay,
			DiskDelay: &v1alpha1.DiskDelay{Delay: metav1.Duration{Duration: delay}, Percent: 100},
		}
	}
	for name, tc := range map[string]struct {
		action         v1alpha1.Action
		silences, pods bool
	}{
		"all packets of clients":    {loss("100%", v1alpha1.PeerClients), true, false},
		"all packets of servers":    {loss("100%", v1alpha1.PeerServers), true, true},
		"most packets":              {loss("50.5%", v1alpha1.PeerReplicas), true, true},
		"half of the packets":       {loss("50%"), false, false},
		"a partition from clients":  {partition(v1alpha1.PeerClients), true, false},
		"from clients and replicas": {partition(v1alpha1.PeerClients, v1alpha1.PeerReplicas), true, true},
		"a partition from replicas": {partition(v1alpha1.PeerReplicas), true, true},
		"a delay of 999 ms":         {delay(999 * time.Millisecond), false, false},
		"a delay of a second":       {delay(time.Second), true, true},
		"a slow disk":               {disk(999 * time.Millisecond), false, false},
		"a disk that stands still":  {disk(time.Second), true, false},
		"a busy CPU":                {v1alpha1.Action{Type: v1alpha1.FaultCPUStress}, false, false},
	} {
		injector, err := New(&v1alpha1.RedisFaultSpec{Action: tc.action}, contract.Deps{})
		faulttest.Must(t, err)
		if traits := injector.Traits(); traits.Silences != tc.silences || traits.WholePod != tc.pods {
			t.Errorf("%s: silences %v, the whole pod %v", name, traits.Silences, traits.WholePod)
		}
	}
}

// A clock that is set forward expires keys for good: that needs an allowance where there are any with an expiry.
func TestChaosMeshClockSparesExpiry(t *testing.T) {
	for name, tc := range map[string]struct {
		offset   time.Duration
		keyspace string
		allow    []v1alpha1.Allowance
		wantText string
	}{
		"no key":                 {time.Hour, "# Keyspace\r\n", nil, ""},
		"keys without an expiry": {time.Hour, "db0:keys=7,expires=0,avg_ttl=0\r\n", nil, ""},
		"keys with one": {
			time.Second, "db0:keys=7,expires=2,avg_ttl=1\r\ndb11:keys=4,expires=3,avg_ttl=1\r\n",
			nil, "redis-0 has 5 keys with an expiry: those that expire within 1s",
		},
		"keys with one, set back": {-time.Hour, "db0:keys=7,expires=2,avg_ttl=1\r\n", nil, ""},
		"keys with one, allowed": {
			8760 * time.Hour,
			"db0:keys=7,expires=2,avg_ttl=1\r\n",
			[]v1alpha1.Allowance{v1alpha1.AllowExpiry},
			"",
		},
		"the other allowances don't": {
			time.Hour,
			"db0:keys=7,expires=2\r\n",
			[]v1alpha1.Allowance{v1alpha1.AllowEviction, v1alpha1.AllowAllCopies},
			"spec.allow: [Expiry]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:      v1alpha1.FaultClockSkew,
					ClockSkew: &v1alpha1.ClockSkew{Offset: metav1.Duration{Duration: tc.offset}},
				},
				Allow: tc.allow,
			})
			b.answers = func(command string) (any, error) {
				if command == "TIME" {
					return []any{"0", "0"}, nil
				}
				return tc.keyspace, nil
			}
			err := b.injector().Preflight(t.Context(), b.target)
			if tc.wantText == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonBlastRadius || !p.Lasting ||
				!strings.Contains(p.Message, tc.wantText) {
				t.Errorf("%+v", p)
			}
		})
	}
}
