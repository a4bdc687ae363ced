package fault

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

func primary(runID string, online int) observed {
	return observed{runID: runID, role: topology.Primary, online: online}
}

func replica(runID string) observed {
	return observed{runID: runID, role: topology.Replica, linked: true}
}

func node(role topology.Role, ok bool, suspected, failed int) observed {
	return observed{
		runID:   "same",
		role:    role,
		cluster: clusterState{known: true, ok: ok, suspected: suspected, failed: failed},
	}
}

func TestCourse(t *testing.T) {
	alone := map[string]observed{"redis-0": primary("a", 0)}
	pair := map[string]observed{"redis-0": primary("a", 1), "redis-1": replica("b")}
	old := map[string]observed{"redis-0": {runID: "a", role: topology.Primary, up: time.Minute}}
	oldPair := map[string]observed{
		"redis-0": {runID: "a", role: topology.Primary, online: 1, up: time.Minute},
		"redis-1": {runID: "b", role: topology.Replica, linked: true, up: time.Minute},
	}
	for _, tc := range []struct {
		name  string
		looks []map[string]observed
		want  []string
	}{
		{"nothing happens", []map[string]observed{pair, pair, pair}, nil},
		{
			"a server is too slow for the first look, and starts anew later",
			[]map[string]observed{
				{},
				old,
				{},
				{"redis-0": {runID: "z", role: topology.Primary, loading: true}},
				{"redis-0": primary("z", 0)},
			},
			[]string{"3 Loading redis-0", "4 DatasetLoaded redis-0"},
		},
		{
			"a replica is too slow for the first look",
			[]map[string]observed{old, oldPair, {"redis-0": primary("a", 0)}, oldPair},
			[]string{"3 ReplicasResynced replicas"},
		},
		{
			"a process begins between the first look and the second",
			[]map[string]observed{{}, {"redis-0": {runID: "z", role: topology.Primary, up: 2 * time.Second}}},
			[]string{"1 DatasetLoaded redis-0"},
		},
		{
			"a new process that loads first",
			[]map[string]observed{
				alone,
				{},
				{"redis-0": {runID: "z", role: topology.Primary, loading: true}},
				{"redis-0": primary("z", 0)},
				{"redis-0": primary("z", 0)},
			},
			[]string{"2 Loading redis-0", "3 DatasetLoaded redis-0"},
		},
		{
			"the same process loads the data of its primary",
			[]map[string]observed{
				pair,
				{"redis-0": primary("a", 0), "redis-1": {runID: "b", role: topology.Replica, loading: true}},
				pair,
			},
			[]string{"2 ReplicasResynced replicas"},
		},
		{"a replica is promoted, the old primary follows it", []map[string]observed{
			pair,
			{"redis-1": {runID: "b", role: topology.Replica}},
			{"redis-1": primary("b", 0)},
			{"redis-0": replica("z"), "redis-1": primary("b", 1)},
		}, []string{"2 Promoted redis-1", "3 DatasetLoaded redis-0", "3 ReplicasResynced replicas"}},
		{"a failover of healthy servers", []map[string]observed{
			pair,
			{"redis-0": primary("a", 1), "redis-1": primary("b", 0)},
			{"redis-0": {runID: "a", role: topology.Replica}, "redis-1": primary("b", 1)},
			{"redis-0": replica("a"), "redis-1": primary("b", 1)},
		}, []string{"1 Promoted redis-1", "3 ReplicasResynced replicas"}},
		{
			"a cluster loses a shard",
			[]map[string]observed{
				{
					"c-0": node(topology.Primary, true, 0, 0),
					"c-1": node(topology.Replica, true, 0, 0),
					"c-2": node(topology.Primary, true, 0, 0),
				},
				{"c-1": node(topology.Replica, true, 5461, 0), "c-2": node(topology.Primary, true, 0, 0)},
				{"c-1": node(topology.Replica, false, 0, 5461), "c-2": node(topology.Primary, false, 0, 5461)},
				{"c-1": node(topology.Primary, true, 0, 0), "c-2": node(topology.Primary, false, 0, 5461)},
				{"c-1": node(topology.Primary, true, 0, 0), "c-2": node(topology.Primary, true, 0, 0)},
			},
			[]string{
				"1 SubjectivelyDown cluster", "2 ClusterDown cluster", "2 ObjectivelyDown cluster", "3 Promoted c-1",
				"4 SlotsCovered cluster",
			},
		},
		{"a node joins a cluster", []map[string]observed{
			{"c-0": node(topology.Primary, true, 0, 0), "c-1": node(topology.Replica, true, 0, 0)},
			{
				"c-0": node(topology.Primary, true, 0, 0),
				"c-1": node(topology.Replica, true, 0, 0),
				"c-2": node(topology.Primary, false, 0, 0),
			},
			{
				"c-0": node(topology.Primary, true, 0, 0),
				"c-1": node(topology.Replica, true, 0, 0),
				"c-2": node(topology.Replica, true, 0, 0),
			},
		}, []string{"1 DatasetLoaded c-2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCourse()
			var got []string
			for i, look := range tc.looks {
				at := time.Unix(int64(i), 0)
				for _, s := range c.note(at, look) {
					got = append(got, fmt.Sprintf("%d %s %s", s.At.Unix(), s.Event, s.Object))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got message %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCourseRecordsPublishedEvents(t *testing.T) {
	c := newCourse()
	at := time.Unix(7, 0)
	for _, m := range []struct{ channel, payload, want string }{
		{"+sdown", "slave 10.0.0.2:6379 10.0.0.2 6379 @ mymaster 10.0.0.1 6379", ""},
		{"+sdown", "master mymaster 10.0.0.1 6379", contract.EventSubjectivelyDown},
		{"+sdown", "master mymaster 10.0.0.1 6379", ""}, // another sentinel, later
		{"+odown", "master mymaster 10.0.0.1 6379 #quorum 2/2", contract.EventObjectivelyDown},
		{"+new-epoch", "1", ""},
		{"+elected-leader", "master mymaster 10.0.0.1 6379", contract.EventElected},
		{"+switch-master", "mymaster 10.0.0.1 6379 10.0.0.2 6379", contract.EventSwitched},
	} {
		seen := c.notePublished(at, "10.0.0.9:26379", m.channel, m.payload)
		if m.want == "" && len(seen) > 0 ||
			m.want != "" && (len(seen) != 1 || seen[0].Event != m.want || !seen[0].At.Equal(at)) {
			t.Errorf("%s %s: %+v, want %q", m.channel, m.payload, seen, m.want)
		}
	}
}

func TestObservedFromInfo(t *testing.T) {
	of := observedFrom(redis.ParseInfo(
		"# Server\r\nrun_id:abc\r\nuptime_in_seconds:61\r\n# Replication\r\nrole:master\r\n" +
			"slave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=0\r\n" +
			"slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\nloading:0\r\n"))
	of.cluster = clusterStateFrom(
		redis.ParseInfo("cluster_state:fail\r\ncluster_slots_pfail:3\r\ncluster_slots_fail:5461\r\n"))
	want := observed{
		runID:   "abc",
		up:      61 * time.Second,
		role:    topology.Primary,
		online:  1,
		cluster: clusterState{known: true, suspected: 3, failed: 5461},
	}
	if of != want {
		t.Errorf("%+v, want %+v", of, want)
	}
	of = observedFrom(redis.ParseInfo("role:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:1\r\nloading:1\r\n"))
	if want := (observed{role: topology.Replica, loading: true}); of != want {
		t.Errorf("%+v, want %+v", of, want)
	}
}
