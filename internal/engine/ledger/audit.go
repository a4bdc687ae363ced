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
	Primary bool   // the one that the topology names: the sentinels' majority, the slots' owner; not whoever says so of itself
}

// Layout is a deployment as the topology shows it at one moment.
type Layout struct {
	Nodes   []Node
	ShardOf func(slot uint16) int // which shard serves a hash slot now, below 0 for none; nil = all of it is shard 0
}

// Limits of an Audit.
const (
	// DefaultResyncLimit is how long replicas may take to be in step after the load.
	DefaultResyncLimit = 2 * time.Minute
	// keyLife is how long after its run a ledger's key may stay, if nobody deleted it: the load pod may die before it can.
	keyLife = 24 * time.Hour
	// goneLimit is how long a node that was there before the load may be missing in the topology: a primary that was failed over comes back as a replica
	// when the sentinels have demoted it, about ten seconds later.
	goneLimit = 30 * time.Second
	// pollEvery is the time between two looks at who is in step.
	pollEvery = 200 * time.Millisecond
	// sayEvery is the time between two sentences about it.
	sayEvery = 10 * pollEvery
	// askWithin bounds one exchange with one node.
	askWithin = 10 * time.Second
)

// Audit prepares ledgers and reads them back. Discover, Dial and Wait must be set. Not safe for concurrent use.
type Audit struct {
	// Discover asks the topology anew.
	Discover func(ctx context.Context) (Layout, error)
	// Dial connects to one node: TLS, login and database included, RESP2 or RESP3. With readReplica a cluster's replica answers reads.
	Dial func(ctx context.Context, address string, readReplica bool) (net.Conn, error)
	// Wait lets a time pass; false when ctx ended first.
	Wait func(ctx context.Context, d time.Duration) bool
	// ResyncLimit is how long a replica may take to be in step after the load; default DefaultResyncLimit.
	ResyncLimit time.Duration
	// Keep leaves the keys in Redis after they were read, for KeyLife.
	Keep bool

	begun  map[string]counters // by run_id, before the load
	before int                 // how many nodes there were before the load
}

// counters are what a server has counted since its start.
type counters struct{ evicted int64 }

// Begin asks every node what it is like before the load, and returns whether Options.Unique is needed: a server may evict keys.
func (a *Audit) Begin(ctx context.Context) (unique bool, err error) {
	layout, err := a.Discover(ctx)
	if err != nil {
		return false, fmt.Errorf("ledger: find the nodes: %w", err)
	}
	a.begun, a.before = map[string]counters{}, len(layout.Nodes)
	for _, n := range layout.Nodes {
		info, err := a.infoOf(ctx, n.Address)
		if err != nil && n.Primary {
			return false, fmt.Errorf("ledger: verify.acknowledgedWrites needs INFO from every primary: %w", err)
		}
		if err != nil {
			continue // a replica that is down now may be back when it is read
		}
		a.begun[info["run_id"]] = counters{evicted: info.Int("evicted_keys")}
		if policy := info["maxmemory_policy"]; n.Primary && policy != "" && policy != "noeviction" {
			unique = true
		}
	}
	return unique, nil
}

// Prepare extends every bitmap for so many writes to each shard, and gives it a time to live far beyond the run, in case nobody can delete it.
func (a *Audit) Prepare(ctx context.Context, books []*Book, writes uint64, run time.Duration) error {
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
			request = resp.AppendCommand(request, "PEXPIRE", p.key, strconv.FormatInt((run+keyLife).Milliseconds(), 10))
			values, err := nodes.exchange(ctx, primary, layout.ShardOf != nil, request, 2)
			if err != nil {
				return fmt.Errorf("ledger: prepare %s: %w", p.key, err)
			}
			for _, v := range values {
				if v.IsError() {
					return fmt.Errorf("ledger: prepare %s at %s: %s", p.key, primary.Address, v.Text)
				}
			}
		}
	}
	return nil
}

// shardOf is the shard that holds a page's keys now.
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
				return Node{}, fmt.Errorf("shard %d has two primaries, %s and %s", shard, l.Nodes[found].Address, n.Address)
			}
			found = i
		}
	}
	if found < 0 {
		return Node{}, fmt.Errorf("shard %d has no primary", shard)
	}
	return l.Nodes[found], nil
}

// infoOf asks a node for INFO on a connection of its own.
func (a *Audit) infoOf(ctx context.Context, address string) (redis.Info, error) {
	c := a.conn(address, askWithin, false)
	defer c.Close()
	info, err := c.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return info, nil
}

// connections are the nodes' connections of one pass.
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

// exchange sends commands to a node; inCluster a replica serves reads.
func (c *connections) exchange(ctx context.Context, n Node, inCluster bool, request []byte, replies int) ([]resp.Value, error) {
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

// conn is a connection to a node, each of whose exchanges is bounded.
func (a *Audit) conn(address string, within time.Duration, readReplica bool) *redis.Conn {
	return redis.NewConn(within, func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return a.Dial(ctx, address, readReplica)
	})
}

// errReply is an error that a node answered to a read.
var errReply = errors.New("answered with an error")

func replyError(n Node, v resp.Value) error {
	return fmt.Errorf("%s %w: %s", n.Address, errReply, strings.TrimSpace(v.Text))
}
