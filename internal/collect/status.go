package collect

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
)

// Findings are what a pod has found in the deployment.
type Findings struct {
	Layout *agent.Layout // the topology; nil = unknown, or a standalone server
	Notes  []string      // for users, in sentences
}

// PodStatus is the state of one pod. Instants are on the operator's clock.
type PodStatus struct {
	Index   int
	Name    string
	Address string // "" = unknown

	State   agent.State // "" = never read
	Reason  string      // of Failed, and of what a Preparing pod waits for
	Message string
	Server  *record.Server // the first reading of INFO, if it was read
	Findings

	Reachable        bool
	UnreachableSince time.Time // while not Reachable; the opening of the session if it never was
	LastContact      time.Time // zero = never
	Err              string    // of the last request, "" if it was successful
	Problem          Problem   // "" = none
	ProblemText      string

	ClockSettled bool          // enough round trips for the start
	Offset       time.Duration // pod's clock - nanoseconds since the session was opened
	Uncertainty  time.Duration // half of the shortest round trip, plus drift

	StartAt   time.Time // the start instant that the pod has accepted; zero = none
	StartedAt time.Time // when its load actually began; zero = not yet

	LastSeq uint64 // newest interval at the pod
	Pulled  uint64 // intervals in the series
	Acked   uint64 // intervals in a stored checkpoint
	Lost    uint64 // intervals the pod dropped before they were acknowledged
	// intervals that were dropped before they were pulled, in this session: they count as empty
	Filled   uint64
	Complete bool // ended, and all intervals were pulled
	Gone     bool // lost: by Lose, or according to the checkpoint

	Ledger *record.Ledger // result of the verification, once it has ended; nil if nothing was verified
}

// Status is the state of the session at one instant.
type Status struct {
	Pods []PodStatus // by index

	Ready  int // pods that can be started: Ready, reachable, with an aligned clock
	Begun  int // pods whose load actually began, including ended ones
	Ended  int // pods that are Finished or Failed
	Failed int // of these, Failed
	Gone   int // pods that were lost

	Verifying int // pods whose load has ended and that are reading their ledgers back
	// of all pods that are not lost, once Finished; nil if nothing was verified
	Ledger *record.Ledger
	// how often was false what applications count on, of all pods that told it, once Finished; nil if
	// none did
	Guarantees *record.Guarantees

	AllReady bool // every pod that is not lost is Ready, and there is at least one
	// a pod has the start instant: it has said so, or the record has a part of its load. Until then no
	// load may ever begin at that instant
	Received bool
	// every pod that is not lost has accepted the start instant, and there is at least one
	AllStarted bool
	Finished   bool // every pod that is not lost is Complete: the record will not grow

	// Start is T on the operator's clock: the median of the instants that the pods accepted; before,
	// the instant that was set; zero before that.
	Start time.Time
	// Skew is the time between the earliest and the latest actual start of the pods' loads; -1 until
	// all began.
	// SkewUncertainty is the sum of the two pods' clock uncertainties.
	Skew, SkewUncertainty time.Duration
	// StartError is the maximum difference between the start instant and a pod's actual start; -1
	// until all began.
	StartError time.Duration
	// ClockShift is by how much the operator's wall clock is ahead of what it would be if it had
	// counted on from the start instant: near zero, unless it was set since then, or the operator was
	// restarted on another node.
	// It needs a pod whose clock is aligned, is 0 before, and has an error of at most
	// ClockShiftUncertainty.
	ClockShift, ClockShiftUncertainty time.Duration

	Saved time.Time // when the last checkpoint was stored; zero = not by this session
}

// Finished is Status().Finished.
func (s *Session) Finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished
}

// StoreError is why the last attempt to store a checkpoint failed; nil if it did not.
func (s *Session) StoreError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.storeErr
}

// Status returns the current state. It copies a few hundred bytes per pod.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	status := Status{
		Pods:       make([]PodStatus, len(s.pods)),
		Saved:      s.saved,
		Finished:   s.finished,
		Skew:       -1,
		StartError: -1,
	}
	started := 0
	begun := make([]beginning, 0, len(s.pods))
	for i, p := range s.pods {
		status.Pods[i] = s.podStatus(p, now)
		status.Received = status.Received || p.last.StartAt != 0 || p.progress.pulled > 0
		if p.gone {
			status.Gone++
			continue
		}
		status.count(&status.Pods[i])
		if p.last.StartAt != 0 {
			started++
		}
		if p.process.began.known {
			begun = append(begun, p.process.began)
		}
	}
	s.addResults(&status)
	live := len(s.pods) - status.Gone
	status.Begun = len(begun)
	status.AllReady = live > 0 && status.Ready == live
	status.AllStarted = live > 0 && started == live
	if s.start.set {
		s.startStatus(&status)
		if live > 0 && len(begun) == live {
			status.skew(begun, s.start.local)
		}
	}
	return status
}

