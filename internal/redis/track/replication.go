package track

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// serverAnswer is the answer of one server of a plain replication.
type serverAnswer struct {
	topology.RoleReply
	runID string // "" if not permitted; then each address counts as a separate server
}

// replication is the policy for a primary and its replicas, by ROLE only.
type replication struct{ seeds []string }

func (replication) ask(ctx context.Context, c *redis.Conn, _ string) (any, error) {
	var a serverAnswer
	reply, err := question(ctx, c, "ROLE")
	switch {
	case isRefused(err):
		// Application users are often not permitted to run ROLE. HELLO contains the role as well, but
		// neither offset nor replicas.
		if reply, err = question(ctx, c, "HELLO", "2"); err != nil {
			return nil, err
		}
		a.Role = topology.RoleOf(topology.TextOf(topology.FieldsOf(reply)["role"]))
	case err != nil:
		return nil, err
	default:
		if a.RoleReply, err = topology.ParseRole(reply); err != nil {
			return nil, err
		}
	}
	info, err := c.Info(ctx, "server")
	if err != nil && !isRefused(err) {
		return nil, err
	}
	a.runID = info["run_id"]
	return a, nil
}

// resolve selects the only server with role primary. With none or several, the previous primary is
// kept.
func (r replication) resolve(
	before *topology.Map, answers map[string]any,
) (*topology.Map, []string) {
	var primaries, replicas, known []string
	seen := map[string]bool{}
	for _, address := range inOrder(r.seeds, answers) {
		a := answers[address].(serverAnswer)
		known = append(known, a.Replicas...)
		if a.runID != "" && seen[a.runID] {
			continue // the same server at another address
		}
		seen[a.runID] = true
		switch {
		case a.Role == topology.Primary:
			primaries = append(primaries, address)
		// a replica in its initial synchronization does not serve reads
		case a.Role == topology.Replica && a.Link != "sync":
			replicas = append(replicas, address)
		}
	}
	slices.Sort(replicas)
	shard := topology.Shard{Replicas: replicas}
	if before != nil {
		shard.Primary = before.Shards[0].Primary
	}
	problem := ""
	switch len(primaries) {
	case 0:
		problem = "no server has role primary"
	case 1:
		shard.Primary = primaries[0]
	default:
		slices.Sort(primaries)
		problem = fmt.Sprintf("split brain: %s all have role primary", strings.Join(primaries, ", "))
	}
	shard.Replicas = slices.DeleteFunc(shard.Replicas, func(a string) bool {
		return a == shard.Primary
	})
	m := topology.NewMap(topology.KindReplication, 0, []topology.Shard{shard})
	m.Problem = problem
	return m, known
}

// choice uses the first address that answers, and keeps it as long as it does.
type choice struct{ seeds []string }

func (choice) ask(ctx context.Context, c *redis.Conn, _ string) (any, error) {
	_, err := c.Do(ctx, "PING")
	if redis.IsReply(err) && !isRefused(err) {
		err = nil // LOADING and similar: a server is present
	}
	return struct{}{}, err
}

func (c choice) resolve(before *topology.Map, answers map[string]any) (*topology.Map, []string) {
	up := inOrder(c.seeds, answers)
	switch {
	case len(up) == 0:
		if before == nil {
			return topology.NewMap(topology.KindStandalone, 0, []topology.Shard{{}}), nil
		}
		return before, nil
	case before != nil && slices.Contains(up, before.Shards[0].Primary):
		return before, nil
	}
	return topology.NewMap(topology.KindStandalone, 0, []topology.Shard{{Primary: up[0]}}), nil
}

// inOrder returns the addresses that answered: the seeds in their order, then the others by name.
func inOrder(seeds []string, answers map[string]any) []string {
	var first, others []string
	for _, s := range seeds {
		if _, ok := answers[s]; ok && !slices.Contains(first, s) {
			first = append(first, s)
		}
	}
	for a := range answers {
		if !slices.Contains(first, a) {
			others = append(others, a)
		}
	}
	slices.Sort(others)
	return append(first, others...)
}

// cluster is the policy for a Redis Cluster: it merges the views of the nodes.
type cluster struct{ seeds []string }

// ask reads CLUSTER SLOTS. In CLUSTER SHARDS of Redis 8 and Valkey 9, a primary that was replaced
// stays a master of its shard until it answers again, beside the new one, and meanwhile the shard
// may be listed without its slots.
func (cluster) ask(ctx context.Context, c *redis.Conn, address string) (any, error) {
	replies, err := questions(ctx, c, []string{"CLUSTER", "SLOTS"}, []string{"CLUSTER", "NODES"})
	if err != nil {
		return nil, err
	}
	if refusal, refused := replies[0].(redis.Error); refused {
		return nil, refusal
	}
	v, err := topology.ParseSlots(replies[0], address)
	if err != nil {
		return nil, err
	}
	// not permitted to every user
	told, err := topology.ParseNodes(topology.TextOf(replies[1]), address)
	if err == nil {
		v.Epochs = told.Epochs
		v.AddUnlisted(told)
	}
	if left := v.Unassigned(); left > 0 {
		reply, err := question(ctx, c, "CLUSTER", "INFO")
		if err != nil && !redis.IsReply(err) { // not permitted to every user
			return nil, err
		}
		info := redis.ParseInfo(topology.TextOf(reply))
		v.Partial = info["cluster_state"] == "ok" &&
			info.Int("cluster_slots_assigned") == int64(topology.SlotCount-left) &&
			info.Int("cluster_known_nodes") > 1
	}
	return v, nil
}

// resolve merges the views of the nodes.
func (k cluster) resolve(before *topology.Map, answers map[string]any) (*topology.Map, []string) {
	var views []topology.View
	for _, address := range inOrder(k.seeds, answers) {
		views = append(views, answers[address].(topology.View))
	}
	return topology.MapOf(before, views)
}
