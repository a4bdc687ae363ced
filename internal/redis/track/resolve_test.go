package track

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/redis/topology"
)

func TestResolveReplication(t *testing.T) {
	primary := func(id string, replicas ...string) serverAnswer {
		return serverAnswer{RoleReply: topology.RoleReply{Role: topology.Primary, Replicas: replicas}, runID: id}
	}
	replica := func(id, link string) serverAnswer {
		return serverAnswer{RoleReply: topology.RoleReply{Role: topology.Replica, Link: link}, runID: id}
	}
	before := topology.NewMap(topology.KindReplication, 1, []topology.Shard{{Primary: "a:1", Replicas: []string{"b:1"}}})
	for _, tc := range []struct {
		name    string
		before  *topology.Map
		answers map[string]any
		want    topology.Shard
		problem string // prefix of the problem
	}{
		{
			"one primary",
			nil,
			map[string]any{"a:1": primary("1"), "b:1": replica("2", "connected"), "c:1": replica("3", "connecting")},
			topology.Shard{Primary: "a:1", Replicas: []string{"b:1", "c:1"}},
			"",
		},
		{
			"a replica in its first synchronization does not serve",
			nil,
			map[string]any{"a:1": primary("1"), "b:1": replica("2", "sync")},
			topology.Shard{Primary: "a:1"},
			"",
		},
		{
			"failover",
			before,
			map[string]any{"a:1": replica("1", "connected"), "b:1": primary("2")},
			topology.Shard{Primary: "b:1", Replicas: []string{"a:1"}},
			"",
		},
		{
			"split keeps the old",
			before,
			map[string]any{"a:1": primary("1"), "b:1": primary("2")},
			topology.Shard{Primary: "a:1"},
			"split brain: a:1, b:1",
		},
		{
			"split at first chooses nothing",
			nil,
			map[string]any{"a:1": primary("1"), "b:1": primary("2")},
			topology.Shard{},
			"split",
		},
		{
			"no answer keeps the old",
			before,
			map[string]any{"b:1": replica("2", "connect")},
			topology.Shard{Primary: "a:1", Replicas: []string{"b:1"}},
			"no server",
		},
		{
			"one server by two names is no split",
			nil,
			map[string]any{"10.0.0.1:1": primary("1"), "a:1": primary("1")},
			topology.Shard{Primary: "a:1"},
			"",
		},
		{
			"without run IDs each address counts",
			nil,
			map[string]any{"a:1": primary(""), "b:1": replica("", "")},
			topology.Shard{Primary: "a:1", Replicas: []string{"b:1"}},
			"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := replication{seeds: []string{"a:1"}}.resolve(tc.before, tc.answers)
			if diff := cmp.Diff([]topology.Shard{tc.want}, m.Shards); diff != "" || !strings.HasPrefix(m.Problem, tc.problem) ||
				(m.Problem == "") != (tc.problem == "") {
				t.Errorf("problem %q, -want +got\n%s", m.Problem, diff)
			}
		})
	}
	_, known := replication{}.resolve(nil, map[string]any{"a:1": primary("1", "b:1", "c:1")})
	if !slices.Equal(known, []string{"b:1", "c:1"}) {
		t.Errorf("known are %v", known)
	}
}

