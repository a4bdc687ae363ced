//go:build integration

package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// checked is a checker that runs beside a world's load.
type checked struct {
	*Checker
	t     *testing.T
	lost  []uint64 // by shard, so far
	state record.LedgerCheck
}

func (w *world) check() *checked {
	w.t.Helper()
	c := &checked{t: w.t, Checker: &Checker{
		Audit: w.audit, Books: w.books, Layout: w.layout, Every: 20 * time.Millisecond, Now: w.now,
		Lock: func(i int) func() { w.locks[i].Lock(); return w.locks[i].Unlock },
	}}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
	return c
}

// follow takes what was found until the condition holds.
func (c *checked) follow(what string, until func() bool) {
	c.t.Helper()
	await.Until(c.t, what, func() error {
		lost, checks := c.Take(1 << 62)
		for shard, n := range lost {
			for len(c.lost) <= shard {
				c.lost = append(c.lost, 0)
			}
			c.lost[shard] += n
		}
		for _, check := range checks {
			c.state = check
		}
		if !until() {
			return fmt.Errorf("%v lost, last check %+v", c.lost, c.state)
		}
		return nil
	})
}

// readAgain waits until all of the ledger has been read by a check that begins from now on.
func (c *checked) readAgain() {
	c.t.Helper()
	now := c.Now()
	c.follow("another check", func() bool { return c.state.At > now })
}

func (c *checked) total() uint64 {
	return sum(c.lost)
}

func (c *checked) expect(what string, lost uint64) {
	c.t.Helper()
	c.readAgain()
	if c.total() != lost {
		c.t.Errorf("%s: %v lost, want %d", what, c.lost, lost)
	}
}

func TestCheckFindsNothingInAQuietRun(t *testing.T) {
	redistest.Each(t, testCheckFindsNothingInAQuietRun)
}

func testCheckFindsNothingInAQuietRun(t *testing.T) {
	t.Parallel()
	w, d := pair(t, 2)
	c := w.check()
	w.load()
	for range 20 {
		w.writes(200)
		c.expect("quiet", 0)
	}
	d.Primary.Stop() // no reply is no loss
	c.follow("a check that fails", func() bool { return c.state.Failure != "" })
	d.Primary.Cont()
	c.expect("after a pause", 0)
	w.settled()
	if r := w.verify(); r.Lost != 0 {
		t.Errorf("%d lost", r.Lost)
	}
}

// A replica that lacks writes is promoted while its primary dies: the check finds exactly those, and so does the final
// reading.
func TestCheckFindsWhatAFailoverLost(t *testing.T) {
	redistest.Each(t, testCheckFindsWhatAFailoverLost)
}

func testCheckFindsWhatAFailoverLost(t *testing.T) {
	t.Parallel()
	d := redistest.NewReplication(t, 1, redistest.Options{})
	replica := d.Replicas[0]
	var now atomic.Pointer[redistest.Server]
	now.Store(d.Primary)
	w := newWorld(t, 2, func() (Layout, error) {
		return Layout{Nodes: []Node{{Address: now.Load().Address(), Primary: true}}}, nil
	})
	c := w.check()
	w.load()
	w.writes(1000)
	replica.Do("replicaof", "no", "one") // from here on it receives no writes
	w.writes(1000)
	c.expect("before the failover", 0)
	w.settled()
	d.Primary.Kill()
	now.Store(replica)
	absent := absentAt(w, replica)
	c.expect("after the failover", absent)
	if r := w.verify(); absent == 0 || r.Lost != absent {
		t.Errorf("%d lost in the end, want %d", r.Lost, absent)
	}
}

// The load knows a server as primary that is a replica: that it lacks writes is no loss.
func TestCheckDoesNotTrustAReplica(t *testing.T) {
	t.Parallel()
	d := redistest.NewReplication(t, 1, redistest.Options{})
	replica := d.Replicas[0]
	var named atomic.Pointer[redistest.Server]
	named.Store(d.Primary)
	w := newWorld(t, 1, func() (Layout, error) {
		return Layout{Nodes: []Node{{Address: named.Load().Address(), Primary: true}}}, nil
	})
	w.load()
	w.writes(500)
	w.settled()
	d.Primary.Stop() // the replica hears nothing more
	replica.Do("config", "set", "replica-read-only", "no")
	replica.Do("flushall")
	named.Store(replica)
	c := w.check()
	c.follow("a refusal", func() bool { return strings.Contains(c.state.Failure, "is no primary, its role is slave") })
	if c.total() > 0 || c.state.At != 0 {
		t.Errorf("%v lost, %+v", c.lost, c.state)
	}
	d.Primary.Cont()
}

