package result

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// READONLY from the one address of a load means that it leads to replicas, unless a fault made a replica of the server,
// or the load knows the servers.
func TestAnAddressThatLeadsToReplicasIsNamed(t *testing.T) {
	fault := []summary.Window{{From: 4 * time.Second, To: 8 * time.Second}}
	for _, tc := range []struct {
		name     string
		topology plan.Topology
		refused  map[int]uint64 // by second
		faults   []summary.Window
		want     string
	}{
		{"a healthy run", "", nil, nil, ""},
		{"at the start", "", map[int]uint64{0: 7, 1: 2}, nil, "9 requests were refused with READONLY"},
		{"during a fault", "", map[int]uint64{5: 7}, fault, ""},
		{"also without the fault", "", map[int]uint64{2: 3, 5: 7}, fault, "3 requests were refused with READONLY"},
		{"through sentinels, for an instant", plan.TopologySentinel, map[int]uint64{2: 3}, nil, ""},
		{
			"through sentinels",
			plan.TopologySentinel,
			map[int]uint64{2: 3, 3: 9, 4: 7, 5: 1, 6: 1},
			nil,
			"21 requests were refused with READONLY, for 5.0s: the server that the sentinels named",
		},
		{"of a load that knows the servers", plan.TopologyReplication, map[int]uint64{2: 3}, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := merged.New("run", time.Unix(0, 0), time.Second, []string{"set"}, 1)
			for i := range 10 {
				n := tc.refused[i]
				iv := &record.Interval{
					Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
				}
				iv.Ops[0].Sent, iv.Ops[0].OK, iv.Ops[0].Fail = 100+n, 100, n
				iv.Ops[0].Errors[record.ClassReadOnly] = n
				if err := s.Add(0, iv); err != nil {
					t.Fatal(err)
				}
			}
			s.Finish(0)
			p := &plan.Plan{
				Pods:   1,
				Target: plan.Target{Addresses: []string{"a:1"}, Topology: tc.topology},
				Shape:  plan.Shape{Rate: 100, Duration: 10 * time.Second},
			}
			r := NewLoad(p, s, LoadInput{Outcome: Finished, Faults: tc.faults})
			switch {
			case tc.want == "" && len(r.Warnings) > 0:
				t.Errorf("a false alarm: %q", r.Warnings)
			case tc.want != "" && (len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], tc.want) ||
				!strings.Contains(r.Warnings[0], whatToDo(tc.topology))):
				t.Errorf("warnings %q, want one that begins with %q and says what to do", r.Warnings, tc.want)
			}
			for _, w := range r.Warnings {
				if len(w) > 512 {
					t.Errorf("a warning of %d bytes does not fit a status: %s", len(w), w)
				}
			}
		})
	}
}

func whatToDo(topology plan.Topology) string {
	if topology == plan.TopologySentinel {
		return "REPLICAOF NO ONE"
	}
	return "target.sentinel"
}

// Replicas that begin anew without end are a warning of the load, which fits a status.
func TestResyncsAreAWarning(t *testing.T) {
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"set"}, 1)
	for i := range int64(20) {
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
		}
		iv.Ops[0].Sent, iv.Ops[0].OK = 100, 100
		at := (i + 1) * int64(time.Second)
		iv.Servers = []record.Server{
			{
				At:              at,
				Address:         "redis-0.redis-headless.default.svc:6379",
				RunID:           "p",
				FullSyncs:       i,
				BufferedClients: i,
				Replicas:        3,
			},
		}
		for _, replica := range []string{"redis-1", "redis-2", "redis-3", "redis-4"} {
			iv.Servers = append(iv.Servers, record.Server{
				At:          at,
				Address:     replica + ".redis-headless.default.svc:6379",
				RunID:       replica,
				PrimaryLink: record.LinkDown,
			})
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	p := &plan.Plan{
		Pods:   1,
		Target: plan.Target{Addresses: []string{"redis-0:1"}, Topology: plan.TopologyReplication},
		Shape:  plan.Shape{Rate: 100, Duration: 20 * time.Second},
	}
	r := NewLoad(p, s, LoadInput{Outcome: Finished})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "started 19 full resynchronizations") ||
		len(r.Warnings[0]) > 512 {
		t.Errorf("warnings %q", r.Warnings)
	}
}
