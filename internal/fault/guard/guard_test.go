package guard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func TestWithinRadius(t *testing.T) {
	type one struct {
		role  topology.Role
		shard int
		mute  bool
		hit   bool
	}
	const p, r, s = topology.Primary, topology.Replica, topology.Sentinel
	for _, tc := range []struct {
		name    string
		servers []one
		allow   []v1alpha1.Allowance
		refused string // the allowance that would permit it
	}{
		{"the only server", []one{{p, target.NoShard, false, true}}, nil, ""},
		{"the primary of two", []one{{p, target.NoShard, false, true}, {r, target.NoShard, false, false}}, nil, ""},
		{"both of two", []one{{p, target.NoShard, false, true}, {r, target.NoShard, false, true}}, nil, "AllCopies"},
		{
			"both of two, allowed",
			[]one{{p, target.NoShard, false, true}, {r, target.NoShard, false, true}},
			[]v1alpha1.Allowance{v1alpha1.AllowAllCopies},
			"",
		},
		{
			"the one of two that answers",
			[]one{{p, target.NoShard, false, true}, {r, target.NoShard, true, false}},
			nil,
			"AllCopies",
		},
		{
			"all primaries of a cluster",
			[]one{
				{p, 0, false, true},
				{r, 0, false, false},
				{p, 1, false, true},
				{r, 1, false, false},
				{p, 2, false, true},
				{r, 2, false, false},
			},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"two primaries of three",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, true}, {r, 1, false, false}, {p, 2, false, false}},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"the same, allowed",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, true}, {r, 1, false, false}, {p, 2, false, false}},
			[]v1alpha1.Allowance{v1alpha1.AllowMajorityOfPrimaries},
			"",
		},
		{
			"one primary of three",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, false}, {p, 2, false, false}},
			nil,
			"",
		},
		{
			"one primary of three, of which one is down",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, true, false}, {p, 2, false, false}},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"one primary of two",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, false}},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"a replica, whatever its primaries",
			[]one{{p, 0, false, false}, {r, 0, false, true}, {p, 1, true, false}, {p, 2, true, false}},
			nil,
			"",
		},
		{
			"a whole shard",
			[]one{{p, 0, false, false}, {r, 0, false, false}, {p, 1, false, true}, {r, 1, false, true}, {p, 2, false, false}},
			nil,
			"AllCopies",
		},
		{
			"a shard that is down is not this fault's",
			[]one{
				{p, 0, true, false},
				{r, 0, true, false},
				{p, 1, false, true},
				{r, 1, false, false},
				{p, 2, false, false},
				{p, 3, false, false},
				{p, 4, false, false},
			},
			nil,
			"",
		},
		{"a shard without a copy", []one{{p, 0, false, true}, {p, 1, false, false}, {p, 2, false, false}}, nil, ""},
		{
			"one of three sentinels",
			[]one{{s, target.NoShard, false, true}, {s, target.NoShard, false, false}, {s, target.NoShard, false, false}},
			nil,
			"",
		},
		{
			"two of three sentinels",
			[]one{{s, target.NoShard, false, true}, {s, target.NoShard, false, true}, {s, target.NoShard, false, false}},
			nil,
			"MajorityOfSentinels",
		},
		{
			"two of five sentinels",
			[]one{{s, 0, false, true}, {s, 0, false, true}, {s, 0, false, false}, {s, 0, false, false}, {s, 0, false, false}},
			nil,
			"",
		},
		{
			"the other allowance does not help",
			[]one{{s, target.NoShard, false, true}},
			[]v1alpha1.Allowance{v1alpha1.AllowAllCopies},
			"MajorityOfSentinels",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			scene, b := scene{census: &target.Census{}}, &blow{}
			data := map[int]*target.Data{}
			for i, o := range tc.servers {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("redis-%d", i)}}
				srv := target.Server{Pod: pod, State: topology.Server{Role: o.role}, Shard: o.shard}
				c := target.Copy{Name: pod.Name, Server: &srv}
				if o.mute {
					srv.Err, c.Behind = errors.New("no answer"), "does not answer"
				}
				scene.census.Servers = append(scene.census.Servers, srv)
				if o.role == p && o.shard != target.NoShard {
					scene.census.Voters = append(scene.census.Voters, target.Voter{Name: pod.Name, Answers: !o.mute})
				}
				if data[o.shard] == nil {
					data[o.shard] = &target.Data{Name: "the data"}
				}
				if o.role != s {
					data[o.shard].Copies = append(data[o.shard].Copies, c)
				}
				if o.hit {
					b.now = append(b.now, pod.Name)
				}
			}
			for _, d := range data {
				scene.data = append(scene.data, *d)
			}
			err := scene.judge(b, &v1alpha1.RedisFaultSpec{Allow: tc.allow}, contract.Traits{Silences: true})
			if tc.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if wide, is := errors.AsType[*tooWide](err); !is || string(wide.lifts) != tc.refused {
				t.Errorf("%v, want one that %s lifts", err, tc.refused)
			}
		})
	}
}