func TestCheckFindsAnEmptyServer(t *testing.T) { redistest.Each(t, testCheckFindsAnEmptyServer) }

func testCheckFindsAnEmptyServer(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(s *redistest.Server){
		"restart without persistence": func(s *redistest.Server) { s.Kill(); s.Restart() },
		"FLUSHALL":                    func(s *redistest.Server) { s.Do("flushall") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			w := newWorld(t, 3, static(Node{Address: s.Address(), Primary: true}))
			c := w.check()
			w.load()
			w.writes(500)
			c.expect("before", 0)
			w.settled()
			empty(s)
			c.expect("after", w.count())
			if r := w.verify(); r.Lost != w.count() {
				t.Errorf("%d lost in the end, want %d", r.Lost, w.count())
			}
		})
	}
}

// What is found stays found: a server whose data is back afterwards has lost nothing in the end.
func TestCheckRemembersALossThatIsUndone(t *testing.T) {
	t.Parallel()
	s, other := redistest.Start(t), redistest.Start(t)
	var now atomic.Pointer[redistest.Server]
	now.Store(s)
	w := newWorld(t, 1, func() (Layout, error) {
		return Layout{Nodes: []Node{{Address: now.Load().Address(), Primary: true}}}, nil
	})
	c := w.check()
	w.load()
	w.writes(500)
	w.settled()
	c.expect("before", 0)
	now.Store(other)
	c.expect("at an empty server", w.count())
	now.Store(s)
	c.expect("back", w.count())
	if r := w.verify(); r.Lost != 0 {
		t.Errorf("%d lost in the end", r.Lost)
	}
}

// Old writes of a long ledger are read in turn, and each loss counts once.
func TestCheckReadsALongLedgerInTurn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w := newWorld(t, 1, static(Node{Address: s.Address(), Primary: true}))
	const writes = 1_000_000
	b := w.books[0]
	for range writes {
		n, _ := b.Next(0, 0)
		b.Settle(0, n, Acked, int64(n))
	}
	s.Do("setrange", b.Key(0), 0, string(b.pages[0].acked))
	c := w.check()
	c.expect("before", 0)
	for _, n := range []int{3, 4, 200_000, 500_001, writes - 1} {
		s.Do("setbit", b.Key(0), n, 0)
	}
	c.follow("all losses", func() bool { return c.total() == 5 })
	before := s.Calls("getrange")
	await.Until(t, "two turns", func() error {
		if n := s.Calls("getrange") - before; n < 2*writes/8/turnBytes*2 {
			return fmt.Errorf("%d reads", n)
		}
		return nil
	})
	c.expect("later", 5)
}

// Under a policy that may evict the ledger, a check tells nothing, and says so: from the start, or from the first
// possible eviction on.
func TestCheckUnderEviction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "maxmemory-policy allkeys-lru")
	w := newWorld(t, 1, static(Node{Address: s.Address(), Primary: true}))
	c := w.check()
	c.follow("keys instead of bits", func() bool {
		return c.state.Unknowable && strings.Contains(c.state.Failure, "maxmemory-policy is not noeviction")
	})

	s = redistest.Start(t)
	w = newWorld(t, 1, static(Node{Address: s.Address(), Primary: true}))
	c = w.check()
	w.load()
	w.writes(500)
	c.expect("before", 0)
	s.Do("config", "set", "maxmemory-policy", "allkeys-random")
	s.Do("config", "set", "maxmemory", 1)
	c.follow("evictions", func() bool { return c.state.Unknowable })
	w.settled()
	if c.total() != 0 {
		t.Errorf("%v lost", c.lost)
	}
}

func TestCheckOfACluster(t *testing.T) { redistest.Each(t, testCheckOfACluster) }

