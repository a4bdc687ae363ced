package ledger

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
)

const (
	// watchEvery is the time between two readings of the servers' counters during the load.
	watchEvery = time.Second
	// watchWithin is the time limit of such a reading.
	watchWithin = 500 * time.Millisecond
)

// evictions counts the keys that each server process evicts during a run. Safe for concurrent use.
type evictions struct {
	mu sync.Mutex
	// unique: each ledger write is a key without a TTL, which volatile-* policies never evict. A
	// bitmap has a TTL.
	unique    bool
	processes map[string]*process // by run_id
}

// process is what is known about one server process.
type process struct {
	counter int64 // evicted_keys at the last reading
	spares  bool  // its policy at that time evicts no ledger key
	keys    uint64
	may     bool // it evicts, or has evicted, any key
	reset   bool // the counter went backwards: CONFIG RESETSTAT
	final   bool
}

// add adds a reading; a process that was not read before the load counts from its start. final: the
// load has ended, and the keys have been read back.
func (e *evictions) add(info redis.Info, begin, final bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.processes == nil {
		e.processes = map[string]*process{}
	}
	counter, policy := info.Int("evicted_keys"), info["maxmemory_policy"]
	spares := e.unique && strings.HasPrefix(policy, "volatile-")
	p := e.processes[info["run_id"]]
	if p == nil {
		p = &process{spares: spares}
		if begin {
			p.counter = counter
		}
		e.processes[info["run_id"]] = p
	}
	since := counter - p.counter
	if since < 0 {
		p.reset, since = true, counter
	}
	if !p.spares || !spares {
		p.keys += uint64(since)
	}
	limit := info.Int("maxmemory")
	// a load does not fill the other half between two readings
	nearLimit := limit > 0 && 2*info.Int("used_memory") >= limit
	evicts := policy != "" && policy != "noeviction" && !spares && info["role"] == "master"
	p.may = p.may || p.keys > 0 || evicts && nearLimit
	p.counter, p.spares, p.final = counter, spares, final
}

// result returns the processes that have evicted keys, or may have.
func (e *evictions) result() map[string]record.Evictions {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all map[string]record.Evictions
	for id, p := range e.processes {
		if p.may {
			all = record.MergeEvictions(all, map[string]record.Evictions{
				id: {Keys: p.keys, Final: p.final && !p.reset},
			})
		}
	}
	return all
}

// Watch reads the counters of every server until ctx ends, as a process that dies takes its counter
// with it. One pod of a run is enough. layout returns the topology as the load knows it: unlike
// Discover it must not query it, which would help the load to find a new primary.
func (a *Audit) Watch(ctx context.Context, layout func() (Layout, error)) {
	open := map[string]*redis.Conn{}
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for a.Wait(ctx, watchEvery) {
		current, err := layout()
		if err != nil {
			continue
		}
		var all sync.WaitGroup
		for _, n := range current.Nodes {
			if open[n.Address] == nil {
				open[n.Address] = a.conn(n.Address, watchWithin, false)
			}
			c := open[n.Address]
			all.Go(func() {
				if info, err := c.Info(ctx); err == nil {
					a.evictions.add(info, false, false)
				}
			})
		}
		all.Wait()
	}
}
