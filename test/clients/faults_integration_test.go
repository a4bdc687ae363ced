//go:build integration

package clients

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/adapter"
	"github.com/redquake/redquake/internal/adapter/wire"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

// traffic is load that some goroutines send, with all its outcomes.
type traffic struct {
	t        *testing.T
	s        *adapter.Session
	stop     chan struct{}
	group    sync.WaitGroup
	mu       sync.Mutex
	outcomes []wire.Outcome // ID is what the request counted
	last     uint64
}

// begin sends HINCRBY of a number that no other request has, over and over.
func begin(t *testing.T, s *adapter.Session) *traffic {
	tr := &traffic{t: t, s: s, stop: make(chan struct{})}
	for range 5 {
		tr.group.Go(func() {
			for {
				select {
				case <-tr.stop:
					return
				default:
					await.Pass(time.Millisecond, "a user thinks")
				}
				tr.mu.Lock()
				tr.last++
				id := tr.last
				tr.mu.Unlock()
				o, _, err := s.Perform(t.Context(), [][][]byte{words("HINCRBY", "counts", strconv.FormatUint(id, 10), "1")}, false)
				if err != nil {
					t.Error(err)
					return
				}
				o.ID = id
				tr.mu.Lock()
				tr.outcomes = append(tr.outcomes, o)
				tr.mu.Unlock()
			}
		})
	}
	return tr
}

// successAfter waits for a success of a request that was sent after the instant.
func (tr *traffic) successAfter(at int64) {
	tr.t.Helper()
	await.Until(tr.t, "a success", func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for _, o := range tr.outcomes {
			if o.Sent > at && o.Class == wire.ClassOK {
				return nil
			}
		}
		last := wire.Outcome{}
		if n := len(tr.outcomes); n > 0 {
			last = tr.outcomes[n-1]
		}
		return fmt.Errorf("the last of %d: %s %s", len(tr.outcomes), last.Class, last.Text)
	})
}

// end ends the load and returns all outcomes.
func (tr *traffic) end() []wire.Outcome {
	close(tr.stop)
	tr.group.Wait()
	return tr.outcomes
}

// count is how many outcomes there are of each class.
func count(outcomes []wire.Outcome) map[wire.OutcomeClass]int {
	n := map[wire.OutcomeClass]int{}
	for _, o := range outcomes {
		n[o.Class]++
	}
	return n
}

// While the server stands still there is no success, and then there is.
func TestStop(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Start(t)
		s := connect(t, d, standalone(server.Address()))
		tr := begin(t, s)
		tr.successAfter(0)
		server.Stop()
		await.Pass(100*time.Millisecond, "what the server had answered arrives")
		from := adapter.Monotonic()
		await.Pass(700*time.Millisecond, "the planted outage")
		to := adapter.Monotonic()
		server.Cont()
		tr.successAfter(to)
		outcomes := tr.end()
		for _, o := range outcomes {
			if o.Class == wire.ClassOK && o.Done > from && o.Done < to {
				t.Errorf("a success %s after the stop", time.Duration(o.Done-from))
			}
		}
		t.Log(count(outcomes))
	})
}

// A server that is killed and comes back is used again, but for the library that never does.
func TestKill(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Start(t)
		s := connect(t, d, standalone(server.Address()))
		tr := begin(t, s)
		tr.successAfter(0)
		server.Kill()
		await.Pass(300*time.Millisecond, "the planted outage")
		server.Restart()
		back := adapter.Monotonic()
		if d.never {
			await.Pass(2*time.Second, "a library that reconnects would have")
		} else {
			tr.successAfter(back)
		}
		outcomes := tr.end()
		n := count(outcomes)
		if d.never {
			for _, o := range outcomes {
				if o.Sent > back && o.Class == wire.ClassOK {
					t.Fatal("it has reconnected: say so in its page")
				}
			}
		}
		t.Log(n)
	})
}

// cutter is a proxy that cuts connections after requests have been executed.
type cutter struct {
	address  string
	mu       sync.Mutex
	open     []net.Conn
	withhold bool
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	c := &cutter{}
	c.address = tcptest.Proxy(t, server, func(to, from net.Conn, answers bool) {
		c.mu.Lock()
		c.open = append(c.open, to)
		c.mu.Unlock()
		b := make([]byte, 64<<10)
		for {
			n, err := from.Read(b)
			c.mu.Lock()
			drop := c.withhold && answers
			c.mu.Unlock()
			if err != nil {
				return
			}
			if drop {
				continue
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	})
	return c
}

// cut withholds replies for a time, and then closes all connections.
func (c *cutter) cut(after time.Duration) {
	c.mu.Lock()
	c.withhold = true
	c.mu.Unlock()
	await.Pass(after, "requests are executed without a reply")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.open {
		_ = one.Close()
	}
	c.open, c.withhold = nil, false
}

// A proxy cuts connections after requests have been executed: what counts as refused was not executed, what succeeded
// was.
func TestCut(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Start(t)
		proxy := newCutter(t, server.Address())
		s := connect(t, d, standalone(proxy.address))
		tr := begin(t, s)
		for range 3 {
			now := adapter.Monotonic()
			if !d.never || now == 0 {
				tr.successAfter(now)
			}
			proxy.cut(50 * time.Millisecond)
		}
		if !d.never {
			tr.successAfter(adapter.Monotonic())
		}
		outcomes := tr.end()
		executed := server.Client().HGetAll(t.Context(), "counts").Val()
		var twice, despite int
		for _, o := range outcomes {
			n, _ := strconv.Atoi(executed[strconv.FormatUint(o.ID, 10)])
			switch {
			case o.Class == wire.ClassOK && n < 1:
				t.Errorf("request %d succeeded, and was not executed", o.ID)
			case o.Class == wire.ClassRefused && n > 0:
				t.Errorf("request %d was refused (%s), and executed %d times", o.ID, o.Text, n)
			case n > 1:
				twice++
			case n == 1 && o.Class != wire.ClassOK:
				despite++
			}
		}
		t.Logf("%v; executed more than once: %d, failed but executed: %d", count(outcomes), twice, despite)
	})
}

