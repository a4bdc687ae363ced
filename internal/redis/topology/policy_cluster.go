package topology

import (
	"context"

	"github.com/redquake/redquake/internal/redis"
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
	v, err := ParseSlots(replies[0], address)
	if err != nil {
		return nil, err
	}
	// not permitted to every user
	if told, err := ParseNodes(textOf(replies[1]), address); err == nil {
		v.Epochs = told.Epochs
		v.addUnlisted(told)
	}
	if left := v.unassigned(); left > 0 {
		reply, err := question(ctx, c, "CLUSTER", "INFO")
		if err != nil && !redis.IsReply(err) { // not permitted to every user
			return nil, err
		}
		info := redis.ParseInfo(textOf(reply))
		v.Partial = info["cluster_state"] == "ok" &&
			info.Int("cluster_slots_assigned") == int64(SlotCount-left) &&
			info.Int("cluster_known_nodes") > 1
	}
	return v, nil
}

// resolve merges the views of the nodes.
func (k cluster) resolve(before *Map, answers map[string]any) (*Map, []string) {
	var views []View
	for _, address := range inOrder(k.seeds, answers) {
		views = append(views, answers[address].(View))
	}
	return MapOf(before, views)
}