// count adds a pod that is not lost to the counts of states.
func (st *Status) count(p *PodStatus) {
	if p.State == agent.Ready && p.Reachable && p.ClockSettled && p.Problem == "" {
		st.Ready++
	}
	if p.State.Ended() {
		st.Ended++
	}
	if p.State == agent.Failed {
		st.Failed++
	}
	if p.State == agent.Verifying {
		st.Verifying++
	}
}

// startStatus sets the start on the operator's clock, from the instants that the pods with a
// settled clock accepted.
func (s *Session) startStatus(status *Status) {
	status.Start = s.start.at
	starts := make([]int64, 0, len(s.pods))
	for i, p := range s.pods {
		ps := &status.Pods[i]
		if !p.gone && p.last.StartAt != 0 && ps.ClockSettled {
			starts = append(starts, p.last.StartAt-int64(ps.Offset))
			status.ClockShiftUncertainty = max(status.ClockShiftUncertainty, ps.Uncertainty)
		}
	}
	if len(starts) == 0 {
		return
	}
	slices.Sort(starts)
	start := starts[len(starts)/2]
	status.Start = s.instant(start)
	if s.clock.aligned {
		status.ClockShift = time.Duration(s.wall.Ahead() - s.wall.Since(s.start.at) - s.clock.lead)
	}
}

// addResults sets what the pods read back or found out, if that is wanted and all have ended. The
// caller holds mu.
func (s *Session) addResults(status *Status) {
	if s.finished && s.cfg.Wanted.Ledger {
		status.Ledger = s.ledger()
	}
	if s.finished && s.cfg.Wanted.Guarantees {
		status.Guarantees = s.guarantees()
	}
}

// told is what the pods that are not lost told last, and how many told nothing. The caller holds mu.
func told[T any](s *Session, of func(last *agent.Status) *T) (results []*T, missing int) {
	for _, p := range s.pods {
		if result := of(&p.last); !p.gone && result != nil {
			results = append(results, result)
		} else {
			missing++
		}
	}
	return results, missing
}

// ledger merges the verification results of the pods. The caller holds mu.
func (s *Session) ledger() *record.Ledger {
	results, missing := told(s, func(last *agent.Status) *record.Ledger { return last.Ledger })
	if missing > 0 {
		results = append(results, &record.Ledger{
			Unread: fmt.Sprintf(
				"%d of %d load pods were lost, stopped or failed before they had read their ledgers back",
				missing, len(s.pods)),
		})
	}
	return record.MergeLedgers(results...)
}

// guarantees merges those of the pods. The caller holds mu.
func (s *Session) guarantees() *record.Guarantees {
	results, missing := told(s, func(last *agent.Status) *record.Guarantees { return last.Guarantees })
	if missing > 0 {
		results = append(results, &record.Guarantees{
			Untold: fmt.Sprintf("%d of %d load pods were lost, stopped or failed before they had told it",
				missing, len(s.pods)),
		})
	}
	return record.MergeGuarantees(results...)
}

func (s *Session) podStatus(p *pod, now int64) PodStatus {
	ps := PodStatus{
		Index:        p.index,
		Name:         p.name,
		Address:      p.address,
		State:        p.last.State,
		Reason:       p.last.Reason,
		Message:      p.last.Message,
		Server:       p.last.Server,
		Findings:     Findings{Layout: p.last.Layout, Notes: p.last.Notes},
		Reachable:    p.contact.reachable,
		LastContact:  p.contact.last,
		Err:          p.contact.err,
		Problem:      p.problem,
		ProblemText:  p.problemText,
		ClockSettled: p.process.clock.Settled(),
		LastSeq:      p.last.LastSeq,
		Pulled:       p.progress.pulled,
		Acked:        p.progress.acked,
		Lost:         p.last.Lost,
		Filled:       p.progress.filled,
		Complete:     p.complete(),
		Gone:         p.gone,
		Ledger:       p.last.Ledger,
	}
	if !p.contact.reachable {
		ps.UnreachableSince = p.contact.unreachableSince
	}
	if offset, uncertainty, ok := p.process.clock.Estimate(now); ok {
		ps.Offset, ps.Uncertainty = time.Duration(offset), time.Duration(uncertainty)
		if p.last.StartAt != 0 {
			ps.StartAt = s.instant(p.last.StartAt - offset)
		}
	}
	if p.process.began.known {
		ps.StartedAt = s.instant(p.process.began.at)
	}
	return ps
}

// skew sets the figures of the start from the pods' actual starts, at least one.
func (st *Status) skew(begun []beginning, decided int64) {
	first, last := begun[0], begun[0]
	for _, b := range begun {
		if b.at < first.at {
			first = b
		}
		if b.at > last.at {
			last = b
		}
	}
	st.Skew = time.Duration(last.at - first.at)
	st.SkewUncertainty = time.Duration(first.uncertainty + last.uncertainty)
	st.StartError = max(time.Duration(first.at-decided).Abs(), time.Duration(last.at-decided).Abs())
}