func TestResolveSentinels(t *testing.T) {
	answerOf := func(id, primary string, replicas ...string) sentinelAnswer {
		return sentinelAnswer{id: id, name: "m", primary: primary, replicas: replicas}
	}
	before := topology.NewMap(topology.KindSentinel, 1, []topology.Shard{{ID: "m", Primary: "a:1"}})
	for _, tc := range []struct {
		name    string
		seeds   []string
		before  *topology.Map
		answers map[string]any
		want    topology.Shard
		problem string
	}{
		{
			"all agree",
			[]string{"s1", "s2", "s3"},
			nil,
			map[string]any{"s1": answerOf("1", "a:1", "b:1"), "s2": answerOf("2", "a:1", "b:1"), "s3": answerOf("3", "a:1")},
			topology.Shard{ID: "m", Primary: "a:1", Replicas: []string{"b:1"}},
			"",
		},
		{
			"two of three",
			[]string{"s1", "s2", "s3"},
			before,
			map[string]any{"s1": answerOf("1", "a:1"), "s2": answerOf("2", "b:1"), "s3": answerOf("3", "b:1")},
			topology.Shard{ID: "m", Primary: "b:1"},
			"",
		},
		{
			"one of three keeps the old",
			[]string{"s1", "s2", "s3"},
			before,
			map[string]any{"s2": answerOf("2", "b:1")},
			topology.Shard{ID: "m", Primary: "a:1"},
			"no majority of the 3",
		},
		{
			"one of three at first is nothing",
			[]string{"s1", "s2", "s3"},
			nil,
			map[string]any{"s2": answerOf("2", "b:1")},
			topology.Shard{ID: "m"},
			"no majority of the 3 sentinels: 1 for b:1",
		},
		{
			"one of two is no majority",
			[]string{"s1", "s2"},
			before,
			map[string]any{"s1": answerOf("1", "a:1"), "s2": answerOf("2", "b:1")},
			topology.Shard{ID: "m", Primary: "a:1"},
			"no majority",
		},
		{
			"no answer",
			[]string{"s1"},
			before,
			map[string]any{},
			topology.Shard{ID: "m", Primary: "a:1"},
			"no majority of the 1 sentinels: none answers",
		},
		{
			"one by its Service and by its address is one",
			[]string{"svc"},
			before,
			map[string]any{
				"svc": answerOf("1", "b:1"),
				"s1":  answerOf("1", "b:1"),
				"s2":  answerOf("2", "a:1"),
				"s3":  answerOf("3", "a:1"),
			},
			topology.Shard{ID: "m", Primary: "a:1"},
			"",
		},
		{
			"announced ones count once they answer",
			[]string{"s1"},
			before,
			map[string]any{"s1": answerOf("1", "b:1"), "s2": answerOf("2", "a:1")},
			topology.Shard{ID: "m", Primary: "a:1"},
			"no majority of the 2",
		},
		{
			"without identities",
			[]string{"s1", "s2"},
			nil,
			map[string]any{"s1": answerOf("", "a:1"), "s2": answerOf("", "a:1")},
			topology.Shard{ID: "m", Primary: "a:1"},
			"",
		},
		{
			"the primary is no replica",
			[]string{"s1"},
			nil,
			map[string]any{"s1": answerOf("1", "a:1", "a:1", "b:1")},
			topology.Shard{ID: "m", Primary: "a:1", Replicas: []string{"b:1"}},
			"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := sentinels{seeds: tc.seeds, heard: map[string]string{}}.resolve(tc.before, tc.answers)
			if diff := cmp.Diff([]topology.Shard{tc.want}, m.Shards); diff != "" || !strings.HasPrefix(m.Problem, tc.problem) ||
				(m.Problem == "") != (tc.problem == "") {
				t.Errorf("problem %q, -want +got\n%s", m.Problem, diff)
			}
		})
	}
}

