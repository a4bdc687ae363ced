package guard

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/paging"
	"github.com/redquake/redquake/internal/target/sentinel"
)

// match returns the servers that a selector can select, in the order of their names. found are
// those on a node; "" = all of the target.
func match(
	ctx context.Context, redis target.Redis, found []target.Server, node string,
	selector v1alpha1.FaultSelector, hit []Hit,
) ([]v1alpha1.FaultTarget, error) {
	if err := rejected(found, selector); err != nil {
		return nil, err
	}
	if selector.Shard != nil &&
		!slices.ContainsFunc(found, func(s target.Server) bool {
			return s.Shard == int(*selector.Shard)
		}) {
		return nil, noneOfShard(found, node, *selector.Shard)
	}
	var matching []v1alpha1.FaultTarget
	var others []string
	silent := false
	for i := range found {
		s := &found[i]
		if !isAmong(s, selector) {
			continue
		}
		role, runID, err := roleOf(s.State.Role), s.State.RunID, s.Err
		if known := silencedBeside(redis, s, hit); known != nil {
			role, runID, err = known.Role, known.RunID, nil
		}
		// A server that does not answer INFO may be no Redis, and has no run_id by which a restart could
		// be detected.
		want := selector.Role
		if err != nil || want != "" && want != v1alpha1.RoleAny && role != want {
			others = append(others, describe(s.Pod.Name, s.State.Role, s.Err))
			silent = silent || s.Err != nil
			continue
		}
		matching = append(matching, record(redis, s, role, runID))
	}
	if len(matching) == 0 && len(selector.Names) == 0 {
		return nil, noneOfRole(ctx, redis, selector.Role, others, silent)
	}
	matching, err := inZone(ctx, redis, matching, selector.Zone)
	if err != nil {
		return nil, err
	}
	return matching, allNamed(matching, selector, others)
}

// rejected is the Problem that every selected server rejects the login; nil if one does not. It
// does not pass by waiting.
func rejected(found []target.Server, selector v1alpha1.FaultSelector) error {
	var last *target.Server
	for i := range found {
		if s := &found[i]; isNamed(s, selector) {
			if !redis.RejectsLogin(s.Err) {
				return nil
			}
			last = s
		}
	}
	if last == nil {
		return nil
	}
	if redis.IsProtected(last.Err) {
		return &problem.Problem{
			Reason:  v1alpha1.ReasonProtectedMode,
			Lasting: true,
			Message: fmt.Sprintf(
				"the server of pod %s runs in protected mode: without a password, it serves "+
					"its own machine only. Set requirepass or an ACL, or protected-mode no: %v",
				last.Pod.Name, last.Err),
		}
	}
	return &problem.Problem{
		Reason:  v1alpha1.ReasonAuthenticationFailed,
		Lasting: true,
		Message: fmt.Sprintf("spec.target.auth: the server of pod %s rejects the credentials: %v",
			last.Pod.Name, last.Err),
	}
}

// isAmong reports whether a server is of the selected shard and among the selected names.
func isAmong(s *target.Server, selector v1alpha1.FaultSelector) bool {
	return (selector.Shard == nil || s.Shard == int(*selector.Shard)) && isNamed(s, selector)
}

func isNamed(s *target.Server, selector v1alpha1.FaultSelector) bool {
	return len(selector.Names) == 0 || slices.Contains(selector.Names, s.Pod.Name)
}

// noneOfShard is the Problem that none of the servers on a node, or of all if it is "", is of a
// shard.
func noneOfShard(found []target.Server, node string, shard int32) error {
	var others []string
	for i := range found {
		s := &found[i]
		switch {
		case s.Err != nil:
			others = append(others, describe(s.Pod.Name, s.State.Role, s.Err))
		case s.Shard == target.NoShard:
			others = append(others, s.Pod.Name+" is of no shard")
		default:
			others = append(others, fmt.Sprintf("%s is of shard %d", s.Pod.Name, s.Shard))
		}
	}
	if node != "" {
		node = " on node " + node
	}
	return problem.NoTarget("spec.select.shard: no server of shard %d%s answers: %s", shard, node,
		strings.Join(others, "; "))
}

