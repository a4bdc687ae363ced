//go:build integration

package ledger

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/truth"
)

func TestCleanRunsLoseNothing(t *testing.T) { redistest.Each(t, testCleanRunsLoseNothing) }

func testCleanRunsLoseNothing(t *testing.T) {
	t.Parallel()
	d := redistest.SharedReplication(t, 1)
	for range 20 {
		w := newWorld(t, 2, of(d))
		w.load()
		w.writes(500)
		w.settled()
		r := w.verify()
		if r.Lost != 0 || r.Acked == 0 || r.Unknown != 0 || r.Replicas != 1 {
			t.Errorf("%+v", *r)
		}
	}
	if left := d.Primary.Do("dbsize"); left != int64(0) {
		t.Errorf("%v keys are left", left)
	}
}

// lose deletes a write of a writer on the server.
func (w *world) lose(s *redistest.Server, writer int, n uint64) {
	b := w.books[writer]
	switch {
	case b.unique:
		s.Do("del", b.Key(0)+":"+strconv.FormatUint(n, 10))
	case b.counted:
		s.Do("setrange", b.Key(0), n, "\x00")
	default:
		s.Do("setbit", b.Key(0), n, 0)
	}
}

// plant deletes every step-th acknowledged write of each writer on the server, and returns their number.
func plant(w *world, s *redistest.Server, step int) (planted uint64) {
	for writer, shards := range w.acked {
		for n := range shards[0] {
			if n%uint64(step) != 0 {
				continue
			}
			w.lose(s, writer, n)
			planted++
		}
	}
	return planted
}

func TestPlantedLossIsFoundExactly(t *testing.T) { redistest.Each(t, testPlantedLossIsFoundExactly) }

func testPlantedLossIsFoundExactly(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"bits": "noeviction", "keys": "allkeys-lru"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := redistest.NewReplication(t, 1, redistest.Options{Config: []string{"maxmemory-policy " + policy}})
			w := newWorld(t, 3, of(d))
			w.load()
			w.writes(1000)
			w.settled()
			planted := plant(w, d.Primary, 97)
			r := w.verify()
			if planted == 0 || r.Lost != planted || r.Unique != (name == "keys") {
				t.Errorf("%d lost, %d were planted; unique %v", r.Lost, planted, r.Unique)
			}
			if r.FirstLost < 0 || r.LastLost <= r.FirstLost || r.LastLost > w.now() || r.Errors != 0 {
				t.Errorf("window %d to %d, %d errors", r.FirstLost, r.LastLost, r.Errors)
			}
			if left := d.Primary.Do("dbsize"); left != int64(0) {
				t.Errorf("%v keys are left", left)
			}
		})
	}
}

// Writes that the server executed once more, or 300 times more, are counted exactly, as is what was lost.
func TestExecutionsAreCounted(t *testing.T) { redistest.Each(t, testExecutionsAreCounted) }

func testExecutionsAreCounted(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"bytes": "noeviction", "keys": "allkeys-lru"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := redistest.NewReplication(t, 1, redistest.Options{Config: []string{"maxmemory-policy " + policy}})
			w := newWorldOf(t, 2, of(d), true)
			w.load()
			w.writes(1000)
			w.settled()
			conn := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) { return dial(ctx, d.Primary.Address(), false) })
			defer conn.Close()
			planted := uint64(0)
			for writer, shards := range w.acked {
				for n := range shards[0] {
					again := 0
					switch {
					case n%89 == 1:
						again = 1
					case n%499 == 2:
						again = 300 // more than a byte can count
					}
					if again == 0 {
						continue
					}
					planted++
					var request []byte
					for range again {
						request = w.books[writer].Append(request, 0, n)
					}
					if _, err := conn.Exchange(t.Context(), request, again); err != nil {
						t.Fatal(err)
					}
				}
			}
			lost := uint64(0)
			for _, n := range []uint64{0, 8, 16} { // of the first writer: none was executed again
				if w.acked[0][0][n] {
					lost++
					w.lose(d.Primary, 0, n)
				}
			}
			r := w.verify()
			if planted == 0 || *r.ExecutedTwice != planted || r.Lost != lost || r.Unique != (name == "keys") {
				t.Errorf("%d executed twice, %d were planted; %d lost, %d were planted: %+v", *r.ExecutedTwice, planted, r.Lost, lost, r)
			}
			if left := d.Primary.Do("dbsize"); left != int64(0) {
				t.Errorf("%v keys are left", left)
			}
		})
	}
}

// Redis evicts ledger keys under allkeys-lru, where no loss is certain, and others under volatile-lru, where a planted
// loss is found exactly.
func TestTruthEvictionByRedis(t *testing.T) {
	t.Parallel()
	for policy, lost := range map[string]bool{"allkeys-lru": false, "volatile-lru": true} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "maxmemory 4mb", "maxmemory-policy "+policy)
			w := newWorld(t, 1, static(Node{Address: server.Address(), Primary: true}))
			w.load()
			w.writes(2000)
			w.settled()
			var planted uint64
			if lost {
				planted = plant(w, server, 97)
			}
			for i := range 400 {
				server.Do("set", "other:"+strconv.Itoa(i), strings.Repeat("x", 32<<10), "ex", 3600)
			}
			r := w.verify()
			evicted, _ := strconv.Atoi(server.Info("evicted_keys"))
			truth.Report(t, "T1", "Redis evicts by "+policy, fmt.Sprintf("%d lost", planted),
				fmt.Sprintf("%d to %d, %d keys evicted", r.LostAtLeast(), r.Lost, evicted),
				evicted > 0 && r.LostAtLeast() == planted && r.Lost >= planted && (lost == (r.Lost == planted)))
		})
	}
}

