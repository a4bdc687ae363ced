package redistest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
)

const slotCount = 16384

// ClusterOptions are a Redis Cluster.
type ClusterOptions struct {
	Options
	NodeTimeout time.Duration // cluster-node-timeout; 0 = 2 s
}

// Cluster is a Redis Cluster. Shards[i][0] was the primary of shard i at first, with its slots in order; the others its
// replicas.
type Cluster struct {
	Shards  [][]*Server
	t       testing.TB
	options ClusterOptions
}

// NewCluster starts primaries with the given number of replicas each and waits until all agree and are in sync.
func NewCluster(t testing.TB, primaries, replicas int, o ClusterOptions) *Cluster {
	t.Helper()
	if o.NodeTimeout == 0 {
		o.NodeTimeout = 2 * time.Second
	}
	c := &Cluster{t: t, options: o, Shards: make([][]*Server, primaries)}
	first := time.Second // nodes exchange gossip twice in this time
	if o.TLS != nil {
		first = 3 * time.Second // a node of 7.0 may crash if the TLS handshake of its bus is cut off after this time
	}
	for i := range c.Shards {
		for range 1 + replicas {
			c.Shards[i] = append(c.Shards[i], c.launchNode(first, "yes"))
		}
	}
	for _, s := range c.Servers() {
		s.WaitUp()
	}
	shards := make([][]*goredis.Client, primaries)
	for i, shard := range c.Shards {
		for _, s := range shard {
			shards[i] = append(shards[i], s.Client())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	if err := FormCluster(ctx, shards); err != nil {
		t.Fatal(err)
	}
	c.WaitHealthy()
	for _, s := range c.Servers() {
		ms := o.NodeTimeout.Milliseconds()
		s.Do("config", "set", "cluster-node-timeout", ms)
		s.Do("config", "set", "cluster-replica-no-failover", "no")
		s.configure(fmt.Sprintf("cluster-node-timeout %d", ms), "cluster-replica-no-failover no")
	}
	return c
}

// FormCluster creates a cluster of separate nodes. The first of each shard becomes its primary, with its part of the
// slots in order, the others its replicas.
func FormCluster(ctx context.Context, shards [][]*goredis.Client) error {
	for i, shard := range shards {
		err := shard[0].Do(ctx, "cluster", "set-config-epoch", i+1).Err()
		if err != nil {
			return err
		}
		err = shard[0].ClusterAddSlotsRange(ctx, i*slotCount/len(shards),
			(i+1)*slotCount/len(shards)-1).Err()
		if err != nil {
			return err
		}
	}
	all := slices.Concat(shards...)
	err := await.Try(ctx, await.Limit, func() error { return join(ctx, all) })
	if err != nil {
		return err
	}
	for _, shard := range shards {
		for _, replica := range shard[1:] {
			err := await.Try(ctx, await.Limit, func() error { return replicate(ctx, replica, shard[0]) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// join introduces all nodes to one another. It may be called again: nodes that are too busy for a handshake give it up.
func join(ctx context.Context, all []*goredis.Client) error {
	for i, node := range all {
		for _, other := range all[:i] {
			if err := meet(ctx, node, other); err != nil {
				return err
			}
		}
	}
	return await.Try(ctx, 5*time.Second, func() error { return checkKnown(ctx, all) })
}

// Addresses are those of all nodes.
func (c *Cluster) Addresses() []string {
	return addresses(c.Servers())
}

// Failover sends CLUSTER FAILOVER, with an option such as FORCE or TAKEOVER, to a replica and waits until it is the
// primary. It sends the command again when a manual failover has expired: a replica that was elected before is not
// elected again for four times the node timeout.
func (c *Cluster) Failover(replica *Server, option ...any) {
	c.t.Helper()
	command := append([]any{"cluster", "failover"}, option...)
	replica.Do(command...)
	const expires = 6 * time.Second // a manual failover expires after 5 s: CLUSTER_MF_TIMEOUT
	again := time.Now().Add(expires)
	await.Until(c.t, replica.Address()+" is the primary", func() error {
		err := wantInfo(replica, "role", "master")
		if err != nil && time.Now().After(again) {
			_ = replica.Client().Do(context.Background(), command...).Err() // an error if it has become the primary just now
			again = time.Now().Add(expires)
		}
		return err
	})
}

// AddReplica starts another replica of a primary, as a node of shard i, and waits until it is in sync and all nodes
// have discovered it.
func (c *Cluster) AddReplica(i int, primary *Server) *Server {
	c.t.Helper()
	s := c.launchNode(c.options.NodeTimeout, "no")
	s.WaitUp()
	for _, other := range c.Servers() {
		if other.Running() {
			Meet(s, other)
		}
	}
	c.Shards[i] = append(c.Shards[i], s)
	c.waitKnown(c.running())
	c.replicate(s, primary)
	c.WaitHealthy()
	return s
}

func meet(ctx context.Context, node, other *goredis.Client) error {
	host, port, err := net.SplitHostPort(node.Options().Addr)
	if err != nil {
		return err
	}
	words := []any{"cluster", "meet", host, port}
	reply, err := node.Do(ctx, "config", "get", "cluster-port").Result()
	if err != nil {
		return err
	}
	bus := Pairs(reply)["cluster-port"]
	if bus != "" && bus != "0" {
		words = append(words, bus)
	}
	return other.Do(ctx, words...).Err()
}

// waitKnown waits until every node has discovered every other.
func (c *Cluster) waitKnown(all []*Server) {
	c.t.Helper()
	var clients []*goredis.Client
	for _, s := range all {
		clients = append(clients, s.Client())
	}
	await.Until(c.t, "all nodes have discovered each other", func() error {
		return checkKnown(context.Background(),
			clients)
	})
}

// checkKnown returns an error if a node has not discovered all others yet.
func checkKnown(ctx context.Context, all []*goredis.Client) error {
	for _, node := range all {
		text, err := node.ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		n := strings.Count(text, "\n")
		if n < len(all) || strings.Contains(text, "handshake") {
			return fmt.Errorf("%s has %d of %d nodes:\n%s", node.Options().Addr, n, len(all), text)
		}
	}
	return nil
}

func (c *Cluster) replicate(s, primary *Server) {
	c.t.Helper()
	await.Until(c.t, s.Address()+" takes its primary", func() error {
		return replicate(context.Background(), s.Client(),
			primary.Client())
	})
}

func replicate(ctx context.Context, node, primary *goredis.Client) error {
	id, err := primary.Do(ctx, "cluster", "myid").Text()
	if err != nil {
		return err
	}
	return node.ClusterReplicate(ctx, id).Err()
}

// WaitHealthy waits until all running nodes report that the cluster is ok and agree on the owners of the slots, and all
// replicas are in sync.
func (c *Cluster) WaitHealthy() {
	c.t.Helper()
	await.Until(c.t, "the cluster is healthy", c.healthy)
}

func (c *Cluster) healthy() error {
	layout := ""
	for _, s := range c.running() {
		ctx := context.Background()
		state, err := s.Client().ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		info := redis.ParseInfo(state)
		if info["cluster_state"] != "ok" || info.Int("cluster_slots_ok") != slotCount {
			return fmt.Errorf("%s: state %s, %s slots ok", s.Address(), info["cluster_state"], info["cluster_slots_ok"])
		}
		text, err := s.Client().ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		if own := layoutOf(text); layout == "" {
			layout = own
		} else if own != layout {
			return fmt.Errorf("%s does not agree:\n%s\n%s", s.Address(), own, layout)
		}
		replication, err := s.info(ctx, "replication")
		if err != nil {
			return err
		}
		if replication["role"] == "slave" && replication["master_link_status"] != "up" {
			return fmt.Errorf("%s is not in sync", s.Address())
		}
	}
	return nil
}

// layoutOf is what all nodes must agree on: the primary of each replica, and the slots.
func layoutOf(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if strings.Contains(w[2], "fail") {
			continue
		}
		lines = append(lines, fmt.Sprint(w[0], " ", w[3], " ", w[8:]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// AddNode starts an empty, separate node, as a node of the last shard, and waits until it responds.
func (c *Cluster) AddNode() *Server {
	c.t.Helper()
	s := c.launchNode(c.options.NodeTimeout, "no")
	s.WaitUp()
	last := len(c.Shards) - 1
	c.Shards[last] = append(c.Shards[last], s)
	return s
}

// StartNode starts a node of a cluster that has not met others, with lines of its configuration file, and waits until
// it responds. Its bus has a port that is its own: the usual one, 10000 above the other, may be that of any outgoing
// connection.
func StartNode(t testing.TB, config ...string) *Server {
	t.Helper()
	return Start(t, append([]string{"cluster-enabled yes", fmt.Sprintf("cluster-port %d", FreePort(t))}, config...)...)
}

// Meet makes two nodes know each other, which takes a moment.
func Meet(node, other *Server) {
	node.T.Helper()
	err := meet(context.Background(), node.Client(), other.Client())
	if err != nil {
		node.T.Fatal(err)
	}
}

func (c *Cluster) launchNode(timeout time.Duration, noFailover string) *Server {
	c.t.Helper()
	return launch(c.t, server, c.options.Options, func(int) []string {
		lines := []string{
			"cluster-enabled yes", fmt.Sprintf("cluster-port %d", FreePort(c.t)),
			fmt.Sprintf("cluster-node-timeout %d", timeout.Milliseconds()), "cluster-replica-no-failover " + noFailover,
		}
		if c.options.TLS != nil {
			lines = append(lines, "tls-cluster yes")
		}
		return lines
	})
}

// RemoveReplica kills a replica and makes all others forget it.
func (c *Cluster) RemoveReplica(s *Server) {
	c.t.Helper()
	id := ID(s)
	s.Kill()
	for i := range c.Shards {
		c.Shards[i] = slices.DeleteFunc(c.Shards[i], func(o *Server) bool { return o == s })
	}
	for _, other := range c.running() {
		other.Do("cluster", "forget", id)
	}
}

// MigrateSlot moves a slot with its keys to another primary while clients continue, as redis-cli's reshard does:
// meanwhile the source replies with ASK for keys that have moved.
func (c *Cluster) MigrateSlot(slot int, to *Server) {
	c.t.Helper()
	c.BeginMigration(slot, to)()
}

// BeginMigration marks a slot as moving to another primary, and returns a function that moves its keys and ends the
// migration.
// Until then the slot stays in migration.
func (c *Cluster) BeginMigration(slot int, to *Server) (finish func()) {
	c.t.Helper()
	from := c.Owner(slot)
	toID, fromID := ID(to), ID(from)
	to.Do("cluster", "setslot", slot, "importing", fromID)
	from.Do("cluster", "setslot", slot, "migrating", toID)
	return func() {
		c.t.Helper()
		for c.MigrateKeys(slot, from, to, 100) > 0 {
		}
		// The target first, so that no moment is without an owner.
		for _, s := range append([]*Server{to, from}, c.running()...) {
			err := s.Client().Do(context.Background(), "cluster", "setslot", slot, "node", toID).Err()
			if err != nil &&
				!strings.Contains(err.Error(), "only with masters") {
				c.t.Fatalf("SETSLOT %d NODE at %s: %v", slot, s.Address(), err)
			}
		}
	}
}

// ID is the node ID of a server of a cluster.
func ID(s *Server) string {
	s.T.Helper()
	return s.Do("cluster", "myid").(string)
}

// Owner is the primary that serves a slot, according to the first running node.
func (c *Cluster) Owner(slot int) *Server {
	c.t.Helper()
	for _, entry := range c.running()[0].Do("cluster", "slots").([]any) {
		e := entry.([]any)
		first, last := e[0].(int64), e[1].(int64)
		if first <= int64(slot) && int64(slot) <= last {
			primary := e[2].([]any)
			return c.Find(net.JoinHostPort(fmt.Sprint(primary[0]), fmt.Sprint(primary[1])))
		}
	}
	c.t.Fatalf("no node serves slot %d", slot)
	return nil
}

// Find is the node at an address; nil for an unknown one.
func (c *Cluster) Find(address string) *Server {
	return find(c.Servers(), address)
}

func (c *Cluster) running() []*Server {
	return slices.DeleteFunc(c.Servers(), func(s *Server) bool { return !s.Running() })
}

// Servers are all nodes, shard by shard.
func (c *Cluster) Servers() []*Server {
	return slices.Concat(c.Shards...)
}

// MigrateKeys moves at most the given number of keys of a slot and returns how many it moved.
func (c *Cluster) MigrateKeys(slot int, from, to *Server, most int) int {
	c.t.Helper()
	keys, err := from.Client().ClusterGetKeysInSlot(context.Background(), slot, most).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	if len(keys) == 0 {
		return 0
	}
	words := []any{"migrate", cmp.Or(to.options.Host, loopback), to.Port, "", 0, 5000, "replace"}
	if c.options.Password != "" {
		words = append(words, "auth", c.options.Password)
	}
	words = append(words, "keys")
	for _, k := range keys {
		words = append(words, k)
	}
	err = from.Client().Do(context.Background(), words...).Err()
	if err != nil && !errors.Is(err, goredis.Nil) {
		c.t.Fatalf("MIGRATE of %d keys of slot %d: %v", len(keys), slot, err)
	}
	return len(keys)
}
