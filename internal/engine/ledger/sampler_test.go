package ledger

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// every is the time between two rounds of the sampler, which itself takes no time.
const every = 5 * time.Millisecond

// sampledPair is a primary and its replica in memory, with a sampler at work.
type sampledPair struct {
	primary, replica *memredis.Server
	sampler          *Sampler
	onNow            atomic.Pointer[func()] // called whenever the sampler asks for the time
	layout           atomic.Pointer[Layout] // instead of both
}

// replicate copies the register half a millisecond after each round, and delivers it some time later.
func (p *sampledPair) replicate(ctx context.Context, lag time.Duration) {
	key := p.sampler.registers[0].key
	time.Sleep(500 * time.Microsecond)
	for wait(ctx, every) {
		if value, ok := p.primary.Get(key); ok {
			time.AfterFunc(lag, func() { p.replica.Put(key, value) })
		}
	}
}

// inVirtualTime samples while during runs, and returns the findings.
func inVirtualTime(t *testing.T, lag time.Duration, during func(p *sampledPair)) *record.Ledger {
	t.Helper()
	network, began := memnet.New(), time.Now()
	p := &sampledPair{
		primary: memredis.Start(t, network, "a:1", memredis.Options{}),
		replica: memredis.Start(t, network, "b:1", memredis.Options{}),
	}
	p.replica.SetReadOnly(true)
	p.sampler = &Sampler{
		Audit: &Audit{
			Discover: func(context.Context) (Layout, error) {
				if l := p.layout.Load(); l != nil {
					return *l, nil
				}
				return Layout{Nodes: []Node{{Address: "a:1", Primary: true}, {Address: "b:1"}}}, nil
			},
			Dial: func(ctx context.Context, address string, _ bool) (net.Conn, error) {
				// a server has two addresses, as by its name
				return network.Dial(ctx, "tcp", strings.Replace(address, ".redis", "", 1))
			},
			Wait: wait,
		},
		Options: Options{Prefix: "rq:", Run: "r", Shards: 1}, StaleReads: true, DualPrimary: true,
		Every: every, Now: func() int64 {
			if f := p.onNow.Load(); f != nil {
				(*f)()
			}
			return int64(time.Since(began))
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.sampler.Run(ctx) }()
	synctest.Wait()
	go p.replicate(ctx, lag)
	during(p)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // writes in flight
	r := &record.Ledger{}
	p.sampler.Add(r)
	return r
}

// wait is an Audit.Wait.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func TestSamplerIsExact(t *testing.T) {
	const ms = int64(time.Millisecond)
	for name, tc := range map[string]struct {
		lag    time.Duration
		during func(p *sampledPair)
		stale  record.Staleness
		dual   record.DualPrimary
	}{
		// Each read finds that the write just made is not there yet.
		"in sync": {0, func(*sampledPair) {
			time.Sleep(time.Second +
				every/2)
		}, record.Staleness{Reads: 200, Stale: 200, MaxWrites: 1}, record.DualPrimary{}},
		"30 ms late": {
			30 * time.Millisecond, func(*sampledPair) { time.Sleep(time.Second + every/2) },
			record.Staleness{Reads: 200, Stale: 200, MaxWrites: 7, MaxBehind: 30 * ms},
			record.DualPrimary{},
		},
		"a second primary for 100 ms": {
			0,
			func(p *sampledPair) {
				time.Sleep(102 * time.Millisecond)
				p.replica.SetReadOnly(false)
				time.Sleep(100 * time.Millisecond)
				p.replica.SetReadOnly(true)
				time.Sleep(100 * time.Millisecond)
			},
			record.Staleness{Reads: 60, Stale: 60, MaxWrites: 1},
			record.DualPrimary{Writes: 20, First: 105 * ms, Last: 200 * ms},
		},
		// The primary restarts empty, is dialled again in the next round, and the replica keeps its data.
		"rolled back": {
			time.Hour,
			func(p *sampledPair) {
				p.replica.Put(p.sampler.registers[0].key, "20")
				time.Sleep(102 * time.Millisecond)
				p.primary.Restart()
				time.Sleep(900 * time.Millisecond)
			},
			record.Staleness{Reads: 200, Stale: 180, MaxWrites: 180, MaxBehind: 895 * ms, RolledBack: 1},
			record.DualPrimary{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := inVirtualTime(t, tc.lag, tc.during)
				if diff := cmp.Diff(tc.stale, *r.Stale); diff != "" {
					t.Errorf("stale reads (-want +got)\n%s", diff)
				}
				if diff := cmp.Diff(tc.dual, *r.Dual); diff != "" {
					t.Errorf("second primary (-want +got)\n%s", diff)
				}
			})
		})
	}
}

// A primary that loses its data is noticed wherever in a round of the sampler it restarts, and once.
func TestSamplerFindsARollbackAtAnyPoint(t *testing.T) {
	for point := 1; point <= 8; point++ {
		synctest.Test(t, func(t *testing.T) {
			points := 0
			r := inVirtualTime(t, 0, func(p *sampledPair) {
				time.Sleep(100*time.Millisecond - every/2)
				p.onNow.Store(new(func() { // before and after each of a round's commands
					if points++; points == point {
						p.primary.Restart()
						time.Sleep(time.Microsecond) // the end of the connection arrives
					}
				}))
				time.Sleep(time.Second)
			})
			if r.Stale.RolledBack != 1 || points < 8 {
				t.Errorf("restarted at point %d of %d: %+v", point, points, *r.Stale)
			}
		})
	}
}

