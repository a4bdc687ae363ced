//go:build integration

package workload

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// closedAddress is an address without a listener.
const closedAddress = "127.0.0.1:1"

// client is a connection like that of an engine.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dial(t testing.TB, address string, protocol int) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &client{t: t, conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.do("HELLO", strconv.Itoa(protocol))
	return c
}

func (c *client) read(n int) []resp.Value {
	c.t.Helper()
	values := make([]resp.Value, n)
	for i := range values {
		v, err := resp.ReadValue(c.in)
		if err != nil {
			c.t.Fatal(err)
		}
		if v.IsError() {
			c.t.Fatalf("redis answers %s", v.Text)
		}
		values[i] = v
	}
	return values
}

func (c *client) do(words ...string) resp.Value {
	c.t.Helper()
	c.send(resp.AppendCommand(nil, words...))
	return c.read(1)[0]
}

func (c *client) send(p []byte) {
	c.t.Helper()
	_ = c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.conn.Write(p); err != nil {
		c.t.Fatal(err)
	}
}

// play executes one request, and returns the replies to its last round trip.
func (c *client) play(s Source, op int, tally []uint64) []resp.Value {
	c.t.Helper()
	r := Request{User: 1}
	s.Draw(op, &r)
	encoded, n := s.Append(nil, &r)
	for {
		c.send(encoded)
		replies := c.read(n)
		f, ok := s.(Follower)
		if !ok || !f.Follows(op) {
			return replies
		}
		if encoded, n = f.Next(encoded[:0], &r, replies, tally); n == 0 {
			return replies
		}
	}
}

// filler fills over plain connections to one server.
func filler(address string, pod, pods int) *Filler {
	return &Filler{Pod: pod, Pods: pods, Dial: func(ctx context.Context, _ int) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}}
}

// fill fills as this number of pods would, one after the other.
func fill(t testing.TB, w Redis, address string, pods int) {
	t.Helper()
	for pod := range pods {
		if err := w.Fill(context.Background(), filler(address, pod, pods)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryTestOfBenchmarkAgainstRedis(t *testing.T) {
	redistest.Each(t, testEveryTestOfBenchmarkAgainstRedis)
}

func testEveryTestOfBenchmarkAgainstRedis(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Address()
	w := made(t, plan.Workload{
		Benchmark: &plan.Benchmark{Tests: plan.BenchmarkTests()},
		Keyspace:  uniform(1000),
		Values:    plan.Values{MinBytes: 16, MaxBytes: 16},
	})
	fill(t, w, address, 3)
	for _, protocol := range []int{2, 3} {
		c := dial(t, address, protocol)
		for key, want := range map[string]string{
			"LLEN rq:lrange:0": "600",
			"SCARD rq:set:0":   "1000",
			"ZCARD rq:zset:0":  "1000",
		} {
			if got := c.do(strings.Fields(key)...).Text; protocol == 2 && got != want {
				t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
		s := w.Source(0, 1, false)
		for op, o := range w.Operations() {
			for range 20 {
				reply := c.play(s, op, nil)[0]
				if _, count, ok := strings.Cut(o.Name, "lrange_"); ok && strconv.Itoa(len(reply.Items)) != count {
					t.Errorf("%s returns %d elements", o.Name, len(reply.Items))
				}
				if strings.HasSuffix(o.Name, "pop") && reply.Type == '_' {
					t.Errorf("%s finds nothing", o.Name)
				}
			}
		}
	}
}

func TestCommandsArePrefilled(t *testing.T) { redistest.Each(t, testCommandsArePrefilled) }

func testCommandsArePrefilled(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Address()
	spec := plan.Workload{
		Commands: []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}},
		Keyspace: uniform(10_007),
		Values:   plan.Values{MinBytes: 5, MaxBytes: 9},
	}
	spec.Keyspace.Prefill, spec.Keyspace.TTL = true, time.Hour
	w := made(t, spec)
	fill(t, w, address, 4)
	c := dial(t, address, 3)
	if n := c.do("DBSIZE").Text; n != "10007" {
		t.Errorf("%s keys, want 10007", n)
	}
	s := w.Source(0, 1, false)
	for range 200 {
		if v := c.play(s, 0, nil)[0]; len(v.Text) < 5 || len(v.Text) > 9 {
			t.Fatalf("a value of %d bytes, type %c", len(v.Text), v.Type)
		}
	}
	if ttl := c.do("PTTL", "rq:10006").Text; len(ttl) != 7 { // 3,600,000 ms, minus the time since
		t.Errorf("the TTL of a prefilled key is %s ms", ttl)
	}
}

func TestRankingAgainstRedis(t *testing.T) { redistest.Each(t, testRankingAgainstRedis) }

func testRankingAgainstRedis(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Address()
	spec := rankingOf(2500, 20)
	spec.Ranking.ScoreSpread = 100
	w := made(t, spec)
	fill(t, w, address, 3)
	for _, protocol := range []int{2, 3} {
		c := dial(t, address, protocol)
		if n := c.do("ZCARD", "rq:ranking").Text; n != "2500" {
			t.Fatalf("%s members, want 2500", n)
		}
		s := w.Source(0, 1, false)
		for range 30 {
			for op, count := range []int{1, 1, 20, 1} {
				replies := c.play(s, op, nil)
				if len(replies) != count || replies[0].Type != ':' {
					t.Fatalf("%s ends with %v", w.Operations()[op].Name, replies)
				}
			}
		}
	}
	// The rank is 1 + the number of members with a better score.
	c := dial(t, address, 3)
	c.do("ZADD", "rq:ranking", "99.5", "member:7")
	k := w.(*ranking)
	source := w.Source(0, 1, false).(*rankingSource)
	r := Request{Op: 1, state: [2]int64{7}}
	encoded, n := source.Append(nil, &r)
	c.send(encoded)
	encoded, n = source.Next(nil, &r, c.read(n), nil)
	c.send(encoded)
	if got := c.read(n)[0].Text; got != "0" {
		t.Errorf("%s members of %s are better than the best", got, k.key)
	}
}

func TestRateLimiterAgainstRedis(t *testing.T) { redistest.Each(t, testRateLimiterAgainstRedis) }

func testRateLimiterAgainstRedis(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Address()
	w := made(t, plan.Workload{RateLimiter: &plan.RateLimiter{Limit: 5, Window: time.Hour}, Keyspace: uniform(10)})
	c := dial(t, address, 3)
	tally := make([]uint64, 2)
	s := w.Source(0, 1, false)
	for range 400 { // of 10 users: each is drawn more than 5 times, except with a probability of 10^-12
		c.play(s, 0, tally)
	}
	if tally[0] != 50 || tally[1] != 350 {
		t.Errorf("tally %v, want 50 allowed and 350 denied", tally)
	}
	for user := range 10 {
		if ttl, _ := strconv.Atoi(c.do("PTTL", "rq:limit:"+strconv.Itoa(user)).Text); ttl < 3_000_000 || ttl > 3_600_000 {
			t.Errorf("user %d's window ends in %d ms", user, ttl)
		}
	}
}

func TestFillReportsErrors(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t, "maxmemory 2mb").Address()
	spec := plan.Workload{
		Commands: []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}},
		Keyspace: uniform(100_000),
		Values:   plan.Values{MinBytes: 1000, MaxBytes: 1000},
	}
	spec.Keyspace.Prefill = true
	w := made(t, spec)
	err := w.Fill(context.Background(), filler(address, 0, 1))
	refused, ok := errors.AsType[*FillError](err)
	if !ok || refused.Address != address || refused.Command != "SET" || !strings.HasPrefix(refused.Reply, "OOM ") {
		t.Errorf("got %v, want an out-of-memory error", err)
	}
	canceled, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	cancel(mine)
	if err := w.Fill(canceled, filler(address, 0, 1)); !errors.Is(err, mine) {
		t.Errorf("a fill that was cancelled returns %v", err)
	}
	unreachable := filler(closedAddress, 0, 1)
	if err := w.Fill(context.Background(), unreachable); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server Fill returns %v", err)
	}
}

