//go:build integration

package ledger

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server is a redis-server or a sentinel of a test, on loopback.
type server struct {
	t       *testing.T
	address string
	bus     string // port of a cluster's node
	cmd     *exec.Cmd
	out     bytes.Buffer
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func start(t *testing.T, program string, port int, args ...string) *server {
	t.Helper()
	s := &server{t: t, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), cmd: exec.Command(program, args...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	for range 200 {
		c, err := net.DialTimeout("tcp", s.address, time.Second)
		if err == nil {
			c.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not listen at %s", program, s.address)
	return nil
}

func startRedis(t *testing.T, args ...string) *server {
	t.Helper()
	port := freePort(t)
	fixed := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--repl-diskless-sync-delay", "0"}
	return start(t, "redis-server", port, append(fixed, args...)...)
}

func (s *server) signal(what syscall.Signal) {
	if err := s.cmd.Process.Signal(what); err != nil {
		s.t.Error(err)
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) port() string {
	_, port, _ := net.SplitHostPort(s.address)
	return port
}

// try sends one command on a connection of its own.
func (s *server) try(words ...string) (string, error) {
	raw, err := net.DialTimeout("tcp", s.address, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	v, err := newConn(raw, s.address).ask(ctx, words...)
	return v.Text, err
}

func (s *server) do(words ...string) string {
	s.t.Helper()
	text, err := s.try(words...)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// until waits for something that comes by itself.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("after a minute still not: %s", what)
}

func startReplica(t *testing.T, primary *server, args ...string) *server {
	t.Helper()
	r := startRedis(t, append([]string{"--replicaof", "127.0.0.1 " + primary.port()}, args...)...)
	// The primary holds its writes back until it has heard from a new replica, whatever INFO says: only a write that came through tells.
	primary.do("SET", "linked", "1")
	until(t, "replica is linked", func() bool {
		linked, err := r.try("GET", "linked")
		return err == nil && linked == "1" && strings.Contains(r.do("INFO", "replication"), "master_link_status:up")
	})
	primary.do("SET", "linked", "2")
	until(t, "replica follows", func() bool { return r.do("GET", "linked") == "2" })
	primary.do("DEL", "linked")
	return r
}

// startSentinels watches a primary by three sentinels, named m.
func startSentinels(t *testing.T, primary *server) []*server {
	t.Helper()
	var all []*server
	for range 3 {
		port := freePort(t)
		path := filepath.Join(t.TempDir(), "sentinel.conf")
		config := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor m 127.0.0.1 %s 2\nsentinel down-after-milliseconds m 60000\nsentinel failover-timeout m 60000\n", port, primary.port())
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, start(t, "redis-sentinel", port, path))
	}
	return all
}

// world is a deployment, and a load on it that writes nothing but its ledgers.
type world struct {
	t      *testing.T
	began  time.Time
	layout func() (Layout, error)
	audit  *Audit
	books  []*Book
	acked  [][]map[uint64]bool // by writer and shard: kept apart from the books
	stop   chan struct{}
	done   sync.WaitGroup
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// newWorld prepares ledgers for some writers.
func newWorld(t *testing.T, writers int, layout func() (Layout, error)) *world {
	t.Helper()
	w := &world{t: t, began: time.Now(), layout: layout, stop: make(chan struct{})}
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
		w.books = append(w.books, newBook(t, Options{Prefix: "rq:", Run: strconv.FormatInt(w.began.UnixNano(), 36), Writer: i, Unique: unique, Shards: shards, ShardOf: l.ShardOf}))
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

func static(nodes ...Node) func() (Layout, error) {
	return func() (Layout, error) { return Layout{Nodes: nodes}, nil }
}

func (w *world) now() int64 { return int64(time.Since(w.began)) }

// load starts a writer per book and shard's... one goroutine per book, which takes the shards in turn.
func (w *world) load() {
	for i := range w.books {
		w.done.Go(func() { w.write(i) })
	}
}

// pipelined is how many writes are in flight.
const pipelined = 16

// write sends batches where the topology says that the primary is, until the load stops. It looks for the topology again every 50 ms.
func (w *world) write(writer int) {
	b := w.books[writer]
	open := map[int]*conn{} // by shard
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	layout, looked := Layout{}, time.Time{}
	for turn := 0; ; turn++ {
		select {
		case <-w.stop:
			return
		default:
		}
		if time.Since(looked) > 50*time.Millisecond {
			if l, err := w.layout(); err == nil {
				layout, looked = l, time.Now()
			}
		}
		shard := turn % b.Shards()
		primary, err := layout.primary(layout.shardOf(b.Slot(shard)))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c := open[shard]
		if c != nil && c.address != primary.Address {
			c.Close()
			c = nil
		}
		if c == nil {
			raw, err := net.DialTimeout("tcp", primary.Address, time.Second)
			if err != nil {
				b.Erred(w.now())
				time.Sleep(10 * time.Millisecond)
				continue
			}
			c = newConn(raw, primary.Address)
			open[shard] = c
		}
		if !w.batch(writer, shard, c) {
			c.Close()
			delete(open, shard)
			looked = time.Time{}
		}
	}
}

// batch sends some writes and settles them; it is false when the connection or the node is of no more use.
func (w *world) batch(writer, shard int, c *conn) bool {
	b := w.books[writer]
	var request []byte
	var numbers []uint64
	for range pipelined {
		n, _ := b.Next(shard)
		request = b.Append(request, shard, n)
		numbers = append(numbers, n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	values, err := c.exchange(ctx, request, len(numbers))
	well := err == nil
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
		}
	}
	return well
}

// primary is where the first shard's writes go now.
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

// verify reads back and checks what holds for every result.
func (w *world) verify() *Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	r, err := w.audit.Verify(ctx, w.books, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("acknowledged %d, unknown %d (present %d), lost %d from %v to %v, errors %d", r.Acked, r.Unknown, r.UnknownPresent, r.Lost, time.Duration(r.FirstLost), time.Duration(r.LastLost), r.Errors)
	if r.Acked != w.count() || r.FailedPresent != 0 || r.ReplicaMissing != 0 || r.Unread != "" {
		w.t.Errorf("%d acknowledged, want %d; present though failed %d; missing at a replica %d; unread %q", r.Acked, w.count(), r.FailedPresent, r.ReplicaMissing, r.Unread)
	}
	return r
}
