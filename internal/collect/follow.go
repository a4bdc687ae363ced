package collect

import (
	"errors"
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record/codec"
)

// settlingPoll is the time between the first readings of a pod's clock.
const settlingPoll = 50 * time.Millisecond

// maxBackoff is the maximum pause after errors. It is short, to notice quickly that a network fault
// has ended.
const maxBackoff = 2 * time.Second

// follow polls one pod until it is lost or released, or the session is closed.
func (s *Session) follow(p *pod) {
	for {
		pauseFor := s.visit(p)
		timer := time.NewTimer(pauseFor)
		select {
		case <-p.ctx.Done():
			timer.Stop()
			return
		case <-p.poke:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// visit reads the status of a pod, if it is due, and pulls intervals, and returns the time until
// the next visit.
func (s *Session) visit(p *pod) time.Duration {
	s.mu.Lock()
	address, statusDue := p.address, s.statusDue(p)
	if statusDue {
		p.statusWanted = false // later requests need a newer status
	}
	s.mu.Unlock()
	s.compareClocks()
	if address == "" {
		return s.cfg.StatusEvery
	}
	began := s.now()
	if statusDue && !s.readStatus(p, address) {
		s.wantStatus(p)
		return s.backoff(p)
	}
	instance, after, ack, due := s.pullDue(p, statusDue)
	if due {
		var more, ok bool
		s.pull(p.ctx, address, instance, after, ack, func(answer batch, err error) {
			more, ok = s.applyPull(p, answer, err)
		})
		switch {
		case !ok:
			return s.backoff(p)
		case more:
			return 0
		}
	}
	return max(0, s.rest(p)-time.Duration(s.now()-began))
}

// readStatus reads and applies a pod's status; false if the pod did not respond.
func (s *Session) readStatus(p *pod, address string) bool {
	status, sent, received, err := s.status(p.ctx, address)
	if !s.contacted(p, err) {
		return false
	}
	s.applyStatus(p, status, sent, received)
	if s.alignDue(p) {
		s.align()
	}
	s.settlePod(p)
	return true
}

// pullDue returns what to pull from a pod, if anything. A pull waits for new intervals; right after
// the status was read there must be some, so that the next status is not delayed.
func (s *Session) pullDue(p *pod, statusRead bool) (instance string, after, ack uint64, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due = s.start.set && p.known && p.problem == "" && p.last.StartAt != 0 && !p.complete() &&
		(!statusRead || p.last.LastSeq > p.progress.pulled)
	return p.last.Instance, p.progress.pulled, p.progress.acked, due
}

// applyPull merges the result of a pull, which may contain intervals even if there is an error.
// more reports whether the pod has further intervals, ok whether the pull was successful.
func (s *Session) applyPull(p *pod, answer batch, err error) (more, ok bool) {
	more, mergeErr := s.merge(p, answer)
	if err == nil {
		err = mergeErr
	}
	s.mu.Lock()
	if conflict(err) { // the pod's process was restarted or has lost its record: read its status
		p.known = false
	}
	p.contact.unpulled = err != nil
	s.mu.Unlock()
	if !s.contacted(p, err) {
		return false, false
	}
	s.settlePod(p)
	return more, true
}

// wantStatus makes the next visit read the status, independently of the age of the last one.
func (s *Session) wantStatus(p *pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.statusWanted = true
}

// rest is the time between the beginnings of two visits.
func (s *Session) rest(p *pod) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.known && !p.process.clock.Settled():
		return min(settlingPoll, s.cfg.PollEvery)
	case s.statusDue(p):
		return 0
	case p.problem != "" || p.complete():
		return s.cfg.StatusEvery
	case s.start.set && p.last.StartAt != 0:
		return s.cfg.PullEvery
	}
	return s.cfg.PollEvery
}

// statusDue reports whether a visit must read the status instead of pulling intervals. The caller
// holds mu.
func (s *Session) statusDue(p *pod) bool {
	age := time.Duration(s.now() - p.statusAt)
	switch {
	case !p.known || p.statusWanted || !p.process.clock.Settled():
		return true
	case p.problem != "" || p.complete():
		return age >= s.cfg.StatusEvery
	case p.last.StartAt == 0 || !s.start.set:
		return age >= s.cfg.PollEvery
	case p.last.State == agent.Running && p.last.StartedAt == 0:
		return age >= s.cfg.PollEvery
	}
	return age >= s.cfg.StatusEvery
}

// contacted records the result of a request, and reports whether it was successful. A pod whose
// record cannot be pulled does not become reachable by its status.
func (s *Session) contacted(p *pod, err error) bool {
	if p.ctx.Err() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		p.contact.last = s.cfg.Now()
		if !p.contact.unpulled {
			s.reached(p)
		}
		return true
	}
	p.contact.failures++
	p.contact.err = err.Error()
	// it would be the same at the next attempt
	if errors.Is(err, codec.ErrCorrupt) && p.problem == "" {
		p.problem, p.problemText = Unreadable, p.contact.err
		s.changedSince(p, p.last, "")
	}
	if p.contact.reachable {
		p.contact.reachable, p.contact.unreachableSince = false, s.cfg.Now()
		s.cfg.Logger.Info("load pod does not respond", "pod", p.index, "name", p.name, "address",
			p.address, "error", err)
		wake(s.changed)
	}
	return false
}

// reached makes a pod reachable. The caller holds mu.
func (s *Session) reached(p *pod) {
	p.contact.failures, p.contact.err = 0, ""
	if !p.contact.reachable {
		p.contact.reachable = true
		wake(s.changed)
	}
}

// backoff returns the pause after errors: it doubles from PollEvery up to maxBackoff.
func (s *Session) backoff(p *pod) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	every := s.cfg.PollEvery
	return min(every<<min(max(p.contact.failures-1, 0), 10), max(maxBackoff, every))
}

// applyStatus applies a pod's status.
func (s *Session) applyStatus(p *pod, status agent.Status, sent, received int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, problem := p.last, p.problem
	p.statusAt = received
	if status.Run != s.cfg.Run || status.Pod != p.index {
		p.known = true
		p.problem = WrongAgent
		p.problemText = fmt.Sprintf("%s is pod %d of run %q", p.address, status.Pod, status.Run)
		s.changedSince(p, before, problem)
		return
	}
	another := status.Instance != before.Instance
	if another && before.StartAt != 0 || status.LastSeq < p.progress.pulled {
		p.problem = Restarted
		p.problemText = fmt.Sprintf("its process restarted after %d intervals were pulled",
			p.progress.pulled)
		p.contact.unpulled = false // nothing is pulled from it any more
		s.reached(p)
	} else if another {
		p.process = process{}
	}
	p.known = true
	if p.problem == Restarted || p.problem == Unreadable {
		s.changedSince(p, before, problem)
		return // the status of a new process is not about the run's load
	}
	s.podStepped(p, p.process.clock.Observe(sent, received, status.Now), status)
	p.last = status
	p.process.refineBeginning(status.StartedAt, received)
	p.problem, p.problemText = "", ""
	if s.start.set && status.StartAt == 0 && s.now() > s.start.local && !status.State.Ended() {
		p.problem = NotStarted
		p.problemText = "it did not accept the start instant in time"
	}
	s.changedSince(p, before, problem)
}
