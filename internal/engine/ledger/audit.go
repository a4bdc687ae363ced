package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/record"
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

// Verify reads the ledgers back. The load must have stopped, and so must every use of the books. It waits until the replicas are in step, to ResyncLimit,
// reads every key at its primary and at each replica, and deletes the keys. What could not be read is told in Result.Unread and Notes;
// the error is ctx's, or that nothing at all could be found. progress gets sentences for people; it may be nil.
func (a *Audit) Verify(ctx context.Context, books []*Book, progress func(string)) (*record.Ledger, error) {
	if progress == nil {
		progress = func(string) {}
	}
	r := &record.Ledger{}
	layout, late, err := a.awaitStep(ctx, progress)
	if err != nil {
		return nil, err
	}
	for _, why := range late {
		r.AddNote(why)
	}
	if missing := a.before - len(layout.Nodes); missing > 0 {
		r.AddNote(fmt.Sprintf("%d of the %d nodes that were there before the load are no part of the deployment any more, and were not read.", missing, a.before))
	}
	nodes := a.connections()
	defer nodes.close()
	total := 0
	for _, b := range books {
		total += len(b.pages)
		r.Unique = r.Unique || b.unique
	}
	reader := reading{audit: a, nodes: nodes, layout: layout, late: late, result: r, replicaMissing: map[string]uint64{}}
	done := 0
	for _, b := range books {
		for shard := range b.pages {
			progress(fmt.Sprintf("reading the ledger: %d of %d keys", done, total))
			reader.page(ctx, b, shard)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			done++
		}
	}
	reader.conclude(ctx, books)
	return r, nil
}

// awaitStep waits until every replica is in step with its primary. late says which are not, by address, and why.
func (a *Audit) awaitStep(ctx context.Context, progress func(string)) (layout Layout, late map[string]string, err error) {
	limit := a.ResyncLimit
	if limit == 0 {
		limit = DefaultResyncLimit
	}
	for waited := time.Duration(0); ; waited += pollEvery {
		if layout, err = a.Discover(ctx); err == nil {
			all := len(layout.Nodes) >= a.before || waited >= goneLimit
			if late, err = a.outOfStep(ctx, &layout); err == nil && len(late) == 0 && all {
				return layout, nil, nil
			}
		}
		if ctx.Err() != nil {
			return layout, nil, context.Cause(ctx)
		}
		if waited >= limit {
			break
		}
		if waited%sayEvery == 0 {
			progress(waitingFor(late, a.before-len(layout.Nodes), err))
		}
		if !a.Wait(ctx, pollEvery) {
			return layout, nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return layout, nil, fmt.Errorf("ledger: after %v it cannot be read back: %w", limit, err)
	}
	return layout, late, nil
}

// waitingFor is a sentence about what keeps the ledger from being read.
func waitingFor(late map[string]string, missing int, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("waiting for Redis before the ledger is read: %v", err)
	case len(late) == 0:
		return fmt.Sprintf("waiting for %d nodes to be part of the deployment again before the ledger is read", missing)
	}
	return fmt.Sprintf("waiting for %d replicas to be in step before the ledger is read, such as %s", len(late), slices.Min(slices.Collect(maps.Keys(late))))
}

// outOfStep says which replicas lack something that their primary had when it was asked, by address. An error is a primary that cannot be asked.
func (a *Audit) outOfStep(ctx context.Context, layout *Layout) (map[string]string, error) {
	late := map[string]string{}
	for _, primary := range layout.Nodes {
		if !primary.Primary {
			continue
		}
		if _, err := layout.primary(primary.Shard); err != nil {
			return nil, err
		}
		at, err := a.infoOf(ctx, primary.Address)
		if err != nil {
			return nil, err
		}
		if at["role"] != "master" {
			return nil, fmt.Errorf("%s is named the primary but says role %s", primary.Address, at["role"])
		}
		if at.On("loading") {
			return nil, fmt.Errorf("%s loads its data set", primary.Address)
		}
		for _, n := range layout.Nodes {
			if n.Shard != primary.Shard || n.Primary {
				continue
			}
			if why := a.behind(ctx, n, at); why != "" {
				late[n.Address] = fmt.Sprintf("Replica %s was not in step after the load and was not read: %s.", n.Address, why)
			}
		}
	}
	return late, nil
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

// behind says why a replica is not in step with what its primary said, "" when it is.
func (a *Audit) behind(ctx context.Context, n Node, primary redis.Info) string {
	at, err := a.infoOf(ctx, n.Address)
	switch {
	case err != nil:
		return err.Error()
	case at["role"] != "slave":
		return "it says role " + at["role"]
	case at["master_link_status"] != "up":
		return "its link to the primary is " + at["master_link_status"]
	case at["master_sync_in_progress"] != "0" || at.On("loading"):
		return "it still takes over the primary's data"
	case at["master_replid"] != primary["master_replid"]:
		return "it follows another primary"
	case at.Int("slave_repl_offset") < primary.Int("master_repl_offset"):
		return fmt.Sprintf("it is %d bytes behind", primary.Int("master_repl_offset")-at.Int("slave_repl_offset"))
	}
	return ""
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