// absentAt counts, independently of the ledger, the acknowledged writes that a server lacks.
func absentAt(w *world, s *redistest.Server) (absent uint64) {
	for writer, shards := range w.acked {
		bits := s.Do("get", w.books[writer].Key(0)).(string)
		for n := range shards[0] {
			if i := int(n / 8); i >= len(bits) || bits[i]&(0x80>>(n%8)) == 0 {
				absent++
			}
		}
	}
	return absent
}

func TestStaleReplicaPromoted(t *testing.T) { redistest.Each(t, testStaleReplicaPromoted) }

func testStaleReplicaPromoted(t *testing.T) {
	t.Parallel()
	d := redistest.NewReplication(t, 1, redistest.Options{})
	now, replica := d.Primary, d.Replicas[0]
	w := newWorld(t, 2, func() (Layout, error) {
		return Layout{
			Nodes: []Node{{Address: now.Address(), Primary: true}},
		}, nil
	})
	w.load()
	w.writes(1000)
	replica.Do("replicaof", "no", "one") // from here on it receives no writes
	parted := w.now()
	w.writes(1000)
	w.settled()
	d.Primary.Kill()
	now = replica
	absent := absentAt(w, replica)
	r := w.verify()
	if absent == 0 || r.Lost != absent || r.Lost == r.Acked {
		t.Errorf("%d of %d lost, the replica lacks %d", r.Lost, r.Acked, absent)
	}
	// The link breaks shortly before the command is answered: the server was busy.
	if r.FirstLost < parted-int64(5*time.Second) || r.LastLost < parted {
		t.Errorf("first lost at %d, last at %d, parted at %d", r.FirstLost, r.LastLost, parted)
	}
	if !strings.Contains(r.Settings, "appendonly no") || !strings.Contains(r.Settings, "maxmemory-policy noeviction") {
		t.Errorf("settings %q", r.Settings)
	}
}

// TestVerifyWaitsForReplica reads a replica, which hung when the load ended, only after it is in sync.
func TestVerifyWaitsForReplica(t *testing.T) { redistest.Each(t, testVerifyWaitsForReplica) }

func testVerifyWaitsForReplica(t *testing.T) {
	t.Parallel()
	w, d := pair(t, 1)
	w.load()
	d.Replicas[0].Stop()
	w.writes(1000)
	w.settled()
	time.AfterFunc(time.Second, d.Replicas[0].Cont)
	if r := w.verify(); r.Lost != 0 || r.Replicas != 1 || len(r.Notes) != 0 {
		t.Errorf("%+v", *r)
	}
}

// TestVerifyWithoutReplica: a replica that does not return is reported, and the primary is read nevertheless.
func TestVerifyWithoutReplica(t *testing.T) {
	t.Parallel()
	d := redistest.NewReplication(t, 1, redistest.Options{})
	w := newWorld(t, 1, of(d))
	w.load()
	w.writes(1000)
	w.settled()
	d.Replicas[0].Kill()
	planted := plant(w, d.Primary, 13)
	w.audit.ResyncLimit = time.Second
	r := w.verify()
	if r.Lost != planted || r.Replicas != 0 || len(r.Notes) != 1 ||
		!strings.Contains(r.Notes[0], d.Replicas[0].Address()) {
		t.Errorf("%+v, planted %d", *r, planted)
	}
}

// TestForgottenReplicaIsReported: the topology has removed a replica, as it does with a demoted primary for some
// seconds.
func TestForgottenReplicaIsReported(t *testing.T) { redistest.Each(t, testForgottenReplicaIsReported) }

func testForgottenReplicaIsReported(t *testing.T) {
	t.Parallel()
	d := redistest.SharedReplication(t, 1)
	nodes := []Node{{Address: d.Primary.Address(), Primary: true}, {Address: d.Replicas[0].Address()}}
	known := nodes
	w := newWorld(t, 1, func() (Layout, error) { return Layout{Nodes: known}, nil })
	w.audit.Keep = true
	known = nodes[:1]
	asked := 0
	w.audit.Discover = func(context.Context) (Layout, error) {
		if asked++; asked > 3 {
			known = nodes
		}
		return Layout{Nodes: known}, nil
	}
	if r := w.verifyABatch(); r.Replicas != 1 || len(r.Notes) != 0 {
		t.Errorf("after a short outage: %+v", *r)
	}
	known, asked = nodes[:1], -1_000_000
	w.audit.ResyncLimit = time.Second
	if r := w.verifyABatch(); r.Replicas != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "1 of the 2 nodes") {
		t.Errorf("after a permanent outage: %+v", *r)
	}
}

// verifyABatch writes a few numbers and reads them back.
func (w *world) verifyABatch() *record.Ledger {
	w.t.Helper()
	c := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) { return dial(ctx, w.primary(), false) })
	defer c.Close()
	if !w.batch(0, 0, c) {
		w.t.Fatal("nothing was written")
	}
	return w.verify()
}

func TestVerifyWithoutPrimary(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	w := newWorld(t, 1, static(Node{Address: primary.Address(), Primary: true}))
	w.load()
	w.writes(1000)
	w.settled()
	primary.Kill()
	w.audit.ResyncLimit = time.Second
	if r, err := w.audit.Verify(t.Context(), w.books, nil); err == nil ||
		!strings.Contains(err.Error(), "read it back within 1s") {
		t.Errorf("%+v, %v", r, err)
	}
}