// noneOfRole is the Problem that no server has a role. silent tells that some did not answer at
// all.
func noneOfRole(
	ctx context.Context, redis target.Redis, role v1alpha1.RedisRole, others []string, silent bool,
) error {
	hint := ""
	if silent && redis.Spec != nil && redis.Spec.PodPort == 0 {
		hint = ". If Redis listens on another port of its pods, set spec.target.podPort"
	}
	if role == v1alpha1.RolePrimary && !silent {
		hint = named(ctx, redis.Sentinels)
	}
	return problem.NoTarget("spec.select.role: no server of role %s answers: %s%s",
		cmp.Or(role, v1alpha1.RoleAny), strings.Join(others, "; "), hint)
}

// named says which sentinels name which server as the primary, where no server is; "" if there are
// none, or none that answers.
func named(ctx context.Context, sentinels sentinel.Set) string {
	if len(sentinels.Addresses) == 0 {
		return ""
	}
	name, err := sentinels.WatchedName(ctx)
	if err != nil {
		return ""
	}
	said, err := sentinels.AskAll(ctx, name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(
		". As the primary of %s, %s: until a sentinel promotes one, or REPLICAOF NO ONE does, all refuse writes",
		name, said.Naming())
}

// allNamed returns a Problem that names the pods of select.names which do not match.
func allNamed(
	matching []v1alpha1.FaultTarget, selector v1alpha1.FaultSelector, others []string,
) error {
	absent := slices.DeleteFunc(slices.Clone(selector.Names), func(name string) bool {
		return slices.ContainsFunc(matching, func(t v1alpha1.FaultTarget) bool { return t.Pod == name })
	})
	if len(absent) == 0 {
		return nil
	}
	slices.Sort(absent)
	why := ""
	if len(others) > 0 {
		why = ": " + strings.Join(others, "; ")
	}
	return problem.NoTarget("spec.select.names: no server that matches is in pod %s%s",
		strings.Join(absent, ", "), why)
}

// inZone returns the servers whose nodes are in a zone; all of them where none is given.
func inZone(
	ctx context.Context, redis target.Redis, matching []v1alpha1.FaultTarget, zone string,
) ([]v1alpha1.FaultTarget, error) {
	if zone == "" {
		return matching, nil
	}
	zones := map[string]string{} // by node
	var there []v1alpha1.FaultTarget
	var others []string
	for i := range matching {
		name := matching[i].Node
		if _, ok := zones[name]; !ok {
			node := &corev1.Node{}
			err := redis.Live.Get(ctx, client.ObjectKey{Name: name}, node)
			if apierrors.IsForbidden(err) {
				return nil, problem.Unsupported(
					"spec.select.zone: the operator may not read node %s, whose label is its zone (%v): give it "+
						"the right to get nodes, or select by names", name, err)
			} else if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read node %s: %w", name, err)
			}
			zones[name] = node.Labels[corev1.LabelTopologyZone]
		}
		if zones[name] == zone {
			there = append(there, matching[i])
		} else {
			others = append(others, fmt.Sprintf("%s is in %s", matching[i].Pod,
				cmp.Or(zones[name], "no zone")))
		}
	}
	if len(there) == 0 {
		return nil, problem.NoTarget("spec.select.zone: no server that matches is in zone %s: %s", zone,
			strings.Join(others, "; "))
	}
	return there, nil
}

// mostNodes is how many nodes of a zone a fault taints at most.
const mostNodes = 1000

