package guard

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
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
		{"one replica: the first by name", v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectOne}, "redis-0", nil},
		{"all replicas; who does not answer is none", v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectAll}, "redis-0 redis-2", nil},
		{"any role; who does not answer is no Redis", v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}, "redis-0 redis-1 redis-2", nil},
		{"the default is one of any role", v1alpha1.FaultSelector{}, "redis-0", nil},
		{"a number", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(2))}, "redis-0 redis-1", nil},
		{"all that there are, by number", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(3))}, "redis-0 redis-1 redis-2", nil},
		{"more than there are", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(4))}, v1alpha1.ReasonNoTarget, []string{"spec.select.count", "3"}},
		{"more replicas than there are", v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectCount, Count: new(int32(3))}, v1alpha1.ReasonNoTarget, []string{"spec.select.count", "2"}},
		{"mode Count without a count", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount}, v1alpha1.ReasonNoTarget, []string{"spec.select.count"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			faulttest.RedisPods(w)
			found, err := Choose(t.Context(), faulttest.On(w.Deps(), all).Redis, &v1alpha1.RedisFaultSpec{Select: tc.selector}, contract.Traits{})
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
	_, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis, &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary}}, contract.Traits{})
	problem := faulttest.ProblemOf(t, err)
	for _, text := range []string{"Primary", "redis-0 is Replica", "redis-1 did not answer", faulttest.ErrSilent.Error()} {
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
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 })
	found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis, &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{}}, contract.Traits{})
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Node: "node-1", Role: v1alpha1.RolePrimary, Address: "10.0.0.1:6379", RunID: "run-u0", RestartCount: 3, Container: "redis"}
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
	found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis, &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}}, contract.Traits{})
	if err != nil || len(found) != 40 {
		t.Fatalf("%d found: %v", len(found), err)
	}
	for i, f := range found {
		if f.RunID != fmt.Sprintf("run-u%d", i) || (f.Role == v1alpha1.RolePrimary) != (i == 33) {
			t.Errorf("record %d: %+v", i, f)
		}
	}
}
