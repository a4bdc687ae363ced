package ledger

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Limits of a Sampler.
const (
	// DefaultSampleEvery is the time between two rounds.
	DefaultSampleEvery = 20 * time.Millisecond
	// layoutEvery is the time between two queries of the topology.
	layoutEvery = time.Second
	// sampleWithin is the time limit for a reply.
	sampleWithin = 250 * time.Millisecond
	// formerWithin is that of a former primary, which is not dialled again.
	formerWithin = 2 * time.Second
	// avoidFor is how long a node that did not reply is skipped.
	avoidFor = 500 * time.Millisecond
	// registerLife is the TTL of a register after its last write.
	registerLife = 10 * time.Minute
	// acksKept is how many acknowledgements a register keeps: staleness beyond it is reported as a
	// lower bound.
	acksKept = 1 << 14
)

// Sampler runs during a load, over separate connections. With StaleReads it writes increasing
// numbers to a register per shard and reads them from each replica; with DualPrimary it sends a
// write to every node: two nodes that accept it in the same round are two primaries. A primary that
// the topology no longer has, as sentinels say nothing of one that they cannot reach, is sent writes
// for as long as it replies to them.
// Audit, Options and Now must be set; Options.Writer must be unique within the run; Options.Shards
// and ShardOf are those of the books.
type Sampler struct {
	Audit       *Audit
	Options     Options
	StaleReads  bool
	DualPrimary bool
	Every       time.Duration // default DefaultSampleEvery
	Now         func() int64  // the instant, from the run's start

	stale     record.Staleness
	dual      record.DualPrimary
	registers []*register         // by shard
	offers    []string            // keys for DualPrimary, by shard
	nodes     map[string]*sampled // by address
	former    []Node              // primaries that the topology no longer has
	offered   uint64              // the number of the latest write of DualPrimary
}

// register is one shard's key and its state.
type register struct {
	key   string
	last  uint64               // number of the newest acknowledged write; 0 = none
	next  uint64               // the next number to write
	acks  [acksKept]ackedWrite // by number, modulo
	lost  uint64               // up to this number a rollback of the primary has been counted
	value map[string]uint64    // the latest reply of each node
}

type ackedWrite struct {
	number uint64
	at     int64
}

// sampled is a node's connection.
type sampled struct {
	conn       *redis.Conn
	node       Node // as the topology had it last
	wasPrimary bool
	former     bool // the topology no longer has it
	avoidUntil int64
}

// Run samples until ctx ends. It returns an error if it cannot start because a shard has no key.
func (s *Sampler) Run(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.close()
	every := s.Every
	if every == 0 {
		every = DefaultSampleEvery
	}
	var layout Layout
	lookAt := int64(0)
	for s.Audit.Wait(ctx, every) {
		if now := s.Now(); now >= lookAt || len(layout.Nodes) == 0 {
			lookAt = now + int64(layoutEvery)
			if l, err := s.Audit.Discover(ctx); err == nil {
				layout = l
				s.take(&layout)
			}
		}
		for shard := range s.registers {
			if s.StaleReads {
				s.sampleRegister(ctx, &layout, s.registers[shard])
			}
			if s.DualPrimary {
				s.offer(ctx, &layout, s.offers[shard])
			}
		}
	}
	return nil
}

// Add adds the findings to a result, once Run has returned.
func (s *Sampler) Add(r *record.Ledger) {
	if s.StaleReads {
		stale := s.stale
		r.Stale = &stale
	}
	if s.DualPrimary {
		dual := s.dual
		r.Dual = &dual
	}
}

func (s *Sampler) begin() error {
	s.nodes = map[string]*sampled{}
	shards := max(s.Options.Shards, 1)
	base := s.Options.keyBase()
	registers, err := shardKeys(base+":register", shards, s.Options.ShardOf)
	if err != nil {
		return err
	}
	for _, key := range registers {
		s.registers = append(s.registers, &register{
			key:   key,
			next:  1,
			value: map[string]uint64{},
		})
	}
	s.offers, err = shardKeys(base+":offer", shards, s.Options.ShardOf)
	return err
}

// take notes which nodes the topology has, and which primaries it no longer has. Another former node
// is left alone: a replica may have been taken out, to be a server of its own.
func (s *Sampler) take(layout *Layout) {
	for _, node := range s.nodes {
		node.former = true
	}
	for _, n := range layout.Nodes {
		node := s.nodes[n.Address]
		if node == nil {
			node = &sampled{}
			node.conn = redis.NewConn(0, s.dialer(node, layout.ShardOf != nil))
			s.nodes[n.Address] = node
		}
		node.node, node.former = n, false
		node.wasPrimary = node.wasPrimary || n.Primary
	}
	s.former = nil
	for _, address := range slices.Sorted(maps.Keys(s.nodes)) {
		node := s.nodes[address]
		switch {
		case node.former && node.wasPrimary && s.DualPrimary:
			s.former = append(s.former, node.node)
		case node.former:
			s.forget(address)
		}
	}
}

func (s *Sampler) forget(address string) {
	s.nodes[address].conn.Close()
	delete(s.nodes, address)
	s.former = slices.DeleteFunc(s.former, func(n Node) bool { return n.Address == address })
}

// dialer dials a node. A former one is not dialled: its address may be another server's by now, to
// which nothing must be written.
func (s *Sampler) dialer(to *sampled, readReplica bool) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		if to.former {
			return nil, errFormer
		}
		ctx, cancel := context.WithTimeout(ctx, sampleWithin)
		defer cancel()
		return s.Audit.Dial(ctx, to.node.Address, readReplica)
	}
}