func TestSentinel(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		set := redistest.NewSentinel(t, 1, redistest.SentinelOptions{
			Options:          redistest.Options{Password: "secret"},
			SentinelPassword: "other",
		})
		settings := wire.Settings{
			Topology:         wire.Sentinel,
			Addresses:        set.SentinelAddresses(),
			PrimaryName:      redistest.MasterName,
			Password:         "secret",
			SentinelPassword: "other",
		}
		if !d.sentinel {
			refusesTopology(t, d, settings)
			return
		}
		s := connect(t, d, settings)
		tr := begin(t, s)
		tr.successAfter(0)
		primary := set.FailoverAndWait()
		before := primary.Client().HLen(t.Context(), "counts").Val()
		followed := func() error {
			n := primary.Client().HLen(t.Context(), "counts").Val()
			return await.That(n > before, "the new primary has %d counts, as many as at the failover", n)
		}
		if d.stays {
			await.Pass(2*time.Second, "a library that follows would have")
			if followed() == nil {
				t.Error("it follows: say so in its page")
			}
		} else {
			await.Until(t, "requests at the new primary", followed)
		}
		t.Log(count(tr.end()))
	})
}

func refusesTopology(t *testing.T, d driver, settings wire.Settings) {
	t.Helper()
	s, _, _ := start(t, d)
	settings.InFlight = 1
	err := s.Connect(t.Context(), settings)
	if refusal, ok := errors.AsType[*wire.Refusal](err); !ok || refusal.Kind != wire.Invalid || refusal.Field != "topology" {
		t.Errorf("%#v", err)
	}
}

func TestCluster(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		cluster := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
		settings := wire.Settings{Topology: wire.Cluster, Addresses: cluster.Addresses()}
		if !d.cluster {
			refusesTopology(t, d, settings)
			return
		}
		s := connect(t, d, settings)
		for i := range 30 {
			key := fmt.Sprintf("key%d", i)
			until(t, s, words("SET", key, "value"))
			if o := until(t, s, words("GET", key)); o.Replies[0].Text != "value" {
				t.Errorf("%+v", o)
			}
			o := until(t, s, words("GET", key), words("APPEND", key, "s"))
			if len(o.Replies) != 2 || o.Replies[1].Text != "6" {
				t.Errorf("%+v", o)
			}
		}
		until(t, s, words("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "{key0}x", "y"))
		slot := int(cluster.Shards[0][0].Client().ClusterKeySlot(t.Context(), "key0").Val())
		to := cluster.Shards[1][0]
		if cluster.Owner(slot) == to {
			to = cluster.Shards[2][0]
		}
		cluster.MigrateSlot(slot, to)
		if o := until(t, s, words("GET", "key0")); o.Replies[0].Text != "values" {
			t.Errorf("after the move: %+v", o)
		}
	})
}

func TestTLS(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		authority := redistest.NewAuthority(t)
		o := redistest.Options{TLS: authority}
		if d.noCertificate {
			o.Config = []string{"tls-auth-clients optional"}
		}
		server := redistest.NewServer(t, o)
		settings := patient(d, server.Address())
		settings.TLS = &wire.TLS{
			CA:          pem(t, authority.File("ca.crt")),
			Certificate: pem(t, authority.File("client.crt")),
			Key:         pem(t, authority.File("client.key")),
		}
		if d.noCertificate {
			settings.TLS.Certificate, settings.TLS.Key = "", ""
		}
		s := connect(t, d, settings)
		if o := do(t, s, words("SET", "key", "value")); o.Class != wire.ClassOK {
			t.Errorf("%+v", o)
		}
		// another authority does not vouch for this server
		other := *settings.TLS
		other.CA = pem(t, redistest.NewAuthority(t).File("ca.crt"))
		settings.TLS, settings.InFlight = &other, 10
		wrong, _, _ := start(t, d)
		if err := wrong.Connect(t.Context(), settings); err == nil {
			t.Error("a server was accepted that the authority does not vouch for")
		}
	})
}

func pem(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// At the end of a session the adapter exits with 0, whatever is in flight.
func TestEnd(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Start(t)
		s, _, end := start(t, d)
		settings := standalone(server.Address())
		settings.InFlight = 20
		if err := answer(t, s, settings); err != nil {
			t.Fatal(err)
		}
		server.Stop()
		for range 10 {
			go func() { _, _, _ = s.Perform(t.Context(), [][][]byte{words("PING")}, false) }()
		}
		await.Pass(200*time.Millisecond, "the requests are in flight")
		if err := end(); err != nil {
			t.Error(err)
		}
		server.Cont()
	})
}
