// Package collect is the operator's side of a load test: it aligns the clocks of the load pods,
// starts them at the same instant, pulls their records, and merges them into one series that
// survives a restart of the operator: no interval is lost or counted twice.
//
// An interval is acknowledged to its pod only when a checkpoint that contains it has been stored;
// until then the pod keeps it. After a restart a session loads the checkpoint and continues to pull
// from its end.
package collect

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect/clocks"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Store is durable storage for one checkpoint.
type Store interface {
	// Load returns the last saved data; nil data and no error if nothing was saved yet.
	Load(ctx context.Context) ([]byte, error)
	// Save replaces the data. It must be durable when Save returns nil; Save does not retain the
	// slice.
	Save(ctx context.Context, data []byte) error
}

// Wanted are results of the pods that the plan asks for and that are still needed: a pod is complete
// only once they were read.
type Wanted struct {
	Ledger     bool // of the verification of writes
	Guarantees bool // how often was false what applications count on
}

// Config are the parameters of a session. Run, Step, Ops, Pods, Credentials and Store must be set.
type Config struct {
	Run         string        // plan.Plan.Run
	Step        time.Duration // plan.Plan.Interval
	Ops         []string      // plan.Plan.Operations()
	Tallies     []string      // plan.Plan.Tallies()
	ReadOnly    []bool        // plan.Plan.ReadOnly()
	Pods        int           // plan.Plan.Pods
	Credentials agent.Credentials
	Store       Store
	Wanted      Wanted

	// interval of reading a pod's status until its load runs; default 250 ms
	PollEvery time.Duration
	// interval of pulling a pod's record; default 500 ms, with more than 250 pods up to 2 s: at most
	// 500 pulls per second for up to 1,000 pods
	PullEvery time.Duration
	// interval of reading a pod's status while its load runs; default 5 s, or 10 times PullEvery if
	// that is longer
	StatusEvery    time.Duration
	Checkpoints    Checkpoints
	Memory         *Memory       // shared by all sessions of the process; default one of its own
	RequestTimeout time.Duration // of one request to a pod; default 10 s

	// Merged receives each interval of a pod that this session adds to the record, and must not retain
	// it. nil = nobody needs them.
	Merged func(*record.Interval)

	// how far the record of a pod may be ahead of the clock of this process before it is not believed;
	// default 1 minute
	Ahead time.Duration
	// with a monotonic reading; default time.Now
	Now func() time.Time
	// the wall clock, by which callers pass instants; default Now
	Wall func() time.Time
	// default: a net.Dialer
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// default slog.Default()
	Logger *slog.Logger
}

// Checkpoints is how often a session stores its record, and how large it may be.
type Checkpoints struct {
	Every time.Duration // default 10 s
	Limit int           // bytes; default 900 KiB
}

// Pod is the address of a load pod.
type Pod struct {
	Index   int    // in [0, Config.Pods)
	Name    string // for messages
	Address string // host:port; "" = unknown
}

// Session collects one load test. All methods are safe for concurrent use.
type Session struct {
	cfg       Config
	base      time.Time // zero of local instants
	transport *http.Transport
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	loops     sync.WaitGroup
	changed   chan struct{}
	saveNow   chan struct{}

	mu       sync.Mutex // guards the following fields and every pod
	pods     []*pod
	start    startInstant
	clock    runClock
	wall     clocks.Wall
	saved    time.Time
	storeErr error
	finished bool

	record recording // locked before mu

	decoded sync.Pool // *[]record.Interval: reused decoding buffers
	// *bytes.Buffer: of answers to pulls; most of the time a pull waits for its answer
	bodies sync.Pool

	saving sync.Mutex // one checkpoint at a time; locked before record and mu
}

// startInstant is the instant at which the load begins.
type startInstant struct {
	set   bool      // intervals are pulled
	at    time.Time // as passed by the caller
	local int64     // the same as local instant
}

// runClock is the clock of the run.
type runClock struct {
	aligned   bool     // lead is known
	lead      int64    // how far it is ahead of the local one
	alignedAt int64    // the local instant of the last alignment
	steps     []string // of the pods' clocks, to be noted by the next alignment
}

// Read passes the merged series to f, which must not modify or retain it. No interval is merged
// until f returns.
func (s *Session) Read(f func(*merged.Series)) {
	s.record.RLock()
	defer s.record.RUnlock()
	f(s.record.series)
}

// Changed receives after a relevant change of Status: a state, a pod's reachability, a problem, the
// end of the record.
// Growth of the record alone does not trigger it. Several changes may cause one receive.
func (s *Session) Changed() <-chan struct{} {
	return s.changed
}

