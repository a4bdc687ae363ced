package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestSelect(t *testing.T) {
	all := faulttest.ByPods(map[string]string{"app": "redis"})
	for _, tc := range []struct {
		name     string
		selector v1alpha1.FaultSelector
		want     string // pods, or the reason of the problem
		wantText []string
	}{
		{"the primary", v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary}, "redis-1", nil},
		{
			"one replica: the first by name",
			v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectOne},
			"redis-0",
			nil,
		},
		{
			"all replicas; who does not answer is none",
			v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectAll},
			"redis-0 redis-2",
			nil,
		},
		{
			"any role; who does not answer is no Redis",
			v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll},
			"redis-0 redis-1 redis-2",
			nil,
		},
		{"the default is one of any role", v1alpha1.FaultSelector{}, "redis-0", nil},
		{"a number", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(2))}, "redis-0 redis-1", nil},
		{
			"all that there are, by number",
			v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(3))},
			"redis-0 redis-1 redis-2",
			nil,
		},
		{
			"more than there are",
			v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(4))},
			v1alpha1.ReasonNoTarget,
			[]string{"spec.select.count", "3"},
		},
		{
			"more replicas than there are",
			v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectCount, Count: new(int32(3))},
			v1alpha1.ReasonNoTarget,
			[]string{"spec.select.count", "2"},
		},
		{
			"a share, rounded down",
			v1alpha1.FaultSelector{Mode: v1alpha1.SelectPercent, Percent: new(int32(99))},
			"redis-0 redis-1",
			nil,
		},
		{
			"a share, at least one",
			v1alpha1.FaultSelector{Mode: v1alpha1.SelectPercent, Percent: new(int32(1))},
			"redis-0",
			nil,
		},
		{
			"the whole share",
			v1alpha1.FaultSelector{Mode: v1alpha1.SelectPercent, Percent: new(int32(100))},
			"redis-0 redis-1 redis-2",
			nil,
		},
		{
			"a share of the replicas",
			v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectPercent, Percent: new(int32(50))},
			"redis-0",
			nil,
		},
		{
			"by names",
			v1alpha1.FaultSelector{Names: []string{"redis-2", "redis-1"}, Mode: v1alpha1.SelectAll},
			"redis-1 redis-2",
			nil,
		},
		{"one of the names", v1alpha1.FaultSelector{Names: []string{"redis-2", "redis-1"}}, "redis-1", nil},
		{
			"a name of another role",
			v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Names: []string{"redis-0", "redis-1"}},
			v1alpha1.ReasonNoTarget,
			[]string{"spec.select.names", "in pod redis-1: redis-1 is Primary"},
		},
		{
			"names that do not exist",
			v1alpha1.FaultSelector{Names: []string{"redis-0", "redis-8", "redis-7"}},
			v1alpha1.ReasonNoTarget,
			[]string{"in pod redis-7, redis-8"},
		},
		{
			"a name that does not answer",
			v1alpha1.FaultSelector{Names: []string{"redis-3"}},
			v1alpha1.ReasonNoTarget,
			[]string{"redis-3 did not answer"},
		},
		{"a zone", v1alpha1.FaultSelector{Zone: "b", Mode: v1alpha1.SelectAll}, "redis-1 redis-2", nil},
		{"a role in a zone", v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Zone: "b"}, "redis-1", nil},
		{
			"no server in the zone",
			v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Zone: "a"},
			v1alpha1.ReasonNoTarget,
			[]string{"spec.select.zone", "redis-1 is in b"},
		},
		{
			"a name in another zone",
			v1alpha1.FaultSelector{Names: []string{"redis-0", "redis-1"}, Zone: "b"},
			v1alpha1.ReasonNoTarget,
			[]string{"in pod redis-0"},
		},
		{
			"no server of the shard",
			v1alpha1.FaultSelector{Shard: new(int32(2))},
			v1alpha1.ReasonNoTarget,
			[]string{"spec.select.shard: no server of shard 2 answers: redis-0 is of no shard; ", "redis-3 did not answer"},
		},
		{
			"mode Count without a count",
			v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount},
			v1alpha1.ReasonNoTarget,
			[]string{"spec.select.count"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			faulttest.RedisPods(w)
			zones(w)
			found, err := Choose(t.Context(), faulttest.On(w.Deps(), all).Redis, &v1alpha1.RedisFaultSpec{Select: tc.selector},
				contract.Traits{})
			if err != nil {
				problem := faulttest.ProblemOf(t, err)
				if problem.Reason != tc.want || problem.Lasting {
					t.Errorf("problem %s (lasting %v), want %s, to be tried again", problem.Reason, problem.Lasting, tc.want)
				}
				for _, text := range tc.wantText {
					if !strings.Contains(problem.Message, text) {
						t.Errorf("got message %q, want one that contains %q", problem.Message, text)
					}
				}
				return
			}
			names := make([]string, len(found))
			for i, f := range found {
				names[i] = f.Pod
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("chose %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSelectWithoutMatchingRole(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Replica, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", "", nil)
	_, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary}}, contract.Traits{})
	problem := faulttest.ProblemOf(t, err)
	for _, text := range []string{
		"Primary", "redis-0 is Replica", "redis-1 did not answer",
		faulttest.ErrRefused.Error(),
	} {
		if !strings.Contains(problem.Message, text) {
			t.Errorf("got message %q, want one that contains %q", problem.Message, text)
		}
	}
	if problem.Reason != v1alpha1.ReasonNoTarget || problem.Lasting {
		t.Errorf("%+v", problem)
	}
}