// Each key goes to the node that holds its slot, over a connection to that node.
func TestFillSpreadsOverNodes(t *testing.T) {
	t.Parallel()
	addresses := []string{redistest.Start(t).Address(), redistest.Start(t).Address(), redistest.Start(t).Address()}
	spec := plan.Workload{
		Commands: []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}},
		Keyspace: uniform(3000),
	}
	spec.Keyspace.Prefill = true
	f := filler("", 0, 1)
	f.NodeOf = func(slot uint16) int { return int(slot) % 3 }
	f.Dial = func(ctx context.Context, node int) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addresses[node])
	}
	var last, total int64
	f.Progress = func(_ string, done, of int64) { last, total = done, of }
	if err := made(t, spec).Fill(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	if total != 3000 || last > total {
		t.Errorf("progress ends at %d of %d", last, total)
	}
	for n := range 3000 {
		key := "rq:" + strconv.Itoa(n)
		node := int(topology.SlotOf([]byte(key))) % 3
		if n%97 == 0 && dial(t, addresses[node], 2).do("EXISTS", key).Text != "1" {
			t.Errorf("%s is not on node %d", key, node)
		}
	}
}

// TestTenMillionMembers measures the filling of a ranking; it takes more than a gigabyte, so it runs only on request.
func TestTenMillionMembers(t *testing.T) {
	members, _ := strconv.ParseInt(os.Getenv("REDQUAKE_RANKING_MEMBERS"), 10, 64)
	if members == 0 {
		t.Skip("REDQUAKE_RANKING_MEMBERS=10000000 measures the filling of so many members")
	}
	address := redistest.Start(t).Address()
	spec := rankingOf(members, 100)
	spec.Ranking.ScoreSpread = 100_000
	w := made(t, spec)
	f := filler(address, 0, 1)
	begin := time.Now()
	var lines int
	f.Progress = func(what string, done, total int64) {
		if lines++; lines%20 == 0 {
			t.Logf("%s: prefilling %d of %d %s", time.Since(begin).Round(time.Second), done, total, what)
		}
	}
	if err := w.Fill(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	c := dial(t, address, 3)
	t.Logf("%s members in %s: %.0f per second", c.do("ZCARD", "rq:ranking").Text, took.Round(time.Millisecond),
		float64(members)/took.Seconds())
	info := redis.ParseInfo(c.do("INFO", "memory").Text)
	t.Logf("used_memory %s, used_memory_rss %s", info["used_memory"], info["used_memory_rss"])
	s := w.Source(0, 1, false)
	for op, o := range w.Operations() {
		begin := time.Now()
		for range 200 {
			c.play(s, op, nil)
		}
		t.Logf("%s: %s each, one after the other", o.Name, time.Since(begin)/200)
	}
}