func testCheckOfACluster(t *testing.T) {
	t.Parallel()
	w, d := clusterWorld(t)
	c := w.check()
	w.load()
	w.writes(1000)
	d.Failover(d.Shards[0][1])
	w.writes(1000)
	w.settled()
	c.readAgain()
	// by the failover itself: none, unless the machine is so slow that it times out; the final reading tells the same
	lost := c.total()
	shard := w.books[0].Key(1)
	var planted uint64
	for n := range w.acked[0][1] {
		if n%7 == 0 {
			if d.Owner(int(w.books[0].Slot(1))).Do("setbit", shard, n, 0) == int64(1) {
				planted++
			}
		}
	}
	before := slices.Clone(c.lost)
	c.expect("planted", lost+planted)
	if len(c.lost) != 2 || c.lost[1] != planted+sum(before[min(1, len(before)):]) {
		t.Errorf("%v lost, want %d of shard 1 in addition to %v", c.lost, planted, before)
	}
	if r := w.verify(); r.Lost != lost+planted {
		t.Errorf("%d lost in the end, want %d", r.Lost, lost+planted)
	}
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func TestCheckUnderSentinels(t *testing.T) { redistest.Each(t, testCheckUnderSentinels) }

func testCheckUnderSentinels(t *testing.T) {
	t.Parallel()
	untilLost(t, checkUnderSentinels)
}

func checkUnderSentinels(t *testing.T) (lost uint64) {
	w, d := sentinelWorld(t)
	c := w.check()
	w.load()
	w.writes(1000)
	c.expect("before", 0)
	d.FailoverAndWait()
	demoted(t, d)
	w.writes(1000)
	w.settled()
	c.readAgain()
	r := w.verify()
	if c.total() != r.Lost {
		t.Errorf("%d found while the load ran, %d in the end", c.total(), r.Lost)
	}
	return r.Lost
}

// BenchmarkCheck is one check of the ledgers of 8 writers with 8,000,000 writes each, which come every second: its
// time, how long a load is kept from its ledger meanwhile, and what the server executes.
func BenchmarkCheck(b *testing.B) {
	s := redistest.Start(b)
	const writers, writes = 8, 8_000_000
	layout := static(Node{Address: s.Address(), Primary: true})
	c := &Checker{Audit: &Audit{Dial: dial, Wait: wait}, Layout: layout, Now: func() int64 { return 0 }}
	var locked time.Duration
	c.Lock = func(int) func() {
		began := time.Now()
		return func() { locked += time.Since(began) }
	}
	for i := range writers {
		book := newBook(b, Options{Prefix: "rq:", Run: "r", Writer: i})
		for range writes {
			n, _ := book.Next(0, int64(i)*1000)
			book.Settle(0, n, Acked, int64(n))
		}
		s.Do("setrange", book.Key(0), 0, string(book.pages[0].acked))
		c.Books = append(c.Books, book)
	}
	c.begin()
	defer c.close()
	c.check(b.Context()) // the first one reads more
	s.Do("config", "resetstat")
	locked = 0
	for b.Loop() {
		c.check(b.Context())
	}
	if lost, checks := c.Take(1); len(lost) > 0 || len(checks) != 1 || checks[0].Failure != "" {
		b.Fatal(lost, checks)
	}
	executed := 0
	for _, command := range []string{"getrange", "info"} {
		stat, _ := redis.ParseInfo(s.Do("info", "commandstats").(string)).Command(command)
		executed += int(stat.Time)
	}
	b.ReportMetric(float64(executed)/float64(b.N), "server-ns/op")
	b.ReportMetric(float64(locked.Nanoseconds())/float64(b.N*writers), "locked-ns/writer")
}

// Of counts the check finds exactly the planted loss, of old writes as well.
func TestCheckOfCounts(t *testing.T) { redistest.Each(t, testCheckOfCounts) }

func testCheckOfCounts(t *testing.T) {
	t.Parallel()
	d := redistest.SharedReplication(t, 1)
	w := newWorldOf(t, 2, of(d), true)
	c := w.check()
	w.load()
	w.writes(2000)
	w.settled()
	c.expect("before a loss", 0)
	planted := plant(w, d.Primary, 97)
	c.follow("the planted loss", func() bool { return c.total() >= planted })
	c.expect("after it", planted)
	if r := w.verify(); r.Lost != planted || *r.ExecutedTwice != 0 {
		t.Errorf("%d lost, want %d; %d executed twice", r.Lost, planted, *r.ExecutedTwice)
	}
}