// The record of a target contains everything that an injector of another process needs.
func TestSelectRecords(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].RestartCount = 3
	})
	found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{}}, contract.Traits{})
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.FaultTarget{
		Pod: "redis-0", UID: "u0", Node: "node-1", Role: v1alpha1.RolePrimary, Address: "10.0.0.1:6379", RunID: "run-u0",
		RestartCount: 3, Container: "redis",
	}
	if !reflect.DeepEqual(found[0], want) {
		t.Errorf("recorded %+v, want %+v", found[0], want)
	}
}

// Many servers are queried concurrently, each with its own answer.
func TestSelectKeepsAnswersApart(t *testing.T) {
	w := faulttest.NewWorld(t)
	for i := range 40 {
		role := topology.Replica
		if i == 33 {
			role = topology.Primary
		}
		w.Pod(fmt.Sprintf("redis-%02d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
	}
	found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}}, contract.Traits{})
	if err != nil || len(found) != 40 {
		t.Fatalf("%d found: %v", len(found), err)
	}
	for i, f := range found {
		if f.RunID != fmt.Sprintf("run-u%d", i) || (f.Role == v1alpha1.RolePrimary) != (i == 33) {
			t.Errorf("record %d: %+v", i, f)
		}
	}
}

// zones puts redis-1 and redis-2 into zone b, the others into zone a.
func zones(w *faulttest.World) {
	for _, zone := range []string{"a", "b"} {
		w.AddNode("in-"+zone, func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone })
	}
	for i, zone := range []string{"a", "b", "b", "a"} {
		pod := &corev1.Pod{}
		faulttest.Must(w.T, w.Cluster.Get(w.T.Context(),
			client.ObjectKey{Namespace: faulttest.Namespace, Name: fmt.Sprintf("redis-%d", i)}, pod))
		pod.Spec.NodeName = "in-" + zone
		faulttest.Must(w.T, w.Cluster.Update(w.T.Context(), pod))
	}
}

// Without the right to read nodes a selection by zone says so, and is not tried again.
func TestSelectZoneWithoutTheRight(t *testing.T) {
	w := faulttest.NewWorld(t)
	faulttest.RedisPods(w)
	w.Hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
		options ...client.GetOption,
	) error {
		if _, node := into.(*corev1.Node); node {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, key.Name, errors.New("no rule"))
		}
		return c.Get(ctx, key, into, options...)
	}
	_, err := Choose(t.Context(), on(w), &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Zone: "a"}},
		contract.Traits{})
	if p := faulttest.ProblemOf(t, err); !p.Lasting ||
		!strings.Contains(p.Message, "spec.select.zone: the operator may not read node node-1") {
		t.Errorf("%+v", p)
	}
}

