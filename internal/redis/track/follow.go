package track

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Timing of the queries.
const (
	restBetween = 50 * time.Millisecond // minimum time between two rounds of queries
	lookEvery   = time.Second           // maximum time between two rounds
	eagerLooks  = 40                    // additional rounds after a sentinel announced a new primary
	// rounds during which a MOVED overrides views of nodes that do not have it yet
	keepMoves = 20
	// consecutive failures after which an announced address is dropped
	dropAfter = 60
	mostNodes = 7 // maximum number of nodes of a cluster that are queried
)

// policy is the queries for one kind of deployment and the evaluation of the replies.
type policy interface {
	ask(ctx context.Context, c *redis.Conn, address string) (any, error)
	// resolve returns the map for the latest answer of each address, and further addresses to query.
	// before is nil at first.
	resolve(before *topology.Map, answers map[string]any) (m *topology.Map, known []string)
}

// follower is the Tracker of deployments that can change.
type follower struct {
	target  Target
	policy  policy
	login   LoginFunc
	seeds   []string
	most    int // maximum number of addresses to query
	log     *slog.Logger
	current atomic.Pointer[topology.Map]
	wake    chan string // reason for a round of queries; capacity one
	hurried atomic.Int64
	changed chan struct{} // capacity one
	answers chan answer
	ready   chan struct{} // closed once the first map is complete
	end     context.CancelFunc
	all     sync.WaitGroup

	mu        sync.Mutex // guards the following fields, and changes of current
	listeners []func(*topology.Map)
	moves     map[uint16]string
	movesLeft int // rounds
	errors    map[string]error

	gathered
}

// gathered is what the loop knows, and only the loop uses.
type gathered struct {
	nodes   map[string]*node
	newest  map[string]any
	problem string
	isReady bool
}

func newFollower(target Target, p policy, login LoginFunc, seeds []string, most int) *follower {
	f := &follower{
		target:  target,
		policy:  p,
		login:   login,
		seeds:   seeds,
		most:    most,
		log:     target.Log,
		wake:    make(chan string, 1),
		changed: make(chan struct{}, 1),
		answers: make(chan answer),
		ready:   make(chan struct{}),
		moves:   map[uint16]string{},
		errors:  map[string]error{},
		gathered: gathered{
			nodes:  map[string]*node{},
			newest: map[string]any{},
		},
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	return f
}

// Map implements Tracker.
func (f *follower) Map() *topology.Map {
	return f.current.Load()
}

// Moved implements Tracker.
func (f *follower) Moved(slot uint16, address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.current.Load()
	if now == nil || now.Kind != topology.KindCluster {
		return false
	}
	next, known := now.WithMoved(slot, address)
	if known {
		f.movesLeft = keepMoves
		f.moves[slot%topology.SlotCount] = address
	}
	if next != now {
		f.store(now, next)
	}
	f.Refresh("MOVED")
	return known
}

// OnChange implements Tracker.
func (f *follower) OnChange(listener func(*topology.Map)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, listener)
}

// start runs the loop and waits until the first map is complete.
func (f *follower) start(ctx context.Context) (Tracker, error) {
	within, end := context.WithCancel(context.WithoutCancel(ctx))
	f.end = end
	f.all.Go(func() { f.loop(within) })
	tell := f.target.teller()
	for {
		select {
		case <-f.ready:
			return f, nil
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("find the primary: %w", f.trouble())
		case <-f.target.After(restBetween):
			failed := fmt.Errorf("find the primary: %w", f.trouble())
			if f.hopeless() {
				f.Close()
				return nil, lasting{failed}
			}
			tell(failed)
		}
	}
}

// Close implements Tracker.
func (f *follower) Close() {
	f.end()
	f.all.Wait()
}

// loop queries the nodes and evaluates their answers until ctx ends.
func (f *follower) loop(ctx context.Context) {
	f.know(ctx, f.seeds)
	asked := true
	var rest, idle <-chan time.Time
	for {
		if asked && rest == nil {
			f.look()
			asked = f.hurried.Add(-1) > 0
			rest, idle = f.target.After(restBetween), f.target.After(lookEvery)
		}
		select {
		case <-ctx.Done():
			return
		case reason := <-f.wake:
			f.log.Debug("looking at the topology", "reason", reason)
			asked = true
		case <-rest:
			rest = nil
		case <-idle:
			idle, asked = nil, true
		case a := <-f.answers:
			f.heard(ctx, a)
		case <-f.changed:
			f.tell()
		}
	}
}

