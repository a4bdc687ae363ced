// Package observer reads the state of every server of a deployment beside the load: INFO, SLOWLOG,
// LATENCY, the round trip of a PING.
package observer

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Observer reads INFO and related data from every server of the deployment, once per period.
type Observer struct {
	Clock   *clock.Clock
	Routes  *route.Routes
	Timeout time.Duration // of a query
	Every   time.Duration // between two readings of a server, about

	mu         sync.Mutex
	read       []record.Server
	unobserved []record.Unobserved
	roundTrip  int64 // nanoseconds, the minimum since the last takeRoundTrip; 0 = none
}

// observed is one server that is queried over a separate connection: PING for the round trip, INFO,
// and if the ACL user is permitted to, SLOWLOG, LATENCY and CONFIG GET. It changes nothing on the
// server. A failed query only means that there is no reading; why is recorded of a server that was
// never read.
type observed struct {
	*Observer
	place route.Place

	conn          *redis.Conn
	runID         string            // run_id of the last reading
	nextSlowEntry int64             // ID of the next SLOWLOG entry of this process
	denied        map[string]bool   // commands that the server rejected on this connection
	unread        record.Unobserved // why there was no reading yet, as recorded
}

// maxObserved bounds how many servers are observed, and maxReason the length of an error that is
// recorded, in bytes.
const maxObserved, maxReason = 64, 256

const (
	// slowEntries is how many SLOWLOG entries are read per period, and manySlowEntries if all of those
	// are new: what Redis keeps unless slowlog-max-len is higher. Further entries are only counted.
	slowEntries, manySlowEntries = 16, 128
)

// Run follows the deployment until ctx ends: servers that join are observed from then on, servers
// that leave are not observed any more. It returns when all observations have ended.
func (o *Observer) Run(ctx context.Context) {
	asked := map[string]context.CancelFunc{}
	var loops sync.WaitGroup
	defer loops.Wait()
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		there := map[string]bool{}
		for _, address := range o.addresses() {
			there[address] = true
			if asked[address] == nil && len(asked) < maxObserved {
				within, cancel := context.WithCancel(ctx)
				asked[address] = cancel
				loops.Go(func() { o.newObserved(route.Place{Address: address}).loop(within) })
			}
		}
		for address, stop := range asked {
			if !there[address] {
				stop()
				delete(asked, address)
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range asked {
				stop()
			}
			return
		case <-tick.C:
		}
	}
}

// addresses returns the servers to observe; "" stands for the server behind the target's addresses.
func (o *Observer) addresses() []string {
	if o.Routes.Tracker == nil {
		return []string{""}
	}
	return o.Routes.Servers()
}

func (o *Observer) newObserved(p route.Place) *observed {
	one := &observed{Observer: o, place: p}
	one.conn = redis.NewConn(o.Timeout, func(ctx context.Context) (net.Conn, error) {
		one.denied = map[string]bool{}
		return o.Routes.DialNode(ctx, p)
	})
	return one
}

