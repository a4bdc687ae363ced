//go:build integration

package ledger

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Run(m)) }

// world is a deployment, and a load on it that writes nothing but its ledgers.
type world struct {
	t      *testing.T
	began  time.Time
	layout func() (Layout, error)
	audit  *Audit
	books  []*Book
	locks  []sync.Mutex        // of the books
	acked  [][]map[uint64]bool // by writer and shard: kept apart from the books
	n      []atomic.Int64      // of them, by writer
	within time.Duration       // timeout of a batch
	stop   chan struct{}
	done   sync.WaitGroup
}

func dial(ctx context.Context, address string, readReplica bool) (net.Conn, error) {
	d := redis.Dialer{}
	if readReplica {
		d.Setup = [][]string{{"READONLY"}}
	}
	return d.Dial(ctx, address)
}

// newWorld creates the ledgers of some writers.
func newWorld(t *testing.T, writers int, layout func() (Layout, error)) *world {
	t.Helper()
	return newWorldOf(t, writers, layout, false)
}

// newWorldOf is newWorld whose servers count how often they execute each write, or not.
func newWorldOf(t *testing.T, writers int, layout func() (Layout, error), counted bool) *world {
	t.Helper()
	w := &world{
		t: t, began: time.Now(), layout: layout, within: 20 * time.Second, stop: make(chan struct{}),
		n: make([]atomic.Int64, writers), locks: make([]sync.Mutex, writers),
	}
	w.audit = &Audit{Discover: func(context.Context) (Layout, error) { return layout() }, Dial: dial, Wait: wait}
	unique, err := w.audit.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := layout()
	if err != nil {
		t.Fatal(err)
	}
	shards := 1
	for _, n := range l.Nodes {
		shards = max(shards, n.Shard+1)
	}
	for i := range writers {
		w.books = append(w.books,
			newBook(t, Options{
				Prefix:  "rq:",
				Run:     strconv.FormatInt(w.began.UnixNano(), 36),
				Writer:  i,
				Unique:  unique,
				Counted: counted,
				Shards:  shards,
				ShardOf: l.ShardOf,
			}))
		w.acked = append(w.acked, make([]map[uint64]bool, shards))
		for shard := range shards {
			w.acked[i][shard] = map[uint64]bool{}
		}
	}
	if err := w.audit.Prepare(t.Context(), w.books, 1_000_000, time.Minute); err != nil {
		t.Fatal(err)
	}
	return w
}

// pair is a world on a primary and a replica, which tests share.
func pair(t *testing.T, writers int) (*world, *redistest.Replication) {
	t.Helper()
	d := redistest.SharedReplication(t, 1)
	return newWorld(t, writers, of(d)), d
}

// of is the layout of a primary and its replica.
func of(d *redistest.Replication) func() (Layout, error) {
	return static(Node{Address: d.Primary.Address(), Primary: true}, Node{Address: d.Replicas[0].Address()})
}

func static(nodes ...Node) func() (Layout, error) {
	return func() (Layout, error) { return Layout{Nodes: nodes}, nil }
}

func (w *world) now() int64 { return int64(time.Since(w.began)) }

// load starts one goroutine per book, which writes to the shards in turn.
func (w *world) load() {
	for i := range w.books {
		w.done.Go(func() { w.write(i) })
	}
}

// pipelined is how many writes are in flight.
const pipelined = 16

// write sends batches to the primary of the topology until the load stops. It updates the topology every 50 ms.
func (w *world) write(writer int) {
	b := w.books[writer]
	const lookEvery = 50 * time.Millisecond
	open, at := map[int]*redis.Conn{}, map[int]string{} // by shard
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	layout, look := Layout{}, time.Time{}
	for turn := 0; ; turn++ {
		select {
		case <-w.stop:
			return
		default:
		}
		if time.Now().After(look) {
			if l, err := w.layout(); err == nil {
				layout, look = l, time.Now().Add(lookEvery)
			}
		}
		shard := turn % b.Shards()
		primary, err := layout.primary(layout.shardOf(b.Slot(shard)))
		if err != nil {
			await.Pass(10*time.Millisecond, "the time between two tries of a writer")
			continue
		}
		c := open[shard]
		if c == nil || at[shard] != primary.Address {
			if c != nil {
				c.Close()
			}
			c = redis.NewConn(0, func(ctx context.Context) (net.Conn, error) {
				return dial(ctx, primary.Address, false)
			})
			open[shard], at[shard] = c, primary.Address
		}
		within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err = c.Connect(within)
		cancel()
		if err != nil {
			b.Erred(w.now())
			await.Pass(10*time.Millisecond, "the time between two tries of a writer")
			continue
		}
		await.Pass(time.Millisecond, "some thousand writes per second are sufficient")
		if !w.batch(writer, shard, c) {
			c.Close()
			look = time.Time{}
		}
	}
}

// batch sends some writes and settles them; it returns false when the connection cannot be used any more.
func (w *world) batch(writer, shard int, c *redis.Conn) bool {
	b := w.books[writer]
	var request []byte
	var numbers []uint64
	w.locks[writer].Lock()
	for range pipelined {
		n, _ := b.Next(shard, w.now())
		request = b.Append(request, shard, n)
		numbers = append(numbers, n)
	}
	w.locks[writer].Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), w.within)
	defer cancel()
	values, err := c.Exchange(ctx, request, len(numbers))
	well := err == nil
	w.locks[writer].Lock()
	defer w.locks[writer].Unlock()
	for i, n := range numbers {
		switch {
		case err != nil:
			b.Settle(shard, n, Unknown, w.now())
		case values[i].IsError():
			b.Settle(shard, n, Failed, w.now())
			well = false
		default:
			b.Settle(shard, n, Acked, w.now())
			w.acked[writer][shard][n] = true
			w.n[writer].Add(1)
		}
	}
	return well
}

// primary returns the address to which the first shard's writes are sent.
func (w *world) primary() string {
	w.t.Helper()
	layout, err := w.layout()
	if err != nil {
		w.t.Fatal(err)
	}
	node, err := layout.primary(0)
	if err != nil {
		w.t.Fatal(err)
	}
	return node.Address
}

// writes waits until this number of further writes of each writer has been acknowledged.
func (w *world) writes(more int64) {
	w.t.Helper()
	for i := range w.n {
		want := w.n[i].Load() + more
		await.Until(w.t, fmt.Sprintf("%d writes of writer %d", more, i), func() error {
			if n := w.n[i].Load(); n < want {
				return fmt.Errorf("%d are missing", want-n)
			}
			return nil
		})
	}
}

func (w *world) settled() {
	close(w.stop)
	w.done.Wait()
}

func (w *world) count() (acked uint64) {
	for _, shards := range w.acked {
		for _, numbers := range shards {
			acked += uint64(len(numbers))
		}
	}
	return acked
}

// verify reads the ledgers back and checks the invariants of every result.
func (w *world) verify() *record.Ledger {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	r, err := w.audit.Verify(ctx, w.books, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("acknowledged %d, unknown %d (present %d), lost %d from %v to %v, errors %d", r.Acked, r.Unknown,
		r.UnknownPresent, r.Lost, time.Duration(r.FirstLost), time.Duration(r.LastLost), r.Errors)
	if r.Acked != w.count() || r.FailedPresent != 0 || r.ReplicaMissing != 0 || r.Unread != "" {
		w.t.Errorf("%d acknowledged, want %d; present though failed %d; missing at a replica %d; unread %q", r.Acked,
			w.count(), r.FailedPresent, r.ReplicaMissing, r.Unread)
	}
	return r
}