// Problem is why the record of a reachable pod cannot be collected. It is permanent: the caller
// must Lose the pod or end the run.
type Problem string

// The problems.
const (
	// its process was restarted: intervals that were not pulled are lost
	Restarted  Problem = "Restarted"
	NotStarted Problem = "NotStarted" // the start instant has passed without being accepted by the pod
	Unreadable Problem = "Unreadable" // it reports what no agent of this version can report
	// the agent at the address belongs to another run or is another pod
	WrongAgent Problem = "WrongAgent"
)

// pod is the state of one load pod. Session.mu guards the fields after poke; one goroutine polls
// each pod.
type pod struct {
	index        int
	resultWanted bool
	ctx          context.Context // ends with the session, and when the pod is lost or released
	cancel       context.CancelFunc
	poke         chan struct{} // triggers a visit

	name, address  string
	gone, released bool
	known          bool // status was read at least once
	last           agent.Status
	statusAt       int64 // when the status was last read, local
	statusWanted   bool  // read it at the next visit, independently of statusAt
	problem        Problem
	problemText    string

	process  process
	contact  contact
	progress progress
}

// process is what is known of the present process of a pod.
type process struct {
	clock     clocks.Remote
	began     beginning
	wallAhead int64 // its wall clock - its own; 0 = unknown
	sentAt    int64 // start instant sent to it, its clock; 0 = none
}

// contact is whether a pod answers requests.
type contact struct {
	last             time.Time // of the answers
	unpulled         bool      // the last pull failed
	reachable        bool
	unreachableSince time.Time
	failures         int // consecutive failed requests
	err              string
}

// progress is how far the record of a pod is collected.
type progress struct {
	pulled uint64 // seq up to which the series contains the pod's intervals
	filled uint64 // of these, intervals that this session filled as empty
	acked  uint64 // seq up to which a stored checkpoint contains them
	closed bool   // the record has ended in the series
	over   bool   // complete or lost, at the last settle
}

// beginning is when a pod's load began, converted with the most precise estimate of its clock.
type beginning struct {
	at, uncertainty int64 // local
	known           bool
}

// complete says that the pod has ended and everything was pulled. The caller holds mu.
func (p *pod) complete() bool {
	ended := p.problem == "" && p.last.State.Ended()
	if p.progress.closed { // a checkpoint knew it already; it does not hold the results
		return !p.resultWanted || ended || p.problem != "" || p.released
	}
	return ended && p.progress.pulled >= p.last.LastSeq
}

// Started returns the start instant of the session, which was sent to the pods, or will be; false
// where there is none yet.
func (s *Session) Started() (at time.Time, started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start.at, s.start.set
}

// startInstant returns the start instant T as local instant.
func (s *Session) startInstant() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start.local
}

// begin sets the start instant and wakes every pod's goroutine. The caller holds record and mu.
func (s *Session) begin(at time.Time) {
	s.start.set, s.start.at = true, at
	s.start.local, _ = s.wall.Local(at)
	s.record.merged(func(series *merged.Series) { series.Start = at.Round(0).UTC() })
	for _, p := range s.pods {
		wake(p.poke)
	}
}

func (s *Session) addressOf(p *pod) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.address
}

func (s *Session) instant(local int64) time.Time {
	return s.base.Add(time.Duration(local))
}

func (s *Session) now() int64 {
	return int64(s.cfg.Now().Sub(s.base))
}

// changedSince notifies Changed if the pod's state or problem has changed. The caller holds mu.
func (s *Session) changedSince(p *pod, before agent.Status, problem Problem) {
	if p.last.State != before.State || (p.last.StartedAt != 0) != (before.StartedAt != 0) ||
		p.problem != problem {
		s.cfg.Logger.Debug("pod changed", "pod", p.index, "state", p.last.State, "reason", p.last.Reason,
			"problem", p.problem)
		wake(s.changed)
	}
}

// wake sends to a channel of capacity one, unless it is full.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// refineBeginning converts the start of the load, by the clock of the process, with the most
// precise estimate of that clock so far; 0 = it has not begun.
func (p *process) refineBeginning(started, now int64) {
	if started == 0 {
		return
	}
	offset, uncertainty, ok := p.clock.Estimate(now)
	if ok && (!p.began.known || uncertainty < p.began.uncertainty) {
		p.began = beginning{
			at:          started - offset,
			uncertainty: uncertainty,
			known:       true,
		}
	}
}