// loop makes a reading after each pause of a random length: servers stall in periods too, of a limit
// of their CPU or of their disk, and PINGs in step with one would all meet it, or none (RFC 2330,
// section 11.1). The last reply of a reading comes as a stall ends, where it met one: from there on
// the pauses range over a whole period, so that no part of it is preferred.
func (o *observed) loop(ctx context.Context) {
	defer o.conn.Close()
	for {
		if err := o.observe(ctx); ctx.Err() == nil {
			o.explain(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(o.Every/4 + rand.N(max(o.Every, 1))):
		}
	}
}

// observe makes a reading. The error is why there is none.
func (o *observed) observe(ctx context.Context) error {
	if err := o.conn.Connect(ctx); err != nil {
		return err
	}
	if err := o.ping(ctx); err != nil {
		return err
	}
	s, err := ReadInfo(ctx, o.conn)
	if err != nil {
		return err
	}
	s.At, s.Shard = o.Clock.Now(), o.shard()
	if err := o.readDetails(ctx, &s); err != nil {
		return err // counters that it lacks would seem to have been reset
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read = append(o.read, s)
	return nil
}

// ping measures the round trip. It does not need the permission for INFO; without that for PING
// there is none.
func (o *observed) ping(ctx context.Context) error {
	sent := o.Clock.Now()
	_, err := o.conn.Do(ctx, "PING")
	took := max(o.Clock.Now()-sent, 1)
	if redis.IsReply(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("PING: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.roundTrip == 0 || took < o.roundTrip {
		o.roundTrip = took
	}
	return nil
}

// explain records why a server cannot be read, once per reason, until there is the first reading.
func (o *observed) explain(err error) {
	now := o.unread
	switch {
	case err == nil:
		now.Reason = ""
	case o.runID != "":
		return
	default:
		reason := dial.ShortMessage(err)
		now = record.Unobserved{
			Address: cmp.Or(o.conn.RemoteAddr(), o.place.Address),
			Reason:  reason[:min(len(reason), maxReason)],
		}
	}
	if now == o.unread {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.unread
	if before.Address != now.Address && before.Reason != "" {
		o.unobserved = append(o.unobserved, record.Unobserved{Address: before.Address})
	}
	o.unobserved, o.unread = append(o.unobserved, now), now
}

// shard returns the number of the server's shard plus one; 0 without a cluster, or if no shard has
// it.
func (o *observed) shard() int64 {
	if o.Routes.Tracker == nil {
		return 0
	}
	m := o.Routes.Current()
	if m.Kind != topology.KindCluster {
		return 0
	}
	return int64(1 + slices.IndexFunc(m.Shards, func(s topology.Shard) bool {
		return s.Primary == o.place.Address || slices.Contains(s.Replicas, o.place.Address)
	}))
}

// readDetails adds data that INFO lacks. Fields of commands that the ACL user may not run stay
// empty.
func (o *observed) readDetails(ctx context.Context, s *record.Server) error {
	next, err := o.readSlowLog(ctx, s)
	if err != nil {
		return err
	}
	latency, err := o.query(ctx, "LATENCY", "LATEST")
	if err != nil {
		return err
	}
	s.Latency = latencyEvents(latency)
	if s.AOFEnabled {
		fsync, err := o.query(ctx, "CONFIG", "GET", "appendfsync")
		if err != nil {
			return err
		}
		s.AOFFsync = configValue(fsync)
		debug, err := o.query(ctx, "INFO", "debug")
		if err != nil {
			return err
		}
		s.AOFFlushMicros = redis.ParseInfo(debug.Text).Int("eventloop_duration_aof_sum")
	}
	o.runID, o.nextSlowEntry = s.RunID, next // the reading is complete
	return nil
}

// readSlowLog sets s.SlowLog, and returns the ID of the next entry. Without permission the total is
// unknown.
func (o *observed) readSlowLog(ctx context.Context, s *record.Server) (next int64, err error) {
	entries, err := o.query(ctx, "SLOWLOG", "GET", strconv.Itoa(slowEntries))
	if err != nil {
		return 0, err
	}
	next = o.nextSlowEntry
	if o.denied["SLOWLOG"] {
		s.SlowLog.Total = -1
		return next, nil
	}
	if o.runID != s.RunID { // entries older than the first reading of a process are not new
		_, next = slowLogOf(entries, 0, s.At)
	} else if len(entries.Items) == slowEntries && allNew(entries, next) {
		if entries, err = o.query(ctx, "SLOWLOG", "GET", strconv.Itoa(manySlowEntries)); err != nil {
			return 0, err
		}
	}
	s.SlowLog, next = slowLogOf(entries, next, s.At)
	return next, nil
}

// query runs a command, unless the server rejected it before on this connection. The result of a
// rejected command is empty.
func (o *observed) query(ctx context.Context, words ...string) (resp.Value, error) {
	name := words[0]
	if o.denied[name] {
		return resp.Value{}, nil
	}
	v, err := o.conn.Do(ctx, words...)
	if redis.IsReply(err) {
		o.denied[name] = true
		return resp.Value{}, nil
	}
	return v, err
}

// Take returns and removes the readings since the last call, and what was learned about servers
// that cannot be read.
func (o *Observer) Take() (read []record.Server, unobserved []record.Unobserved) {
	o.mu.Lock()
	defer o.mu.Unlock()
	read, unobserved = o.read, o.unobserved
	o.read, o.unobserved = nil, nil
	return read, unobserved
}

// TakeRoundTrip returns and resets the minimum round trip since the last call, nanoseconds; 0 =
// none.
func (o *Observer) TakeRoundTrip() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	took := o.roundTrip
	o.roundTrip = 0
	return took
}
