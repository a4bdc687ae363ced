package ledger

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// evicting is a run of one or two pods on a primary at a:1 and a replica at b:1 in memory.
type evicting struct {
	primary, replica *memredis.Server
	promoted         atomic.Bool
	pods             []*Audit
	books            []*Book
	cancel           func()
}

// newEvicting starts the run: pod 0 watches the servers.
func newEvicting(t *testing.T, pods, limit int, policy string) *evicting {
	t.Helper()
	network := memnet.New()
	w := &evicting{
		primary: memredis.Start(t, network, "a:1", memredis.Options{}),
		replica: memredis.Start(t, network, "b:1", memredis.Options{}),
	}
	w.primary.SetMemory(limit, policy)
	w.replica.SetMemory(limit, policy)
	w.replica.SetReadOnly(true)
	for pod := range pods {
		audit := &Audit{
			Discover: func(context.Context) (Layout, error) { return w.layout() },
			Dial: func(ctx context.Context, address string, _ bool) (net.Conn, error) {
				return network.Dial(ctx, "tcp", address)
			},
			Wait: wait,
		}
		unique, err := audit.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.pods = append(w.pods, audit)
		w.books = append(w.books, newBook(t, Options{Prefix: "rq:", Run: "r", Writer: pod, Unique: unique, Shards: 1}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		w.pods[0].Watch(ctx, w.layout)
		close(done)
	}()
	w.cancel = func() { cancel(); <-done }
	return w
}

func (w *evicting) layout() (Layout, error) {
	if w.promoted.Load() {
		return Layout{Nodes: []Node{{Address: "b:1", Primary: true}}}, nil
	}
	return Layout{Nodes: []Node{{Address: "a:1", Primary: true}}}, nil
}

// acknowledge makes each pod write so many numbers, of which the server keeps all but the first absent ones.
func (w *evicting) acknowledge(server *memredis.Server, writes, absent uint64) {
	for _, b := range w.books {
		for range writes {
			n, _ := b.Next(0, 0)
			b.Settle(0, n, Acked, 1)
			if n >= absent {
				server.Put(b.Key(0)+":"+strconv.FormatUint(n, 10), "1")
			}
		}
	}
}

// fail kills the primary and promotes the replica.
func (w *evicting) fail() {
	w.primary.Kill()
	w.replica.SetReadOnly(false)
	w.promoted.Store(true)
}

// verified ends the run and merges what the pods read back.
func (w *evicting) verified(t *testing.T) *record.Ledger {
	t.Helper()
	w.cancel()
	var all []*record.Ledger
	for i, a := range w.pods {
		r, err := a.Verify(t.Context(), w.books[i:i+1], nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return record.MergeLedgers(all...)
}

func otherKeys(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("other:", i))
	}
	return keys
}

const (
	tight = 1 << 20 // what the server uses when it is empty
	ample = 100 << 20
)

// The number of lost writes is exact where Redis cannot have evicted a ledger key. Otherwise it has bounds: each
// evicted key may have been one, and a process that died may have evicted any number after its last reading.
func TestTruthLostWritesUnderEviction(t *testing.T) {
	for name, tc := range map[string]struct {
		pods, limit   int
		policy        string
		during        func(w *evicting)
		truth         string
		atLeast, most uint64
	}{
		"volatile-lru evicts other keys": {2, tight, "volatile-lru", func(w *evicting) {
			w.acknowledge(w.primary, 1000, 300)
			w.primary.Evict(otherKeys(362)...)
		}, "600", 600, 600},
		"allkeys-lru, the primary dies": {1, tight, "allkeys-lru", func(w *evicting) {
			w.acknowledge(w.replica, 200, 190)
			w.primary.Evict(otherKeys(1965)...)
			time.Sleep(2 * time.Second)
			w.fail()
		}, "0, the 190 absent ones were evicted", 0, 190},
		"allkeys-lru, the primary dies at its limit": {1, tight, "allkeys-lru", func(w *evicting) {
			w.acknowledge(w.replica, 200, 190)
			time.Sleep(2 * time.Second)
			w.primary.Evict(otherKeys(1965)...) // after the last reading
			w.fail()
		}, "0, the 190 absent ones were evicted", 0, 190},
		"allkeys-lru, the primary dies far from its limit": {1, ample, "allkeys-lru", func(w *evicting) {
			w.acknowledge(w.replica, 200, 190)
			time.Sleep(2 * time.Second)
			w.fail()
		}, "190", 190, 190},
		"allkeys-lru, two pods": {2, tight, "allkeys-lru", func(w *evicting) {
			w.acknowledge(w.primary, 1000, 50)
			w.primary.Evict(otherKeys(30)...)
		}, "70 to 100", 70, 100},
		"allkeys-lru, nothing evicted": {2, tight, "allkeys-lru", func(w *evicting) {
			w.acknowledge(w.primary, 1000, 50)
		}, "100", 100, 100},
		"the policy becomes allkeys-lru": {1, tight, "volatile-lru", func(w *evicting) {
			w.acknowledge(w.primary, 1000, 50)
			time.Sleep(2 * time.Second)
			w.primary.SetMemory(tight, "allkeys-lru")
			w.primary.Evict(otherKeys(20)...)
		}, "30 to 50", 30, 50},
		"the promoted replica evicts": {1, ample, "allkeys-lru", func(w *evicting) {
			w.acknowledge(w.replica, 200, 190)
			time.Sleep(2 * time.Second)
			w.fail()
			w.replica.Evict(otherKeys(40)...)
		}, "150 to 190", 150, 190},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newEvicting(t, tc.pods, tc.limit, tc.policy)
				tc.during(w)
				r := w.verified(t)
				truth.Report(t, "T1", name, tc.truth, fmt.Sprintf("%d to %d", r.LostAtLeast(), r.Lost),
					r.LostAtLeast() == tc.atLeast && r.Lost == tc.most)
			})
		})
	}
}