// inLostZone returns the servers on the nodes of a zone, and these nodes.
func inLostZone(
	ctx context.Context, redis target.Redis, matching []v1alpha1.FaultTarget, zone string,
) (there []v1alpha1.FaultTarget, nodes []string, err error) {
	var page corev1.NodeList
	err = paging.Each(ctx, redis.Live, &page, func() bool {
		for i := range page.Items {
			nodes = append(nodes, page.Items[i].Name)
		}
		page.Items = nil
		return true
	}, client.MatchingLabels{corev1.LabelTopologyZone: zone})
	if err != nil {
		return nil, nil, fmt.Errorf("list the nodes of zone %s: %w", zone, err)
	}
	const field = "spec.action.zoneLoss.zone"
	switch n := len(nodes); {
	case n == 0:
		return nil, nil, problem.NoTarget("%s: no node has the label %s=%s", field, corev1.LabelTopologyZone, zone)
	case n > mostNodes:
		return nil, nil, problem.Unsupported("%s: zone %s has %d nodes, and at most %d can be tainted", field, zone, n,
			mostNodes)
	}
	slices.Sort(nodes)
	var others []string
	for _, t := range matching {
		if slices.Contains(nodes, t.Node) {
			there = append(there, t)
		} else {
			others = append(others, t.Pod+" is on "+t.Node)
		}
	}
	if len(there) == 0 {
		return nil, nil, problem.NoTarget("%s: no server that matches is in zone %s: %s", field, zone,
			strings.Join(others, ", "))
	}
	return there, nodes, nil
}

// Wholly returns the groups of targets that are all copies of their data, each once.
func Wholly(targets []v1alpha1.FaultTarget) [][]string {
	isTarget := func(pod string) bool {
		return slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == pod })
	}
	var groups [][]string
	for i := range targets {
		copies := append([]string{targets[i].Pod}, targets[i].Copies...)
		slices.Sort(copies)
		known := slices.ContainsFunc(groups, func(g []string) bool { return slices.Equal(g, copies) })
		if !known && !slices.ContainsFunc(copies, func(pod string) bool { return !isTarget(pod) }) {
			groups = append(groups, copies)
		}
	}
	return groups
}

// take takes as many of the matching servers as the mode says.
func take(
	found []v1alpha1.FaultTarget, selector v1alpha1.FaultSelector, seed *int32,
) ([]v1alpha1.FaultTarget, error) {
	n := 1
	//exhaustive:enforce
	switch selector.Mode {
	case v1alpha1.SelectOne:
	case v1alpha1.SelectAll:
		n = len(found)
	case v1alpha1.SelectCount:
		if selector.Count == nil || int(*selector.Count) > len(found) {
			return nil, problem.NoTarget("spec.select.count: only %d servers match", len(found))
		}
		n = int(*selector.Count)
	case v1alpha1.SelectPercent:
		if selector.Percent == nil {
			return nil, problem.NoTarget("spec.select.percent: mode Percent needs it")
		}
		n = max(1, len(found)*int(*selector.Percent)/100)
	}
	if selector.Pick != v1alpha1.PickRandom {
		return found[:n], nil
	}
	if seed == nil {
		return nil, fmt.Errorf("select at random: there is no seed")
	}
	return pick(found, n, *seed), nil
}

// pick picks n servers at random, in the order of their names. The same seed and servers give the
// same choice.
func pick(found []v1alpha1.FaultTarget, n int, seed int32) []v1alpha1.FaultTarget {
	chosen := rand.New(rand.NewPCG(uint64(seed), 0)).Perm(len(found))[:n]
	slices.Sort(chosen)
	var picked []v1alpha1.FaultTarget
	for _, i := range chosen {
		picked = append(picked, found[i])
	}
	return picked
}

// NewSeed is a seed for a selection at random.
func NewSeed() int32 {
	return rand.Int32()
}

func record(
	redis target.Redis, s *target.Server, role v1alpha1.RedisRole, runID string,
) v1alpha1.FaultTarget {
	container := redis.Container(s.Pod)
	return v1alpha1.FaultTarget{
		Pod:          s.Pod.Name,
		UID:          string(s.Pod.UID),
		Node:         s.Pod.Spec.NodeName,
		Role:         role,
		Address:      s.Address,
		RunID:        runID,
		Container:    container.Name,
		RestartCount: redis.RestartCount(s.Pod, container.Name),
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