// look starts a query at every node without a query in progress.
func (f *follower) look() {
	for _, n := range f.nodes {
		select {
		case n.kick <- struct{}{}:
		default:
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.movesLeft--; f.movesLeft <= 0 {
		clear(f.moves)
	}
}

// heard handles one answer.
func (f *follower) heard(ctx context.Context, a answer) {
	n := f.nodes[a.address]
	if n == nil {
		return // dropped in the meantime
	}
	f.mu.Lock()
	if a.err == nil {
		delete(f.errors, a.address)
	} else {
		f.errors[a.address] = a.err
	}
	f.mu.Unlock()
	if a.err == nil {
		n.failures = 0
		f.newest[a.address] = a.value
	} else {
		n.failures++
		f.log.Debug("no answer about the topology", "address", a.address, "error", a.err)
		delete(f.newest, a.address)
		f.drop(n)
	}
	known := f.resolve()
	f.know(ctx, known)
}

// resolve computes the map from the latest answers.
func (f *follower) resolve() (known []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.current.Load()
	next, known := f.policy.resolve(now, f.newest)
	if next.Kind == topology.KindCluster {
		for slot, address := range f.moves {
			n, ok := next.ShardOf(slot)
			if ok && next.Shards[n].Primary == address {
				delete(f.moves, slot) // confirmed
			}
		}
		next = next.WithMoves(f.moves)
	}
	if now == nil || !next.Same(now) {
		if next == now {
			next = next.Clone()
		}
		f.report(now, next)
		f.store(now, next)
	}
	if !f.isReady && next.Problem == "" && len(next.Primaries()) > 0 && f.settled() {
		f.isReady = true
		close(f.ready)
	}
	return known
}

// store replaces now by next; the caller holds mu.
func (f *follower) store(now, next *topology.Map) {
	if now != nil {
		next.Version = now.Version + 1
	} else {
		next.Version = 1
	}
	f.current.Store(next)
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// settled reports whether every seed has answered or failed: the first map must not lack replicas
// that respond more slowly.
func (f *follower) settled() bool {
	for _, s := range f.seeds {
		if _, ok := f.newest[s]; !ok && f.errors[s] == nil {
			return false
		}
	}
	return true
}

// report logs the changes.
func (f *follower) report(now, next *topology.Map) {
	if next.Problem != f.problem {
		f.problem = next.Problem
		if next.Problem != "" {
			f.log.Warn("the topology is not certain", "problem", next.Problem)
		}
	}
	for i := range next.Shards {
		was, is := "", next.Shards[i].Primary
		if now != nil && i < len(now.Shards) {
			was = now.Shards[i].Primary
		}
		if was != is {
			f.log.Info("another primary", "shard", i, "was", was, "is", is)
		}
	}
}

// tell calls the listeners with the latest map.
func (f *follower) tell() {
	f.mu.Lock()
	listeners := slices.Clone(f.listeners)
	m := f.current.Load()
	f.mu.Unlock()
	for _, listener := range listeners {
		listener(m)
	}
}

// know starts to query new addresses.
func (f *follower) know(ctx context.Context, addresses []string) {
	for _, address := range addresses {
		if f.nodes[address] != nil || len(f.nodes) >= f.most {
			continue
		}
		within, cancel := context.WithCancel(ctx)
		n := &node{
			address: address,
			conn:    f.target.conn(address, f.login),
			kick:    make(chan struct{}, 1),
			cancel:  cancel,
		}
		f.nodes[address] = n
		n.kick <- struct{}{}
		f.all.Go(func() { n.run(within, f.target.timeout(), f.policy.ask, f.answers) })
		if s, ok := f.policy.(sentinels); ok {
			f.all.Go(func() { f.subscribe(within, s, address) })
		}
	}
}

// drop stops querying an address that does not answer: immediately if others wait for its place,
// after dropAfter failures if it was only announced.
func (f *follower) drop(n *node) {
	isSeed := slices.Contains(f.seeds, n.address)
	full := len(f.nodes) >= f.most
	if full && n.failures >= 3 || !isSeed && n.failures >= dropAfter {
		n.cancel()
		delete(f.nodes, n.address)
		f.mu.Lock()
		delete(f.errors, n.address)
		f.mu.Unlock()
		if s, ok := f.policy.(sentinels); ok {
			delete(s.heard, n.address)
		}
	}
	if len(f.newest) > 0 {
		return
	}
	// No address answers: the seeds may be names that resolve to other addresses now.
	for _, seed := range f.seeds {
		if f.nodes[seed] == nil && len(f.nodes) >= f.most {
			n.cancel()
			delete(f.nodes, n.address)
			return
		}
	}
}

// trouble returns why there is no first map.
func (f *follower) trouble() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all troubles
	m := f.current.Load()
	if m != nil && m.Problem != "" {
		all = append(all, errors.New(m.Problem))
	}
	for _, address := range inOrder(f.seeds, anyOf(f.errors)) {
		all = append(all, fmt.Errorf("%s: %w", address, steady{f.errors[address]}))
	}
	switch {
	case len(all) > 0:
		return all
	case m != nil && len(m.Primaries()) == 0:
		return errors.New("no server is a primary")
	}
	return errNoReply
}

var errNoReply = errors.New("no reply yet")

// troubles are several errors in one line.
type troubles []error

func (t troubles) Error() string {
	texts := make([]string, len(t))
	for i, err := range t {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (t troubles) Unwrap() []error {
	return t
}

// hopeless reports whether no seed can succeed by waiting.
func (f *follower) hopeless() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seeds {
		if f.errors[s] == nil || f.target.passes(f.errors[s]) {
			return false
		}
	}
	return len(f.seeds) > 0
}

func anyOf(errs map[string]error) map[string]any {
	all := map[string]any{}
	for k, v := range errs {
		all[k] = v
	}
	return all
}

// subscribe subscribes to +switch-master at one sentinel until ctx ends. A message only triggers
// queries: the majority of the sentinels decides.
func (f *follower) subscribe(ctx context.Context, s sentinels, address string) {
	f.target.conn(address, f.login).Subscribe(ctx, "SUBSCRIBE", "+switch-master", func() {
		f.Refresh("subscribed at " + address) // a message may have been missed before
	}, func(_, payload string) {
		name, from, to, ok := topology.ParseSwitchMaster(payload)
		if ok && (s.name == "" || name == s.name) {
			f.log.Info("a sentinel announces another primary", "sentinel", address, "master", name, "was",
				from, "is", to)
			f.hurry("+switch-master from " + address)
		}
	})
}

// hurry requests several rounds: an announcement may not have reached every sentinel yet.
func (f *follower) hurry(reason string) {
	f.hurried.Store(eagerLooks)
	f.Refresh(reason)
}

// Refresh implements Tracker.
func (f *follower) Refresh(reason string) {
	select {
	case f.wake <- reason:
	default: // a round is already requested
	}
}
