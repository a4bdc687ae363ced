package collect

import (
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record/merged"
)

// Lose marks a pod as lost: the session no longer waits for it, and its record ends with the
// intervals pulled so far.
func (s *Session) Lose(index int) {
	if index < 0 || index >= len(s.pods) {
		return
	}
	s.record.Lock()
	s.mu.Lock()
	p := s.pods[index]
	if !p.gone {
		p.gone = true
		p.cancel()
		s.merged(func(series *merged.Series) { series.Lose(index) })
		s.grown = true
		wake(s.changed)
	}
	s.mu.Unlock()
	s.record.Unlock()
	s.settle()
}

// settlePod is settle after a change of one pod. It avoids checking all pods unless the state of
// this one has changed.
func (s *Session) settlePod(p *pod) {
	s.mu.Lock()
	complete := p.complete()
	same := p.over == (complete || p.gone) && (!complete || p.closed || !s.begun)
	s.mu.Unlock()
	if !same {
		s.settle()
	}
}

// settle marks pods that have ended and were pulled completely in the series, and detects when all
// have.
func (s *Session) settle() {
	if !s.unsettled() {
		return
	}
	s.record.Lock()
	defer s.record.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	finished := true
	for _, p := range s.pods {
		complete := p.complete()
		p.over = complete || p.gone
		finished = finished && p.over
		if s.begun && complete && !p.closed && !p.gone {
			s.closePod(p)
		}
	}
	if finished == s.finished {
		return
	}
	if finished {
		s.alignLocked() // the drift of the whole run
		wake(s.saveNow)
	}
	s.finished = finished
	wake(s.changed)
}

// unsettled reports whether settle has anything to do, without locking the record.
func (s *Session) unsettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := false
	finished := true
	for _, p := range s.pods {
		p.over = p.complete() || p.gone
		finished = finished && p.over
		news = news || s.begun && p.over && !p.closed
	}
	return news || finished != s.finished
}

// closePod ends the pod's part of the series. The caller holds record and mu.
func (s *Session) closePod(p *pod) {
	if p.last.State == agent.Failed {
		s.merged(func(series *merged.Series) { series.Lose(p.index) })
	} else {
		s.merged(func(series *merged.Series) { series.Finish(p.index) })
	}
	p.closed, s.grown = true, true
}
