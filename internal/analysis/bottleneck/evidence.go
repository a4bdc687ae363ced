package bottleneck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// evidence is the sums over the steady part of a run.
type evidence struct {
	in         Input
	generators []*generator    // by pod
	servers    []*server       // by address
	observed   []*observed     // by the time of the first reading
	length     time.Duration   // of the steady part
	stalls     *summary.Stalls // of the load generators in it; nil = none

	loadedRoundTrip, idleRoundTrip time.Duration // the shortest, during the load and before it
	roundTrip                      time.Duration // the network's part of a request

	response, service histogram.Distribution
	inFlight          float64 // share of the connections in use on average, by Little's law
	pings             []int64 // nanoseconds: of each reading in the steady part that has one
	refused           [record.NumClasses]refusals
	served            time.Duration // of the intervals with an outcome

	inBackend, inRedis uint64 // microseconds of Input.Times
}

// generator is the sum of one load pod's readings.
type generator struct {
	pod int
	timeline
	limit   float64 // cores; 0 = none
	threads int
}

func gather(in Input) *evidence {
	e := &evidence{in: in}
	steady := steadyWindows(in.MeasuredFrom, in.Series.End(), in.Without)
	e.load(steady)
	e.agents(steady)
	if in.Redis != Apart {
		e.redis(steady)
	}
	e.chooseRoundTrip()
	e.pods(steady)
	for _, w := range steady {
		e.length += w.To - w.From
	}
	e.stalls = summary.StallsTo(in.Series, in.MeasuredFrom, in.Series.End(), in.Without)
	return e
}

// chooseRoundTrip takes the shorter round trip: a PING under load also waits for a busy Redis, and
// for the CPU of both nodes, as the requests do, so that it is often as long as they are, whatever
// the network. One before the load waits if others use Redis.
func (e *evidence) chooseRoundTrip() {
	e.roundTrip = shorter(e.loadedRoundTrip, int64(e.idleRoundTrip))
	if e.roundTrip > 0 {
		e.roundTrip += e.in.AddedLatency
	}
}

// notObserved says that Redis was not observed, or a part of its servers, and why; "" = it was, or
// has nothing to do with the load.
func (e *evidence) notObserved() string {
	failed := unread(e.in.Series)
	switch {
	case e.in.Redis == Apart, failed == "" && len(e.servers) > 0:
		return ""
	case len(e.servers) > 0:
		return "not all servers were observed: " + failed
	}
	return "Redis was not observed: " +
		cmp.Or(e.in.NotAsked, failed, "there are no readings of it in the steady part")
}

// steadyWindows returns [from, to) without the given windows, in ascending order.
func steadyWindows(from, to time.Duration, without []summary.Window) []summary.Window {
	cuts := slices.SortedFunc(slices.Values(without), func(a, b summary.Window) int {
		return cmp.Compare(a.From, b.From)
	})
	var rest []summary.Window
	for _, c := range cuts {
		if c.From > from {
			rest = append(rest, summary.Window{From: from, To: min(c.From, to)})
		}
		from = max(from, c.To)
	}
	if from < to {
		rest = append(rest, summary.Window{From: from, To: to})
	}
	return rest
}

// tolerance is the longest delay of a reading after the end of its interval.
const tolerance = 100 * time.Millisecond

func (e *evidence) load(steady []summary.Window) {
	s := e.in.Series
	var busy, room float64 // connection-seconds
	for _, w := range steady {
		first, end := s.Window(w.From, w.To)
		for i := first; i < end; i++ {
			iv := s.At(i)
			room += float64(iv.Connections) * s.Step.Seconds()
			t := e.in.Times
			if t != nil && len(iv.Tallies) > max(t.Backend, t.Redis) {
				e.inBackend += iv.Tallies[t.Backend]
				e.inRedis += iv.Tallies[t.Redis]
			}
			for k := range iv.Ops {
				op := &iv.Ops[k]
				e.response.Add(op.Latency)
				e.service.Add(op.Service)
				inFlight := op.Service
				if len(inFlight) == 0 { // a closed loop
					inFlight = op.Latency
				}
				busy += inFlight.Mean().Seconds() * float64(inFlight.Count())
			}
			e.refuse(iv, s.Step)
		}
	}
	if room > 0 {
		e.inFlight = busy / room
	}
}

