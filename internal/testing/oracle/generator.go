package oracle

import (
	"context"
	"net"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// generator is the process of a load pod, which does not run at times: its goroutines wait then.
type generator struct {
	mu     sync.Mutex
	t0     time.Time
	events []Event // those that keep it from running; none until the load begins
}

// timeSlice is for how long others have the CPU of a starved generator at most. A wake-up that is 5 ms late is a stall.
const timeSlice = 4 * time.Millisecond

func (g *generator) begin(t0 time.Time, pod int, events []Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.t0 = t0
	for _, e := range events {
		if (e.Way == Stall || e.Way == Starve) && (e.Only == All || e.Only == pod) {
			g.events = append(g.events, e)
		}
	}
}

// wait returns once the generator runs.
func (g *generator) wait() {
	for {
		left := g.stopped()
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}

// end lets the generator run from now on, and returns when it does: an attempt to connect that is not needed any more
// may wait for that.
func (g *generator) end() {
	left := g.stopped()
	g.mu.Lock()
	g.events = nil
	g.mu.Unlock()
	time.Sleep(left)
	synctest.Wait()
}

// stopped is for how long the generator will not run; 0 = it runs.
func (g *generator) stopped() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		since := time.Since(g.t0) - e.At
		if since < 0 || since >= e.For {
			continue
		}
		if e.Way == Stall {
			return e.For - since
		}
		// It runs at the begin of each period, and not in the rest of it.
		period := time.Duration(float64(timeSlice) / e.Share)
		if within := since % period; within >= period-timeSlice {
			return period - within
		}
	}
	return 0
}

// waited is for how long the generator has not run up to an instant, counted from t0, since the load began.
func (g *generator) waited(at, began time.Duration) (sum time.Duration) {
	for _, e := range g.events {
		length := max(0, min(at, e.end())-max(e.At, began))
		if e.Way == Starve {
			length = time.Duration(float64(length) * e.Share)
		}
		sum += length
	}
	return sum
}

// use is what the kernel tells of the generator at an instant since the load began: it is ready to run whenever it does
// not.
func (g *generator) use(at, baseline time.Duration) record.AgentUse {
	waited := g.waited(at-baseline, -baseline)
	return record.AgentUse{
		At:            int64(at),
		CPUSeconds:    0.1 * (at - waited).Seconds(),
		WaitedSeconds: waited.Seconds(),
	}
}

// dialer makes the generator's connections.
func (g *generator) dialer(
	dial func(context.Context, string, string) (net.Conn, error),
) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		g.wait()
		c, err := dial(ctx, network, address)
		g.wait()
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, of: g}, nil
	}
}

// conn is a connection of a generator.
type conn struct {
	net.Conn
	of    *generator
	stamp int64
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	s, ok := c.Conn.(interface{ Stamp() int64 })
	if ok && n > 0 {
		c.stamp = s.Stamp() // of what was read, whenever the generator gets to know of it
	}
	c.of.wait()
	return n, err
}

// Stamp is when the last byte that was read arrived: a kernel notes it while the process is stopped, too.
func (c *conn) Stamp() int64 {
	return c.stamp
}

func (c *conn) Write(p []byte) (int, error) {
	c.of.wait()
	return c.Conn.Write(p)
}
