//go:build integration

package ledger

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCleanRunsLoseNothing(t *testing.T) {
	primary := startRedis(t)
	replica := startReplica(t, primary)
	for range 20 {
		w := newWorld(t, 2, static(Node{Address: primary.address, Primary: true}, Node{Address: replica.address}))
		w.load()
		time.Sleep(150 * time.Millisecond)
		w.settled()
		r := w.verify()
		if r.Lost != 0 || r.Acked == 0 || r.Unknown != 0 || r.Replicas != 1 {
			t.Errorf("%+v", *r)
		}
	}
	if left := primary.do("DBSIZE"); left != "0" {
		t.Errorf("%s keys are left", left)
	}
}

// plant undoes some acknowledged writes behind the ledger's back: every step-th of each writer, and returns how many.
func plant(w *world, s *server, step int) (planted uint64) {
	for writer, shards := range w.acked {
		b := w.books[writer]
		for n := range shards[0] {
			if n%uint64(step) != 0 {
				continue
			}
			if b.unique {
				s.do("DEL", b.Key(0)+":"+strconv.FormatUint(n, 10))
			} else {
				s.do("SETBIT", b.Key(0), strconv.FormatUint(n, 10), "0")
			}
			planted++
		}
	}
	return planted
}

func TestPlantedLossIsFoundExactly(t *testing.T) {
	for name, policy := range map[string]string{"bits": "noeviction", "keys": "allkeys-lru"} {
		t.Run(name, func(t *testing.T) {
			primary := startRedis(t, "--maxmemory-policy", policy)
			replica := startReplica(t, primary)
			w := newWorld(t, 3, static(Node{Address: primary.address, Primary: true}, Node{Address: replica.address}))
			w.load()
			time.Sleep(300 * time.Millisecond)
			w.settled()
			planted := plant(w, primary, 97)
			r := w.verify()
			if planted == 0 || r.Lost != planted || r.Unique != (name == "keys") {
				t.Errorf("%d lost, %d were planted; unique %v", r.Lost, planted, r.Unique)
			}
			if r.FirstLost < 0 || r.LastLost <= r.FirstLost || r.LastLost > w.now() || r.Errors != 0 {
				t.Errorf("window %d to %d, %d errors", r.FirstLost, r.LastLost, r.Errors)
			}
			if left := primary.do("DBSIZE"); left != "0" {
				t.Errorf("%s keys are left", left)
			}
		})
	}
}

// absentAt counts by itself which acknowledged writes a server lacks.
func absentAt(w *world, s *server) (absent uint64) {
	for writer, shards := range w.acked {
		bits := s.do("GET", w.books[writer].Key(0))
		for n := range shards[0] {
			if i := int(n / 8); i >= len(bits) || bits[i]&(0x80>>(n%8)) == 0 {
				absent++
			}
		}
	}
	return absent
}

func TestStaleReplicaPromoted(t *testing.T) {
	primary := startRedis(t)
	replica := startReplica(t, primary)
	now := primary
	w := newWorld(t, 2, func() (Layout, error) { return Layout{Nodes: []Node{{Address: now.address, Primary: true}}}, nil })
	w.load()
	time.Sleep(200 * time.Millisecond)
	replica.do("REPLICAOF", "NO", "ONE") // from here on it lacks everything
	parted := w.now()
	time.Sleep(300 * time.Millisecond)
	w.settled()
	primary.kill()
	now = replica
	absent := absentAt(w, replica)
	r := w.verify()
	if absent == 0 || r.Lost != absent || r.Lost == r.Acked {
		t.Errorf("%d of %d lost, the replica lacks %d", r.Lost, r.Acked, absent)
	}
	// The link breaks some moments before the command is answered: the server was busy.
	if r.FirstLost < parted-int64(5*time.Second) || r.LastLost < parted {
		t.Errorf("first lost at %d, last at %d, parted at %d", r.FirstLost, r.LastLost, parted)
	}
	if !strings.Contains(r.Settings, "appendonly no") || !strings.Contains(r.Settings, "maxmemory-policy noeviction") {
		t.Errorf("settings %q", r.Settings)
	}
}

// TestReplicaIsAwaited reads a replica that hung when the load ended only once it is in step.
func TestReplicaIsAwaited(t *testing.T) {
	primary := startRedis(t)
	replica := startReplica(t, primary)
	w := newWorld(t, 1, static(Node{Address: primary.address, Primary: true}, Node{Address: replica.address}))
	w.load()
	replica.signal(syscall.SIGSTOP)
	time.Sleep(200 * time.Millisecond)
	w.settled()
	time.AfterFunc(time.Second, func() { replica.signal(syscall.SIGCONT) })
	if r := w.verify(); r.Lost != 0 || r.Replicas != 1 || len(r.Notes) != 0 {
		t.Errorf("%+v", *r)
	}
}

// TestReplicaThatNeverComes is told, and the primary is read all the same.
func TestReplicaThatNeverComes(t *testing.T) {
	primary := startRedis(t)
	replica := startReplica(t, primary)
	w := newWorld(t, 1, static(Node{Address: primary.address, Primary: true}, Node{Address: replica.address}))
	w.load()
	time.Sleep(100 * time.Millisecond)
	w.settled()
	replica.kill()
	planted := plant(w, primary, 13)
	w.audit.ResyncLimit = time.Second
	r := w.verify()
	if r.Lost != planted || r.Replicas != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], replica.address) {
		t.Errorf("%+v, planted %d", *r, planted)
	}
}

// TestNodeThatIsGone is told: a replica that the topology has forgotten, as it does with a primary that was failed over, for some seconds.
func TestNodeThatIsGone(t *testing.T) {
	primary := startRedis(t)
	replica := startReplica(t, primary)
	nodes := []Node{{Address: primary.address, Primary: true}, {Address: replica.address}}
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
		t.Errorf("back after a moment: %+v", *r)
	}
	known, asked = nodes[:1], -1_000_000
	w.audit.ResyncLimit = time.Second
	if r := w.verifyABatch(); r.Replicas != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "1 of the 2 nodes") {
		t.Errorf("never back: %+v", *r)
	}
}

// verifyABatch writes a few numbers and reads them back.
func (w *world) verifyABatch() *Result {
	w.t.Helper()
	c, err := dial(w.t.Context(), w.primary())
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if !w.batch(0, 0, newConn(c, "primary")) {
		w.t.Fatal("nothing was written")
	}
	return w.verify()
}

func TestPrimaryThatNeverComes(t *testing.T) {
	primary := startRedis(t)
	w := newWorld(t, 1, static(Node{Address: primary.address, Primary: true}))
	w.load()
	time.Sleep(100 * time.Millisecond)
	w.settled()
	primary.kill()
	w.audit.ResyncLimit = time.Second
	if r, err := w.audit.Verify(t.Context(), w.books, nil); err == nil || !strings.Contains(err.Error(), "cannot be read back") {
		t.Errorf("%+v, %v", r, err)
	}
}
