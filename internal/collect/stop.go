package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record/merged"
)

// Step sends every pod that is not lost a new rate from at on, counted from the start; rate 0 ends
// the load at at. The error names each pod that did not accept it; Refused reports whether a pod
// rejected it.
func (s *Session) Step(ctx context.Context, at time.Duration, rate float64) error {
	return s.each(troubled, func(p *pod) error {
		s.mu.Lock()
		address, instance := p.address, p.last.Instance
		s.mu.Unlock()
		body, err := json.Marshal(agent.StepRequest{
			At:       int64(at),
			Rate:     rate,
			Instance: instance,
		})
		if err != nil {
			return fmt.Errorf("encode the step: %w", err)
		}
		return s.post(ctx, address, agent.PathStep, body)
	})
}

// Refused reports whether a pod received a request and rejected it because of its state.
func Refused(err error) bool {
	return conflict(err)
}

// End ends the load at every pod as Stop does, but as its planned end: ledgers are read back. Stop
// ends that, too.
func (s *Session) End(ctx context.Context) error {
	return s.stop(ctx, "verify=true")
}

// Stop ends the load at every pod immediately. The recorded intervals can still be pulled, until
// Status reports Finished.
// The error names each pod that did not respond; call Stop again for those.
func (s *Session) Stop(ctx context.Context) error {
	return s.stop(ctx, "")
}

func (s *Session) stop(ctx context.Context, query string) error {
	return s.each(foreign, func(p *pod) error {
		err := s.call(ctx, http.MethodPost, s.addressOf(p), agent.PathStop, query, nil,
			func(*http.Response) error { return nil })
		s.mu.Lock()
		defer s.mu.Unlock()
		p.statusWanted = true
		wake(p.poke)
		return err
	})
}

// CleanUp has every pod that is not lost remove its part of the keys of the load, if the plan says
// so. Call it once Status reports Finished, again until it returns nil; the error names each pod
// that has not done so yet.
func (s *Session) CleanUp(ctx context.Context) error {
	return s.each(troubled, func(p *pod) error {
		return s.post(ctx, s.addressOf(p), agent.PathCleanup, nil)
	})
}

// Release stores the last checkpoint, and then allows every pod that is not lost to exit. It
// releases no pod if the checkpoint cannot be stored, nor pods with a Problem. The error names each
// pod that did not respond; call Release again for those. Call it once Status reports Finished, or
// to discard the remaining record.
func (s *Session) Release(ctx context.Context) error {
	if err := s.save(ctx); err != nil {
		return fmt.Errorf("collect: store the last checkpoint: %w", err)
	}
	err := s.each(troubled, func(p *pod) error {
		err := s.post(ctx, s.addressOf(p), agent.PathRelease, nil)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		p.released = true
		p.cancel()
		return nil
	})
	s.settle()
	return err
}

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
		s.record.merged(func(series *merged.Series) { series.Lose(index) })
		s.record.grown = true
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
	same := p.progress.over == (complete || p.gone) &&
		(!complete || p.progress.closed || !s.start.set)
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
		p.progress.over = complete || p.gone
		finished = finished && p.progress.over
		if s.start.set && complete && !p.progress.closed && !p.gone {
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
		p.progress.over = p.complete() || p.gone
		finished = finished && p.progress.over
		news = news || s.start.set && p.progress.over && !p.progress.closed
	}
	return news || finished != s.finished
}

// closePod ends the pod's part of the series. The caller holds record and mu.
func (s *Session) closePod(p *pod) {
	if p.last.State == agent.Failed {
		s.record.merged(func(series *merged.Series) { series.Lose(p.index) })
	} else {
		s.record.merged(func(series *merged.Series) { series.Finish(p.index) })
	}
	p.progress.closed, s.record.grown = true, true
}
