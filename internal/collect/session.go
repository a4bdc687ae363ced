// Package collect is the operator's side of a load test: it aligns the clocks of the load pods, starts them at one instant, pulls what
// they record, and merges it into one series that survives a restart of the operator: no interval is lost, none counts twice.
//
// An interval is acknowledged to its pod only when a checkpoint that holds it has been stored; until then the pod keeps it. After a
// restart a session takes up the checkpoint and pulls from where it ends.
package collect

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
)

// Store keeps one checkpoint durably.
type Store interface {
	// Load returns what was saved last; nil data and no error when nothing ever was.
	Load(ctx context.Context) ([]byte, error)
	// Save replaces it. The data must be durable when it returns nil, and is not kept by reference.
	Save(ctx context.Context, data []byte) error
}

// Config is what a session needs. Run, Step, Ops, Pods, Credentials and Store must be set.
type Config struct {
	Run         string        // load.Plan.Run
	Step        time.Duration // load.Plan.Interval
	Ops         []string      // load.Plan.Operations()
	Tallies     []string      // load.Plan.Tallies()
	Pods        int           // load.Plan.Pods
	Credentials agent.Credentials
	Store       Store
	Ledger      bool // the plan verifies, and its result is still wanted: a pod is complete only once it has told it

	PollEvery       time.Duration // a pod's status until its load runs; default 250 ms
	PullEvery       time.Duration // a pod's intervals; default 500 ms, of more than 250 pods more, to 2 s: at most 500 pulls a second up to 1,000 pods
	StatusEvery     time.Duration // a pod's status while its load runs; default 5 s, or 10 times PullEvery where that is more
	CheckpointEvery time.Duration // default 10 s
	CheckpointLimit int           // bytes; default 900 KiB
	MemoryLimit     int           // bytes that the series may take before it is coarsened; default 128 MiB
	RequestTimeout  time.Duration // of one request to a pod; default 10 s

	Now    func() time.Time                                                     // with a monotonic reading; default time.Now
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // default: a net.Dialer
	Logger *slog.Logger                                                         // default slog.Default()
}

// Pod is where a load pod is reached.
type Pod struct {
	Index   int    // in [0, Config.Pods)
	Name    string // for people
	Address string // host:port; "" = not known yet
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

	mu       sync.Mutex // guards what follows, and every pod
	pods     []*pod
	begun    bool      // a start instant is decided: intervals are pulled
	start    time.Time // the decided instant, as it was given
	startAt  int64     // the same, local
	saved    time.Time
	storeErr error
	finished bool

	record  sync.RWMutex // guards the series; taken before mu where both are
	series  *record.Series
	compact *record.Series // the same record, coarser: what checkpoints are made of; nil as long as the record itself fits into one
	grown   bool           // since the last checkpoint

	decoded sync.Pool // *[]record.Interval: memory to decode into

	saving sync.Mutex // one checkpoint at a time; taken before record and mu
}

// Read gives the merged series to f, which must not change or keep it. Pulled intervals wait until f returns.
func (s *Session) Read(f func(*record.Series)) {
	s.record.RLock()
	defer s.record.RUnlock()
	f(s.series)
}

// Changed receives after something in Status changed that a decision may hang on: a state, a pod's reachability, a problem, the end.
// Growth of the record alone does not count. Several changes may give one receive.
func (s *Session) Changed() <-chan struct{} { return s.changed }

// Problem is why a pod that answers cannot be collected from. It does not go away by itself: the caller has to Lose the pod or to end the run.
type Problem string

// The problems.
const (
	Restarted  Problem = "Restarted"  // its process is not the one that was started: what was not yet pulled is gone
	NotStarted Problem = "NotStarted" // the start instant has passed, and the pod never took it
	WrongAgent Problem = "WrongAgent" // the agent at the address belongs to another run or is another pod
)

// pod is one load pod as the session knows it. Session.mu guards the fields below it; one goroutine follows each pod.
type pod struct {
	index        int
	ledgerWanted bool
	ctx          context.Context // ends with the session, and when the pod is gone or released
	cancel       context.CancelFunc
	poke         chan struct{} // look again now
	body         bytes.Buffer  // of the following goroutine

	name, address    string
	gone, released   bool
	known            bool // status was read at least once
	last             agent.Status
	clock            clock
	began            beginning
	sentAt           int64 // start instant sent to this instance, pod's clock; 0 = none
	lastContact      time.Time
	reachable        bool
	unreachableSince time.Time
	failures         int // requests failed in a row
	err              string
	problem          Problem
	problemText      string
	statusAt         int64 // when the status was last read, local
	statusWanted     bool  // read it at the next visit, however old the last one is

	pulled uint64 // seq up to which the series holds the pod's intervals
	filled uint64 // of these, holes that this session filled with zeros
	acked  uint64 // seq up to which a stored checkpoint holds them
	closed bool   // the series knows that the record has ended
	over   bool   // complete or gone, as settle saw it last
}

// beginning is when a pod's load began, read with the best view of its clock there was.
type beginning struct {
	at, uncertainty int64 // local
	known           bool
}

// complete says that the pod has ended and everything was pulled. The caller holds mu.
func (p *pod) complete() bool {
	ended := p.problem == "" && p.last.State.Ended()
	if p.closed { // a checkpoint knew it already; it does not hold the ledger's result
		return !p.ledgerWanted || ended || p.problem != "" || p.released
	}
	return ended && p.pulled >= p.last.LastSeq
}

// startInstant is T as decided, local.
func (s *Session) startInstant() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startAt
}

// begin notes the decided start instant and wakes every pod's goroutine. The caller holds record and mu.
func (s *Session) begin(at time.Time) {
	s.begun, s.startAt, s.start = true, s.local(at), at
	s.merged(func(series *record.Series) { series.Start = at.Round(0).UTC() })
	for _, p := range s.pods {
		wake(p.poke)
	}
}

// merged does the same to the record and to the compact one, if there is one. The caller holds record.
func (s *Session) merged(do func(*record.Series)) {
	do(s.series)
	if s.compact != nil {
		do(s.compact)
	}
}

func (s *Session) addressOf(p *pod) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.address
}

// local converts between time.Time and nanoseconds since the session was opened. Instants without a monotonic reading (those that were
// stored) go by the wall clock as it stands now, others by the monotonic one.
func (s *Session) local(t time.Time) int64 {
	now := s.cfg.Now()
	return int64(now.Sub(s.base) + t.Sub(now))
}

func (s *Session) instant(local int64) time.Time { return s.base.Add(time.Duration(local)) }

func (s *Session) now() int64 { return int64(s.cfg.Now().Sub(s.base)) }

// changedSince wakes the caller if a decision may hang on what was learned. The caller holds mu.
func (s *Session) changedSince(p *pod, before agent.Status, problem Problem) {
	if p.last.State != before.State || (p.last.StartedAt != 0) != (before.StartedAt != 0) || p.problem != problem {
		s.cfg.Logger.Debug("pod changed", "pod", p.index, "state", p.last.State, "reason", p.last.Reason, "problem", p.problem)
		wake(s.changed)
	}
}

// wake fills a channel of capacity one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// refineBeginning converts the start of the pod's load with the best view of its clock so far. The caller holds mu.
func (p *pod) refineBeginning(now int64) {
	if p.last.StartedAt == 0 {
		return
	}
	offset, uncertainty, ok := p.clock.estimate(now)
	if ok && (!p.began.known || uncertainty < p.began.uncertainty) {
		p.began = beginning{at: p.last.StartedAt - offset, uncertainty: uncertainty, known: true}
	}
}
