package track

import (
	"context"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

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
	if told, err := topology.ParseNodes(topology.TextOf(replies[1]), address); err == nil {
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