// nodes makes a view of lines as CLUSTER NODES writes them, shortened to "id flags primary epoch slots".
func nodes(t *testing.T, lines ...string) topology.View {
	t.Helper()
	var text strings.Builder
	for _, line := range lines {
		w := strings.Fields(line)
		text.WriteString(w[0] + " " + w[0] + ":1@2 " + w[1] + " " + w[2] + " 0 0 " + w[3] + " connected " +
			strings.Join(w[4:], " ") + "\n")
	}
	v, err := topology.ParseNodes(text.String(), "asked:1")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// look is one poll of a cluster: the reply of each node that answers.
type look map[string]topology.View

func (l look) after(before *topology.Map) *topology.Map {
	answers := map[string]any{}
	for address, v := range l {
		answers[address] = v
	}
	m, _ := cluster{}.resolve(before, answers)
	return m
}

func TestResolveCluster(t *testing.T) {
	first := look{
		"a:1": nodes(t, "a master - 1 0-8191", "ar slave a 1", "b master - 2 8192-16383", "br slave b 2"),
	}.after(nil)
	want := []topology.Shard{
		{ID: "a", Primary: "a:1", Replicas: []string{"ar:1"}, Slots: 8192},
		{ID: "b", Primary: "b:1", Replicas: []string{"br:1"}, Slots: 8192},
	}
	if diff := cmp.Diff(want, first.Shards); diff != "" {
		t.Fatal(diff)
	}
	for _, tc := range []struct {
		name string
		look look
		want []topology.Shard
	}{
		{
			"failover, the old primary is down",
			look{"b:1": nodes(t, "a master,fail - 1", "ar master - 3 0-8191", "b master - 2 8192-16383", "br slave b 2")},
			[]topology.Shard{{ID: "a", Primary: "ar:1", Slots: 8192}, want[1]},
		},
		{
			"failover, the old primary is back",
			look{"b:1": nodes(t, "a slave ar 3", "ar master - 3 0-8191", "b master - 2 8192-16383", "br slave b 2")},
			[]topology.Shard{{ID: "a", Primary: "ar:1", Replicas: []string{"a:1"}, Slots: 8192}, want[1]},
		},
		{
			"a primary that failed stays until another is there",
			look{"b:1": nodes(t, "a master,fail - 1 0-8191", "ar slave a 1", "b master - 2 8192-16383", "br slave b 2")},
			want,
		},
		{
			"the highest epoch wins over most views",
			look{
				"a:1":  nodes(t, "a master - 1 0-8191", "ar slave a 1", "b master - 2 8192-16383", "br slave b 2"),
				"b:1":  nodes(t, "a master - 1 0-8191", "ar slave a 1", "b master - 2 8192-16383", "br slave b 2"),
				"ar:1": nodes(t, "a slave ar 3", "ar master - 3 0-8191", "b master - 2 8192-16383", "br slave b 2"),
			},
			[]topology.Shard{{ID: "a", Primary: "ar:1", Replicas: []string{"a:1"}, Slots: 8192}, want[1]},
		},
		{
			"a slot that moved",
			look{
				"a:1": nodes(t, "a master - 1 0-8191", "ar slave a 1", "b master - 2 8192-16383", "br slave b 2"),
				"b:1": nodes(t, "a master - 1 1-8191", "ar slave a 1", "b master - 3 0 8192-16383", "br slave b 3"),
			},
			[]topology.Shard{
				{ID: "a", Primary: "a:1", Replicas: []string{"ar:1"}, Slots: 8191},
				{ID: "b", Primary: "b:1", Replicas: []string{"br:1"}, Slots: 8193},
			},
		},
		{
			"a new shard is appended once it has slots",
			look{
				"b:1": nodes(t, "c master - 4 0-99", "a master - 1 100-8191", "ar slave a 1", "b master - 2 8192-16383",
					"br slave b 2", "d master - 0"),
			},
			[]topology.Shard{
				{ID: "a", Primary: "a:1", Replicas: []string{"ar:1"}, Slots: 8092},
				want[1],
				{ID: "c", Primary: "c:1", Slots: 100},
			},
		},
		{
			"a shard without slots keeps its number",
			look{"b:1": nodes(t, "a master - 1", "ar slave a 1", "b master - 2 0-16383", "br slave b 2")},
			[]topology.Shard{
				{ID: "a", Primary: "a:1", Replicas: []string{"ar:1"}},
				{ID: "b", Primary: "b:1", Replicas: []string{"br:1"}, Slots: 16384},
			},
		},
		{
			"a shard that joined another keeps its number",
			look{"b:1": nodes(t, "a slave b 2", "ar slave b 2", "b master - 2 0-16383", "br slave b 2")},
			[]topology.Shard{{ID: "a"}, {ID: "b", Primary: "b:1", Replicas: []string{"a:1", "ar:1", "br:1"}, Slots: 16384}},
		},
		{
			"a replica that changed its shard and was promoted there takes no number",
			look{"a:1": nodes(t, "a master - 1 0-8191", "ar master - 3 8192-16383", "b slave ar 3", "br slave ar 3")},
			[]topology.Shard{
				{ID: "a", Primary: "a:1", Slots: 8192},
				{ID: "b", Primary: "ar:1", Replicas: []string{"b:1", "br:1"}, Slots: 8192},
			},
		},
		{"no answer", look{}, want},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.look.after(first).Shards); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(want, first.Shards); diff != "" {
				t.Errorf("the previous map was changed\n%s", diff)
			}
		})
	}
	if m := (look{}).after(first); m.Problem == "" {
		t.Error("got no problem though no node answers")
	}
}

