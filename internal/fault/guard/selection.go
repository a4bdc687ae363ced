package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// choose returns the servers that a selector selects, in the order of their names.
func choose(redis target.Redis, found []target.Server, selector v1alpha1.FaultSelector) ([]v1alpha1.FaultTarget, error) {
	if selector.Shard != nil && !slices.ContainsFunc(found, func(s target.Server) bool { return s.Shard == int(*selector.Shard) }) {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: fmt.Sprintf("spec.select.shard: no server of shard %d answers", *selector.Shard)}
	}
	var matching []v1alpha1.FaultTarget
	var others []string
	for i := range found {
		s := &found[i]
		if selector.Shard != nil && s.Shard != int(*selector.Shard) {
			continue
		}
		role := roleOf(s.State.Role)
		// A server that does not answer INFO may be no Redis, and has no run_id by which a restart could be detected.
		if want := selector.Role; s.Err != nil || want != "" && want != v1alpha1.RoleAny && role != want {
			others = append(others, describe(s.Pod.Name, s.State.Role, s.Err))
			continue
		}
		matching = append(matching, record(redis, s, role))
	}
	if len(matching) == 0 {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: fmt.Sprintf("spec.select.role: no server of role %s answers: %s", cmp.Or(selector.Role, v1alpha1.RoleAny), strings.Join(others, "; "))}
	}
	return take(matching, selector)
}

func take(found []v1alpha1.FaultTarget, selector v1alpha1.FaultSelector) ([]v1alpha1.FaultTarget, error) {
	switch selector.Mode {
	case v1alpha1.SelectAll:
		return found, nil
	case v1alpha1.SelectCount:
		if selector.Count == nil || int(*selector.Count) > len(found) {
			return nil, &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: fmt.Sprintf("spec.select.count: only %d servers match", len(found))}
		}
		return found[:*selector.Count], nil
	}
	return found[:1], nil
}

func record(redis target.Redis, s *target.Server, role v1alpha1.RedisRole) v1alpha1.FaultTarget {
	container := redis.Container(s.Pod)
	return v1alpha1.FaultTarget{
		Pod: s.Pod.Name, UID: string(s.Pod.UID), Node: s.Pod.Spec.NodeName, Role: role, Address: s.Address,
		RunID: s.State.RunID, Container: container.Name, RestartCount: redis.RestartCount(s.Pod, container.Name),
	}
}

func roleOf(r topology.Role) v1alpha1.RedisRole {
	switch r {
	case topology.Primary:
		return v1alpha1.RolePrimary
	case topology.Replica:
		return v1alpha1.RoleReplica
	}
	return ""
}

func describe(pod string, role topology.Role, err error) string {
	if err != nil {
		return fmt.Sprintf("%s did not answer (%v)", pod, err)
	}
	return fmt.Sprintf("%s is %s", pod, role)
}