var errFormer = errors.New("the topology no longer has this server")

func (s *Sampler) close() {
	for _, n := range s.nodes {
		n.conn.Close()
	}
}

// sampleRegister writes a shard's register and reads it from all replicas. The primary is read
// before the write, to detect a rollback: in one exchange, as a primary that restarted between the
// two would not show what it has lost.
func (s *Sampler) sampleRegister(ctx context.Context, layout *Layout, r *register) {
	shard := layout.shardOf(topology.SlotOf([]byte(r.key)))
	primary, err := layout.primary(shard)
	if err != nil {
		return
	}
	number := r.next
	r.next++
	replies := s.ask(ctx, primary, getCommand(r.key), setCommand(r.key, number))
	if replies != nil {
		value, ok := numberIn(replies[0])
		if ok && value < r.last && r.last > r.lost {
			s.stale.RolledBack++
			r.lost = r.last // count it once, not at every further read
		}
		if !replies[1].IsError() {
			r.last = number
			r.acks[number%acksKept] = ackedWrite{number, s.Now()}
		}
	}
	for _, n := range layout.Nodes {
		if n.Shard != shard || n.Primary {
			continue
		}
		sent := s.Now()
		replies := s.ask(ctx, n, getCommand(r.key))
		if replies == nil {
			continue
		}
		value, ok := numberIn(replies[0])
		if !ok {
			continue
		}
		s.stale.Reads++
		if value < r.value[n.Address] {
			s.stale.NonMonotonic++
		}
		r.value[n.Address] = value
		if writes, since := r.behind(value); writes > 0 {
			s.stale.Stale++
			s.stale.MaxWrites = max(s.stale.MaxWrites, writes)
			s.stale.MaxBehind = max(s.stale.MaxBehind, sent-since)
		}
	}
}

func getCommand(key string) []byte {
	return resp.AppendCommand(nil, "GET", key)
}

func setCommand(key string, number uint64) []byte {
	return resp.AppendCommand(nil, "SET", key, strconv.FormatUint(number, 10), "PX",
		strconv.FormatInt(registerLife.Milliseconds(), 10))
}

// numberIn is the number in the reply to getCommand; 0 if the key does not exist.
func numberIn(v resp.Value) (number uint64, ok bool) {
	switch {
	case v.IsError():
		return 0, false
	case v.Type == '_':
		return 0, true
	}
	number, err := strconv.ParseUint(v.Text, 10, 64)
	return number, err == nil
}

// behind counts the acknowledged writes after a value, and returns when the first of them was
// acknowledged.
func (r *register) behind(value uint64) (writes uint64, since int64) {
	from := value + 1
	if r.last >= acksKept {
		from = max(from, r.last-acksKept+1)
	}
	for number := from; number <= r.last; number++ {
		if a := r.acks[number%acksKept]; a.number == number {
			if writes == 0 {
				since = a.at
			}
			writes++
		}
	}
	return writes, since
}

// offer sends a write to every node of a shard. If two accept it, they are asked again: a primary
// that was demoted in between rejects it then, and one that has two addresses has the write that was
// sent to the other one.
func (s *Sampler) offer(ctx context.Context, layout *Layout, key string) {
	shard := layout.shardOf(topology.SlotOf([]byte(key)))
	type write struct {
		at     Node
		number uint64
	}
	var took []write
	for _, n := range slices.Concat(layout.Nodes, s.former) {
		if n.Shard != shard {
			continue
		}
		s.offered++
		replies := s.ask(ctx, n, setCommand(key, s.offered))
		switch {
		case replies == nil:
		case !replies[0].IsError():
			took = append(took, write{n, s.offered})
		case isDemotion(replies[0]) && s.nodes[n.Address].former:
			s.forget(n.Address)
		}
	}
	if len(took) < 2 {
		return
	}
	primaries := 0
	for _, w := range took {
		replies := s.ask(ctx, w.at, getCommand(key), setCommand(key, w.number))
		if replies == nil || replies[1].IsError() {
			continue
		}
		if has, ok := numberIn(replies[0]); ok && has == w.number {
			primaries++
		}
	}
	if primaries < 2 {
		return
	}
	now := s.Now()
	if s.dual.Writes == 0 {
		s.dual.First = now
	}
	s.dual.Last = now
	s.dual.Writes += uint64(primaries - 1)
}

// isDemotion reports whether a node refused a write because it is a primary no longer.
func isDemotion(reply resp.Value) bool {
	class := resp.Classify([]byte(reply.Text))
	return class == record.ClassReadOnly || class == record.ClassMoved
}

// ask sends commands to a node in one write, and returns a reply for each; nil if the node did not
// reply, or is skipped because of that.
func (s *Sampler) ask(ctx context.Context, n Node, commands ...[]byte) []resp.Value {
	node := s.nodes[n.Address]
	if node == nil || s.Now() < node.avoidUntil {
		return nil
	}
	within := sampleWithin
	if node.former {
		within = formerWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	replies, err := node.conn.Exchange(ctx, bytes.Join(commands, nil), len(commands))
	switch {
	case err == nil:
		return replies
	case node.former:
		s.forget(n.Address)
	default:
		node.avoidUntil = s.Now() + int64(avoidFor)
	}
	return nil
}