func TestGuardedProtected(t *testing.T) {
	for value, refused := range map[string]bool{
		"true": true, "True": true, "yes": true, "1": true, "": true, "false": false, "FALSE": false, "absent": false,
	} {
		namespace := &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name:        faulttest.Namespace,
				Annotations: map[string]string{v1alpha1.AnnotationProtected: value},
			},
		}
		if value == "absent" {
			namespace.Annotations = nil
		}
		w := faulttest.NewWorld(t, namespace)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
			&v1alpha1.RedisFaultSpec{}, contract.Traits{Silences: true})
		if !refused {
			if err != nil || len(found) != 1 {
				t.Errorf("%q: %v, %v", value, found, err)
			}
			continue
		}
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonProtected || !p.Lasting ||
			!strings.Contains(p.Message, faulttest.Namespace) {
			t.Errorf("%+v", p)
		}
	}
}

const nodes = `07c37dfeb235213a872192d90877d0cd55635b91 10.0.0.1:6379@16379,, master - 0 1 2 connected 5461-16383
67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 10.0.0.2:6379@16379,, myself,master - 0 1 1 connected 0-5460
292f8b365bb7edb5e285caf0b7e6ddc7265d2f4f 10.0.0.3:6379@16379,, slave 67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 0 1 1 connected
`

func TestSelectShard(t *testing.T) {
	w := faulttest.NewWorld(t)
	for i, role := range []topology.Role{topology.Primary, topology.Primary, topology.Replica} {
		pod := w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
		w.Servers.Change(faulttest.AddressOf(pod), func(s *memredis.State) { s.Mode = "cluster" })
	}
	noPermission := faulttest.Reply(redis.Error("NOPERM this user has no permissions"))
	w.Servers.Script("CLUSTER MYID", noPermission) // then the address identifies a node
	w.Servers.Script("CLUSTER NODES", faulttest.Reply(nodes))
	for shard, want := range map[int32]string{0: "redis-1 redis-2", 1: "redis-0"} {
		found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
			&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: &shard, Mode: v1alpha1.SelectAll}}, contract.Traits{})
		var names []string
		for _, f := range found {
			names = append(names, f.Pod)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("shard %d: %v, %v, want %s", shard, names, err, want)
		}
	}
	_, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: new(int32(2))}}, contract.Traits{})
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNoTarget ||
		!strings.Contains(p.Message, "spec.select.shard") {
		t.Errorf("%+v", p)
	}
	// The primary of shard 0 and its only replica: a whole shard.
	_, err = Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: new(int32(0)), Mode: v1alpha1.SelectAll}},
		contract.Traits{Silences: true})
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonBlastRadius ||
		!strings.Contains(p.Message, "shard 0") {
		t.Errorf("%+v", p)
	}
	w.Servers.Script("CLUSTER NODES", noPermission)
	_, err = Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{}}, contract.Traits{})
	if p := faulttest.ProblemOf(t, err); !p.Lasting || !strings.Contains(p.Message, "+cluster|nodes") {
		t.Errorf("a user without CLUSTER NODES: %+v", p)
	}
}

// KeyDB's active replicas are refused, whatever the fault: no guard can count their copies.
func TestActiveReplicasAreRefused(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Active, nil)
	_, err := Choose(t.Context(), on(w), &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultConfig}},
		contract.Traits{})
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported || !p.Lasting ||
		!strings.Contains(p.Message, "redis-1 has active-replica yes (KeyDB)") {
		t.Errorf("%+v", p)
	}
}
