package ledger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// Node is one Redis server that holds data.
type Node struct {
	Address string // host:port
	Shard   int    // the group of primary and replicas it belongs to, in the Layout's own numbering
	// according to the topology (the majority of the sentinels, the owner of the slots), not to the
	// server's own role
	Primary bool
}

// Layout is the topology of a deployment at one moment.
type Layout struct {
	Nodes []Node
	// returns the shard that serves a hash slot now, below 0 for none; nil = there is only shard 0
	ShardOf func(slot uint16) int
}

// Limits of an Audit.
const (
	// DefaultResyncLimit is how long replicas may take to be in sync after the load.
	DefaultResyncLimit = 2 * time.Minute
	// keyLife is the TTL of a ledger's key after its run, in case the load pod is terminated before it
	// deletes the key.
	keyLife = 24 * time.Hour
	// goneLimit is how long a node that was present before the load may be missing in the topology: a
	// primary that was failed over returns as a replica once the sentinels have demoted it, after
	// about ten seconds.
	goneLimit = 30 * time.Second
	// pollEvery is the time between two checks whether the replicas are in sync.
	pollEvery = 200 * time.Millisecond
	// sayEvery is the time between two progress messages about it.
	sayEvery = 10 * pollEvery
	// askWithin bounds one request to a node and its reply.
	askWithin = 10 * time.Second
)

// Audit prepares ledgers and reads them back. Discover, Dial and Wait must be set. Only Watch may
// run beside a Sampler that uses the Audit.
type Audit struct {
	// Discover queries the current topology.
	Discover func(ctx context.Context) (Layout, error)
	// Dial connects to one node: TLS, login and database included, RESP2 or RESP3. With readReplica a
	// replica of a cluster serves reads.
	Dial func(ctx context.Context, address string, readReplica bool) (net.Conn, error)
	// Wait waits for a duration; false if ctx ended first.
	Wait func(ctx context.Context, d time.Duration) bool
	// ResyncLimit is how long a replica may take to be in sync after the load; default
	// DefaultResyncLimit.
	ResyncLimit time.Duration
	// Keep leaves the keys in Redis after they were read, until their TTL ends.
	Keep bool

	evictions evictions
	before    int // number of nodes before the load
}

// Begin reads INFO from every node before the load, and reports whether Options.Unique is needed
// because a server may evict keys.
func (a *Audit) Begin(ctx context.Context) (unique bool, err error) {
	layout, err := a.Discover(ctx)
	if err != nil {
		return false, fmt.Errorf("ledger: find the nodes: %w", err)
	}
	a.before = len(layout.Nodes)
	var read []redis.Info
	for _, n := range layout.Nodes {
		info, err := a.infoOf(ctx, n.Address)
		if err != nil && n.Primary {
			return false, fmt.Errorf("ledger: verify.acknowledgedWrites needs INFO from every primary: %w",
				err)
		}
		if err != nil {
			continue // the replica may have recovered by the time its keys are read
		}
		read = append(read, info)
		policy := info["maxmemory_policy"]
		if n.Primary && policy != "" && policy != "noeviction" {
			unique = true
		}
	}
	a.evictions.unique = unique
	for _, info := range read {
		a.evictions.add(info, true, false)
	}
	return unique, nil
}

// Prepare extends every bitmap for the given number of writes per shard, and sets a TTL far beyond
// the run, in case the keys cannot be deleted.
func (a *Audit) Prepare(
	ctx context.Context, books []*Book, writes uint64, run time.Duration,
) error {
	layout, err := a.Discover(ctx)
	if err != nil {
		return fmt.Errorf("ledger: find the nodes: %w", err)
	}
	nodes := a.connections()
	defer nodes.close()
	for _, b := range books {
		if b.unique {
			continue
		}
		for shard := range b.pages {
			p := &b.pages[shard]
			primary, err := layout.primary(layout.shardOf(p.slot))
			if err != nil {
				return fmt.Errorf("ledger: prepare %s: %w", p.key, err)
			}
			request := b.AppendExtend(nil, shard, writes)
			request = resp.AppendCommand(request, "PEXPIRE", p.key,
				strconv.FormatInt((run+keyLife).Milliseconds(), 10))
			values, err := nodes.exchange(ctx, primary, layout.ShardOf != nil, request, 2)
			if err != nil {
				return fmt.Errorf("ledger: prepare %s: %w", p.key, err)
			}
			for _, v := range values {
				if v.IsError() {
					return fmt.Errorf("ledger: prepare %s at %s: %w", p.key, primary.Address, redis.Error(v.Text))
				}
			}
		}
	}
	return nil
}

// shardOf returns the shard that serves a slot now.
func (l *Layout) shardOf(slot uint16) int {
	if l.ShardOf == nil {
		return 0
	}
	return l.ShardOf(slot)
}

func (l *Layout) primary(shard int) (Node, error) {
	found := -1
	for i, n := range l.Nodes {
		if n.Primary && n.Shard == shard {
			if found >= 0 {
				return Node{}, fmt.Errorf("shard %d has two primaries, %s and %s", shard,
					l.Nodes[found].Address, n.Address)
			}
			found = i
		}
	}
	if found < 0 {
		return Node{}, fmt.Errorf("shard %d has no primary", shard)
	}
	return l.Nodes[found], nil
}

// infoOf reads INFO from a node over a new connection.
func (a *Audit) infoOf(ctx context.Context, address string) (redis.Info, error) {
	c := a.conn(address, askWithin, false)
	defer c.Close()
	info, err := c.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return info, nil
}

// connections are the connections to the nodes during one pass.
type connections struct {
	audit *Audit
	open  map[string]*redis.Conn
}

func (a *Audit) connections() *connections {
	return &connections{audit: a, open: map[string]*redis.Conn{}}
}

func (c *connections) close() {
	for _, open := range c.open {
		open.Close()
	}
}

// exchange sends commands to a node. With inCluster a replica serves reads.
func (c *connections) exchange(
	ctx context.Context, n Node, inCluster bool, request []byte, replies int,
) ([]resp.Value, error) {
	open := c.open[n.Address]
	if open == nil {
		open = c.audit.conn(n.Address, askWithin, inCluster && !n.Primary)
		c.open[n.Address] = open
	}
	values, err := open.Exchange(ctx, request, replies)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Address, err)
	}
	return values, nil
}

// conn returns a connection to a node with a time limit for each exchange.
func (a *Audit) conn(address string, within time.Duration, readReplica bool) *redis.Conn {
	return redis.NewConn(within, func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return a.Dial(ctx, address, readReplica)
	})
}

// errReply is an error reply of a node to a read.
var errReply = errors.New("replied with an error")

func replyError(n Node, v resp.Value) error {
	return fmt.Errorf("%s %w: %s", n.Address, errReply, strings.TrimSpace(v.Text))
}