// A seed determines the choice, each seed its own, and every server can be chosen.
func TestSelectAtRandom(t *testing.T) {
	w := faulttest.NewWorld(t)
	for i := range 10 {
		w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), topology.Replica, nil)
	}
	spec := &v1alpha1.RedisFaultSpec{
		Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(3)), Pick: v1alpha1.PickRandom},
	}
	chosen, times := map[string]bool{}, map[string]int{}
	for seed := range int32(100) {
		selected, err := Select(t.Context(), on(w), spec, contract.Traits{}, &seed, nil)
		faulttest.Must(t, err)
		repeated, err := Select(t.Context(), on(w), spec, contract.Traits{}, &seed, nil)
		faulttest.Must(t, err)
		first, again := selected.Targets, repeated.Targets
		if podsOf(first) != podsOf(again) || len(first) != 3 || !slices.IsSorted(strings.Fields(podsOf(first))) {
			t.Fatalf("seed %d: %s, then %s", seed, podsOf(first), podsOf(again))
		}
		chosen[podsOf(first)] = true
		for _, f := range first {
			times[f.Pod]++
		}
	}
	for i := range 10 {
		if n := times[fmt.Sprintf("redis-%d", i)]; n < 15 || n > 45 {
			t.Errorf("redis-%d was chosen %d times of 100, want about 30", i, n)
		}
	}
	if len(chosen) < 40 {
		t.Errorf("100 seeds gave %d choices", len(chosen))
	}
	if got, err := Select(t.Context(), on(w), spec, contract.Traits{}, new(int32(7)), nil); err != nil ||
		podsOf(got.Targets) != "redis-0 redis-6 redis-8" {
		t.Errorf("seed 7 gave %s, %v: a seed in the status of an older fault must give the same", podsOf(got.Targets), err)
	}
	if _, err := Select(t.Context(), on(w), spec, contract.Traits{}, nil, nil); err == nil {
		t.Error("a selection at random without a seed")
	}
}

// A node is named on which no server of the selected shard answers: it is there that the fault would act.
func TestNoServerOfTheShardOnTheNode(t *testing.T) {
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	servers := []target.Server{
		{Pod: pod("redis-1"), Shard: 1},
		{Pod: pod("redis-3"), Shard: target.NoShard, Err: errors.New("connection refused")},
	}
	want := "spec.select.shard: no server of shard 0 on node worker-2 answers: redis-1 is of shard 1; redis-3 did not " +
		"answer (connection refused)"
	if _, err := match(t.Context(), target.Redis{}, servers, "worker-2", v1alpha1.FaultSelector{
		Shard: new(int32(0)),
	}, nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Protected mode is no matter of credentials.
func TestAllServersReject(t *testing.T) {
	for reply, reason := range map[string]string{
		"DENIED Redis is running in protected mode because": v1alpha1.ReasonProtectedMode,
		"WRONGPASS invalid username-password pair":          v1alpha1.ReasonAuthenticationFailed,
		"NOAUTH Authentication required.":                   v1alpha1.ReasonAuthenticationFailed,
		"LOADING Redis is loading the dataset in memory":    "",
	} {
		err := rejected([]target.Server{{
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "redis-0"}},
			Err: fmt.Errorf("INFO at 10.0.0.1:6379: %w", redis.Error(reply)),
		}}, v1alpha1.FaultSelector{})
		p, _ := errors.AsType[*problem.Problem](err)
		if p == nil && reason != "" || p != nil && (p.Reason != reason || !strings.Contains(p.Message, reply)) {
			t.Errorf("%s: %v, want %s", reply, err, reason)
		}
	}
}