// median is the median latency from the send, without the time that requests waited in the load
// generator.
func (e *evidence) median() time.Duration {
	if e.service.Count() > 0 {
		return e.service.Quantile(0.5)
	}
	return e.response.Quantile(0.5)
}

func (e *evidence) agents(steady []summary.Window) {
	pods := map[int]*generator{}
	last := map[int]record.AgentUse{}
	for _, a := range e.in.Series.Agents() {
		at := windowOf(steady, a.At)
		if at >= 0 {
			e.loadedRoundTrip = shorter(e.loadedRoundTrip, a.RoundTrip)
			if a.RoundTrip > 0 {
				e.pings = append(e.pings, a.RoundTrip)
			}
		}
		e.idleRoundTrip = shorter(e.idleRoundTrip, a.IdleRoundTrip)
		before, ok := last[a.Pod]
		last[a.Pod] = a
		if !ok || at < 0 || windowOf(steady, before.At) != at || a.CPUSeconds < before.CPUSeconds {
			continue
		}
		g := pods[a.Pod]
		if g == nil {
			g = &generator{pod: a.Pod}
			pods[a.Pod] = g
		}
		g.add(&before, &a)
		g.stretch(&a.Busiest, steady)
		g.stretch(&a.MostThrottled, steady)
	}
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		if pods[pod].total.seconds >= shortestEvidence.Seconds() {
			e.generators = append(e.generators, pods[pod])
		}
	}
}

// shorter returns the shorter one of two round trips; 0 = not measured.
func shorter(d time.Duration, nanoseconds int64) time.Duration {
	other := time.Duration(nanoseconds)
	if d == 0 || other > 0 && other < d {
		return other
	}
	return d
}

// add adds the differences between two readings of the pod's process.
func (g *generator) add(before, now *record.AgentUse) {
	g.record(before.At, now.At, usage{
		cpu:       now.CPUSeconds - before.CPUSeconds,
		throttled: max(0, now.ThrottledSeconds-before.ThrottledSeconds),
	})
	g.limit, g.threads = now.CPULimit, now.BusyThreads
}

func (e *evidence) redis(steady []summary.Window) {
	type process struct{ address, runID string }
	servers := map[string]*server{}
	last := map[process]record.Server{}
	for _, r := range e.in.Series.Servers() {
		p := process{r.Address, r.RunID}
		before, ok := last[p]
		last[p] = r
		at := windowOf(steady, r.At)
		if !ok || at < 0 || windowOf(steady, before.At) != at {
			continue
		}
		s := servers[r.Address]
		if s == nil {
			s = &server{address: r.Address}
			servers[r.Address] = s
		}
		s.add(&before, &r)
		s.stretch(&r.Busiest, steady)
		s.stretch(&r.BusiestMainThread, steady)
	}
	for _, address := range slices.Sorted(maps.Keys(servers)) {
		if servers[address].total.seconds >= shortestEvidence.Seconds() {
			e.servers = append(e.servers, servers[address])
		}
	}
}

// windowOf returns the index of the window that contains an instant; -1 = none. A reading just
// after the end belongs to the window.
func windowOf(steady []summary.Window, at int64) int {
	return slices.IndexFunc(steady, func(w summary.Window) bool {
		return time.Duration(at) >= w.From &&
			time.Duration(at) <= w.To+tolerance
	})
}

// share returns the CPU usage of the generator as a share of its limit, or of one core per sending
// thread, and what it is a share of.
func (g *generator) share() (share func(usage) float64, of string) {
	switch threads := float64(g.threads); {
	case g.limit > 0 && (threads == 0 || g.limit <= threads):
		return func(u usage) float64 { return u.cores() / g.limit }, "its limit of " + cores(g.limit)
	case threads > 0:
		return func(u usage) float64 {
			return u.cores() / threads
		}, fmt.Sprintf("one core for each of %d threads that send", g.threads)
	}
	return func(usage) float64 { return 0 }, ""
}