// A hanging node delays the sampler by 250 ms, and is then skipped for 500 ms, while the others are sampled.
func TestSamplerSkipsAHangingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes int
		inVirtualTime(t, 0, func(p *sampledPair) {
			time.Sleep(102 * time.Millisecond)
			p.replica.Stop()
			time.Sleep(1900 * time.Millisecond)
			writes = p.primary.Calls("SET")
			p.replica.Continue()
		})
		// A round writes twice. 21 rounds until it hangs at 105 ms, 100 from 355 to 855 ms, 100 from 1105 to 1605 ms, and 29
		// after 1855 ms.
		if want := 2 * 250; writes != want {
			t.Errorf("%d writes at the primary, want %d", writes, want)
		}
	})
}

// Sentinels promote b, and soon say nothing more of a, which they cannot reach and which goes on accepting writes. a is
// then replaced by another server with its address, to which nothing is written.
func TestTruthTwoPrimariesOfWhichOneIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inVirtualTime(t, time.Hour, func(p *sampledPair) {
			time.Sleep(2 * time.Second)
			p.replica.SetReadOnly(false)
			p.layout.Store(&Layout{Nodes: []Node{{Address: "b:1", Primary: true}, {Address: "a:1"}}})
			time.Sleep(5 * time.Second)
			p.layout.Store(&Layout{Nodes: []Node{{Address: "b:1", Primary: true}}})
			time.Sleep(15 * time.Second)
			p.primary.SetReadOnly(true)
			time.Sleep(2 * time.Second)
			p.primary.SetReadOnly(false)
			p.primary.Restart()
			time.Sleep(5 * time.Second)
			if _, written := p.primary.Get(p.sampler.offers[0]); written {
				t.Error("a server was written to that the topology does not have")
			}
		})
		near := func(at int64, second int) bool {
			return (time.Duration(at) - time.Duration(second)*time.Second).Abs() <= 2*every
		}
		d := *r.Dual
		truth.Report(t, "dual", "two primaries from 2 s to 22 s, of which the topology has one from 7 s on: writes accepted twice",
			"4000", strconv.FormatUint(d.Writes, 10), d.Writes == 4000 && near(d.First, 2) && near(d.Last, 22))
	})
}

// What a server does that the topology no longer has.
func TestSamplerOfServersThatAreNotListed(t *testing.T) {
	alone := func(address string) *Layout { return &Layout{Nodes: []Node{{Address: address, Primary: true}}} }
	for name, tc := range map[string]struct {
		during      func(p *sampledPair)
		least, most uint64 // writes that were accepted twice
		spared      func(p *sampledPair) *memredis.Server
	}{
		"the same server by another name": {during: func(p *sampledPair) {
			time.Sleep(2 * time.Second)
			p.layout.Store(&Layout{Nodes: []Node{{Address: "a.redis:1", Primary: true}, {Address: "b:1"}}})
			time.Sleep(10 * time.Second)
		}},
		"a primary that stalls for 300 ms of 20 s": {least: 3900, most: 3960, during: func(p *sampledPair) {
			time.Sleep(2 * time.Second)
			p.replica.SetReadOnly(false)
			p.layout.Store(alone("b:1"))
			time.Sleep(3 * time.Second)
			p.primary.Stop()
			time.Sleep(300 * time.Millisecond)
			p.primary.Continue()
			time.Sleep(16700 * time.Millisecond)
		}},
		"a replica that is taken out, to be a primary": {during: func(p *sampledPair) {
			time.Sleep(2 * time.Second)
			p.layout.Store(alone("a:1"))
			time.Sleep(2 * time.Second)
			p.replica.SetReadOnly(false)
			time.Sleep(5 * time.Second)
		}, spared: func(p *sampledPair) *memredis.Server { return p.replica }},
		"a primary that is demoted and taken out, to be a primary": {during: func(p *sampledPair) {
			p.primary.SetReadOnly(true)
			p.replica.SetReadOnly(false)
			p.layout.Store(alone("b:1"))
			time.Sleep(2 * time.Second)
			p.primary.Evict(p.sampler.offers[0])
			p.primary.SetReadOnly(false)
			time.Sleep(5 * time.Second)
		}, spared: func(p *sampledPair) *memredis.Server { return p.primary }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := inVirtualTime(t, time.Hour, func(p *sampledPair) {
					tc.during(p)
					if tc.spared == nil {
						return
					}
					if _, written := tc.spared(p).Get(p.sampler.offers[0]); written {
						t.Error("it was written to")
					}
					if n := len(p.sampler.nodes); n != 1 {
						t.Errorf("%d servers are kept", n)
					}
				})
				if n := r.Dual.Writes; n < tc.least || n > tc.most {
					t.Errorf("%d writes were accepted twice, want %d to %d", n, tc.least, tc.most)
				}
			})
		})
	}
}
