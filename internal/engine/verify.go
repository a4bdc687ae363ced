package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redquake/redquake/internal/engine/callers"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
)

// LedgerOperation is the name of the ledger writes' operation in every record.
const LedgerOperation = "ledger"

// openBooks creates the books of the ledger and prepares their keys. If the keys cannot be
// prepared yet, it keeps the books for the next attempt.
func (r *Runner) openBooks(ctx context.Context) error {
	if len(r.books) == 0 {
		if err := r.createBooks(ctx); err != nil {
			return err
		}
	}
	n := r.run
	err := r.audit.Prepare(ctx, r.books, r.expectedWrites(), time.Duration(n.Length))
	if err != nil {
		return ledgerFailed(err)
	}
	return nil
}

// createBooks creates a ledger book for each loop, or one for all callers, and who reads them.
func (r *Runner) createBooks(ctx context.Context) error {
	n := r.run
	v := n.Plan.Verify
	r.audit = &ledger.Audit{
		Discover: r.ledgerLayout,
		Dial:     r.dialLedger,
		Wait:     waitFor,
	}
	unique, err := r.audit.Begin(ctx)
	if err != nil {
		return ledgerFailed(err)
	}
	m := n.Routes.Current()
	o := ledger.Options{
		Prefix:  n.Plan.Workload.Keyspace.Prefix,
		Run:     n.Plan.Run,
		Unique:  unique,
		Counted: r.callers != nil, // a client library may send a request more than once
		Shards:  len(m.Shards),
	}
	if len(m.Shards) > 1 {
		o.ShardOf = route.ShardOrNone(m)
	}
	for i := range r.writers() {
		o.Writer = n.Pod*r.writers() + i
		book, err := ledger.NewBook(o)
		switch {
		case err != nil:
			return &plan.Error{
				Reason:  plan.LedgerFailed,
				Message: err.Error(),
				Err:     err,
			}
		case r.callers != nil:
			r.callers.Ledger = callers.NewLedger(book)
		default:
			r.loops[i].Book = book
		}
		r.books = append(r.books, book)
	}
	if n.Pod == 0 && (v.StaleReads || v.DualPrimary) {
		r.sampler = &ledger.Sampler{
			Audit:       r.audit,
			Options:     o,
			StaleReads:  v.StaleReads,
			DualPrimary: v.DualPrimary,
			Now:         n.Now,
		}
	}
	r.checker = r.newChecker()
	return nil
}

// writers is how many books a pod keeps.
func (r *Runner) writers() int {
	if r.callers != nil {
		return 1
	}
	return len(r.loops)
}

// lockBook keeps a book from being used until unlock is called.
func (r *Runner) lockBook(i int) (unlock func()) {
	if r.callers != nil {
		return r.callers.Ledger.Lock()
	}
	return r.loops[i].Lock()
}

// ledgerFailed is the error of a server that refuses what the ledger needs, or does not answer.
func ledgerFailed(err error) error {
	failed := &plan.Error{
		Reason:  plan.LedgerFailed,
		Message: err.Error(),
		Err:     err,
		Passes:  dial.Passes(err),
	}
	_, atDial := errors.AsType[*redis.DialError](err)
	reply, ok := errors.AsType[redis.Error](err)
	if ok && !atDial {
		failed.Passes = dial.IsTemporary(string(reply)) || dial.IsMoved(string(reply))
	}
	return failed
}

// newChecker returns the checker that reads the books during the load.
func (r *Runner) newChecker() *ledger.Checker {
	n := r.run
	return &ledger.Checker{
		Audit:  r.audit,
		Books:  r.books,
		Layout: r.knownLayout,
		Redial: n.Routes.Tracker == nil,
		Now:    n.Now,
		Delay:  time.Duration(n.Pod) * time.Second / time.Duration(n.Plan.Pods),
		Lock:   r.lockBook,
	}
}

// expectedWrites estimates the number of writes to one bitmap. For a closed loop or a search it is
// not known; a longer bitmap costs Redis little.
func (r *Runner) expectedWrites() uint64 {
	const unknown = 1 << 18
	n, p := r.run, r.run.Pacer.Load()
	if p == nil || n.Length == 0 || n.Plan.Shape.Search != nil {
		return unknown
	}
	return uint64(p.Expected(n.Length)*n.Plan.Verify.Share)/uint64(r.writers()) + 1
}

// ledgerLayout queries the topology for the ledger's audit.
func (r *Runner) ledgerLayout(context.Context) (ledger.Layout, error) {
	r.run.Routes.Refresh("the ledger is read back")
	return r.knownLayout()
}

// knownLayout returns the topology as the load knows it.
func (r *Runner) knownLayout() (ledger.Layout, error) {
	if r.run.Routes.Tracker == nil {
		return ledger.Layout{
			Nodes: []ledger.Node{{Address: r.run.Plan.Target.Addresses[0], Primary: true}},
		}, nil
	}
	m := r.run.Routes.Current()
	layout := ledger.Layout{}
	for i, s := range m.Shards {
		if s.Primary != "" {
			layout.Nodes = append(layout.Nodes, ledger.Node{
				Address: s.Primary,
				Shard:   i,
				Primary: true,
			})
		}
		for _, replica := range s.Replicas {
			layout.Nodes = append(layout.Nodes, ledger.Node{Address: replica, Shard: i})
		}
	}
	if len(layout.Nodes) == 0 {
		return layout, errNoServers
	}
	if len(m.Shards) > 1 {
		layout.ShardOf = route.ShardOrNone(m)
	}
	return layout, nil
}

// dialLedger does not have the topology queried after a failure, as dialNode does: during the load
// that would help it to find a new primary.
func (r *Runner) dialLedger(
	ctx context.Context, address string, readReplica bool,
) (net.Conn, error) {
	d := *r.run.Routes.DialerTo(route.Place{Address: address, Replica: readReplica}, 0)
	d.OnFailure = nil
	c, err := d.Dial(ctx, 0, nil)
	return c.Conn, err
}

func waitFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Verify reads the ledger back after Run has returned. It first waits until the replicas are in
// sync, which may take minutes. progress is called with human-readable messages. Without
// Plan.Verify the result is nil. It must be called once; it stops following the topology, unless
// CleanUp is to follow.
func (r *Runner) Verify(ctx context.Context, progress func(string)) (*record.Ledger, error) {
	if !r.cleansUp() {
		defer r.stopFollowing()
	}
	if r.audit == nil {
		return nil, nil
	}
	result, err := r.audit.Verify(ctx, r.books, progress)
	if err != nil {
		return nil, fmt.Errorf("read the ledger back: %w", err)
	}
	if r.sampler != nil {
		r.sampler.Add(result)
	}
	return result, nil
}

var errNoServers = errors.New("the deployment lists no server")

// Guarantees is how often was false what applications count on that do what the workload does; nil
// for most workloads. It must be called once, after Run.
func (r *Runner) Guarantees() *record.Guarantees {
	if w, ok := r.run.Workload.(workload.Guaranteed); ok {
		return w.Guarantees()
	}
	return nil
}