// busiest is the server whose share is highest over a stretch, and its usage there; nil = there are
// no readings.
func (e *evidence) busiest(share func(usage) float64) (most *server, worst usage) {
	for _, s := range e.servers {
		u := s.busiest(share)
		if most == nil || share(u) > share(worst) {
			most, worst = s, u
		}
	}
	return most, worst
}

// name is "Redis", with the address if there are several servers.
func (e *evidence) name(s *server) string {
	if len(e.servers) > 1 {
		return "Redis at " + s.address
	}
	return "Redis"
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func percent(share float64) string {
	return fmt.Sprintf("%.0f%%", 100*share)
}

func cores(n float64) string {
	return fmt.Sprintf("%.2f cores", n)
}

func number(n float64) string {
	return fmt.Sprintf("%.0f", n)
}

func bytes(n int64) string {
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func duration(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case ms >= 1000:
		return fmt.Sprintf("%.2fs", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.1fms", ms)
	default:
		return fmt.Sprintf("%.2fms", ms)
	}
}

// Input is the record of a run and facts that are not in it.
type Input struct {
	Series       *merged.Series
	MeasuredFrom time.Duration    // the end of ramp-up and warm-up, from the start
	Without      []summary.Window // windows that are not steady: from each fault to its recovery

	ServerCPULimit float64 // of Redis' container, in cores; 0 = no limit, or unknown
	// added by the client to each round trip of a request, but not of a PING
	AddedLatency time.Duration
	// the backend of the workload apart from Redis: "PostgreSQL", "the API"; "" = none
	Backend  string
	Times    *Times // nil = it is not known how much of the latency is the backend's
	Redis    Place  // how requests reach Redis
	NotAsked string // why INFO is not read; "" = it is
	// that the kernel ended Redis at its container's memory limit, as a sentence; "" = it did not, or
	// that is not known
	OutOfMemory string
	Stamped     bool // the kernel stamps replies: see plan.KernelStamps
}

// Place is where Redis stands on the way of the load's requests.
type Place int

// The places of Redis.
const (
	Direct Place = iota // requests go to it
	Behind              // requests go to an API, which may use it
	Apart               // requests have nothing to do with it, or there is no target
)

// Times are the tallies of a workload that sum the time of its operations, in microseconds: in the
// backend and in Redis.
type Times struct{ Backend, Redis int }

// The limits from which a component counts as the bottleneck.
const (
	saturated      = 0.9  // of a CPU limit, or of one core per thread
	throttledShare = 0.05 // of the time
	stalledShare   = 0.1  // of the time
	lastingShare   = 0.1  // of the time: what held for less is an event
	// of the time of a closed loop's users: from then on they waited for replies rather than for the
	// generator
	waitingShare = 0.5
	// of a PING, and of the median latency, to the PING of an idle network
	starvedRatio = 10.0
	starvedLeast = 5 * time.Millisecond // of both
	// of one core, by the main thread: above it the thread has enough to do
	starvedUse = 0.5
	lagShare   = 0.1                  // of the p99
	lagLeast   = 5 * time.Millisecond // less can be due to the scheduler of a shared machine
	// of the connections: from then on arrivals wait for a free one, not for the generator
	occupied       = 0.8
	roundTripShare = 0.7              // of the median latency
	nearby         = time.Millisecond // an ordinary round trip within a data center
	// of the readings, or of the seconds if there are fewer: timestamps of events are in seconds
	eventShare     = 0.2
	evictionsLeast = 1.0 // per second
	diskShare      = 0.5 // of the time between two readings
	// of a PING, and of the median latency, to the PING of an idle network
	diskRatio    = 10.0
	diskLeast    = time.Millisecond // of both
	blockedShare = 0.5              // of the readings
	backendShare = 0.5              // of the time in backend and Redis
	// of readings of one process, or of the steady part; over less time, usage is not significant
	shortestEvidence = 500 * time.Millisecond
)