// CLUSTER SLOTS does not list a replica while it is not available, but it may be elected: the shard keeps its number,
// with a user who may not send CLUSTER NODES, too.
func TestUnlistedReplicaIsElected(t *testing.T) {
	listed := []string{"a master - 1 0-8191", "b master - 2 8192-16383"}
	told := nodes(t, append(listed, "ar slave a 1")...)
	elected := look{"b:1": nodes(t, "ar master - 3 1-8191", "b master - 2 0 8192-16383")}
	for _, tc := range []struct {
		name   string
		before func() *topology.Map
		known  bool // a MOVED to the replica names a server that the map knows
	}{
		{"known", func() *topology.Map {
			v := nodes(t,
				listed...)
			v.AddUnlisted(told)
			return look{"b:1": v}.after(nil)
		}, true},
		{"unknown", func() *topology.Map { return look{"b:1": nodes(t, listed...)}.after(nil) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.before()
			if r := before.Replicas(); len(r) > 0 {
				t.Errorf("replicas %v are read from", r)
			}
			moved, known := before.WithMoved(5, "ar:1")
			if n, _ := moved.ShardOf(5); known != tc.known || len(moved.Shards) != 2 ||
				(moved.Shards[n].Primary == "ar:1") != tc.known {
				t.Errorf("after a MOVED: %t, %+v", known, moved.Shards)
			}
			for _, m := range []*topology.Map{before, moved} {
				got := elected.after(m).Shards
				want := []topology.Shard{{ID: "a", Primary: "ar:1", Slots: 8191}, {ID: "b", Primary: "b:1", Slots: 8193}}
				if diff := cmp.Diff(want, got[:2]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Without epochs, which an ACL may forbid to query, the majority of views decides.
func TestResolveClusterWithoutEpochs(t *testing.T) {
	old := nodes(t, "a master - 0 0-8191", "b master - 0 8192-16383")
	fresh := nodes(t, "a master - 0 1-8191", "b master - 0 0 8192-16383")
	old.Epochs, fresh.Epochs = nil, nil
	m := look{"a:1": fresh, "b:1": fresh, "c:1": old}.after(nil)
	// in the order of their first slots
	want := []topology.Shard{{ID: "b", Primary: "b:1", Slots: 8193}, {ID: "a", Primary: "a:1", Slots: 8191}}
	if diff := cmp.Diff(want, m.Shards); diff != "" {
		t.Error(diff)
	}
}

func TestMoved(t *testing.T) {
	start := topology.NewMap(topology.KindCluster, 1,
		[]topology.Shard{{ID: "a", Primary: "a:1", Replicas: []string{"ar:1"}}, {ID: "b", Primary: "b:1"}},
		topology.SlotRange{First: 0, Last: 99, Shard: 0},
		topology.SlotRange{First: 100, Last: 199, Shard: 1})
	shardOf := func(m *topology.Map, slot uint16) int {
		n, ok := m.ShardOf(slot)
		if !ok {
			return -1
		}
		return n
	}
	if same, known := start.WithMoved(5, "a:1"); same != start || !known {
		t.Error("got a new map without a change")
	}
	moved, known := start.WithMoved(5, "b:1")
	if !known || shardOf(moved, 5) != 1 || moved.Shards[0].Slots != 99 || moved.Shards[1].Slots != 101 ||
		shardOf(start, 5) != 0 {
		t.Errorf("to another shard: %+v", moved.Shards)
	}
	promoted, _ := start.WithMoved(5, "ar:1")
	if s := promoted.Shards[0]; s.Primary != "ar:1" || len(s.Replicas) != 0 || shardOf(promoted, 6) != 0 ||
		!slices.Equal(start.Shards[0].Replicas, []string{"ar:1"}) {
		t.Errorf("to a replica: %+v, before %+v", promoted.Shards, start.Shards)
	}
	for _, address := range []string{"c:1", ""} {
		if same, known := start.WithMoved(5, address); same != start || known {
			t.Errorf("to the unknown address %q: %+v", address, same.Shards)
		}
	}
	unserved, _ := start.WithMoved(300, "b:1")
	if n := shardOf(unserved, 300); n != 1 {
		t.Errorf("a slot without a primary belongs to shard %d", n)
	}
	// A shard keeps its identity in later polls.
	before := nodes(t, "a master - 1 0-99", "b master - 2 100-199")
	before.Spare = []string{"c:1"}
	taken, _ := look{"a:1": before}.after(nil).WithMoved(5, "c:1")
	found := look{"c:1": nodes(t, "a master - 1 0-4 6-99", "b master - 2 100-199", "c master - 3 5")}.after(taken)
	if diff := cmp.Diff([]topology.Shard{
		{ID: "a", Primary: "a:1", Slots: 99},
		{ID: "b", Primary: "b:1", Slots: 100},
		{ID: "c", Primary: "c:1", Slots: 1},
	}, found.Shards); diff != "" {
		t.Error(diff)
	}
}

func TestKindOf(t *testing.T) {
	for _, tc := range []struct {
		hellos []hello
		silent int // further addresses
		want   topology.Kind
	}{
		{[]hello{{"standalone", topology.Primary, ""}}, 0, topology.KindStandalone},
		{[]hello{{"standalone", topology.Replica, ""}}, 0, topology.KindStandalone},
		// proxies
		{[]hello{{"standalone", topology.Unknown, ""}, {"standalone", topology.Unknown, ""}}, 0, topology.KindStandalone},
		{[]hello{{"standalone", topology.Primary, "x"}, {"standalone", topology.Primary, "x"}}, 0, topology.KindStandalone},
		{[]hello{{"standalone", topology.Primary, "x"}, {"standalone", topology.Primary, "y"}}, 0, ""},
		{[]hello{{"standalone", topology.Primary, "x"}}, 1, ""},
		{[]hello{{"standalone", topology.Replica, ""}}, 1, ""},
		{nil, 1, ""},
		{[]hello{{"standalone", topology.Primary, "x"}, {"standalone", topology.Replica, ""}}, 1, topology.KindReplication},
		{[]hello{{"standalone", topology.Primary, ""}, {"cluster", topology.Replica, ""}}, 1, topology.KindCluster},
		{[]hello{{"sentinel", topology.Unknown, ""}}, 2, topology.KindSentinel},
	} {
		known := map[string]hello{}
		for i, h := range tc.hellos {
			known[strconv.Itoa(i)] = h
		}
		if got := kindOf(known, len(tc.hellos)+tc.silent); got != tc.want {
			t.Errorf("%v and %d silent ones are %q, not %q", tc.hellos, tc.silent, got, tc.want)
		}
	}
}

func TestUnassignedSlots(t *testing.T) {
	full := nodes(t, "a master - 1 0-8191", "b master - 2 8192-16383")
	half := nodes(t, "a master - 1 0-8191")
	partial := half
	partial.Partial = true
	for name, tc := range map[string]struct {
		look look
		want string
	}{
		"all":           {look{"a:1": full}, ""},
		"half":          {look{"a:1": half}, "8192 of 16384 slots belong to no node"},
		"none":          {look{"a:1": nodes(t, "a master - 1")}, "no slot belongs to a node"},
		"known by one":  {look{"a:1": half, "b:1": full}, ""},
		"half suffices": {look{"a:1": partial}, ""},
	} {
		if got := tc.look.after(nil).Problem; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
