package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
)

// settlePod is settle after something was learned of one pod: mostly nothing that settle would have to look at all the others for.
func (s *Session) settlePod(p *pod) {
	s.mu.Lock()
	complete := p.complete()
	same := p.over == (complete || p.gone) && (!complete || p.closed || !s.begun)
	s.mu.Unlock()
	if !same {
		s.settle()
	}
}

// Step tells every pod that is not lost the rate from at on, counted from the start; rate 0 ends the load then. The error names each pod that did
// not take it; Refused says whether one never will.
func (s *Session) Step(ctx context.Context, at time.Duration, rate float64) error {
	return s.each(troubled, func(p *pod) error {
		s.mu.Lock()
		address, instance := p.address, p.last.Instance
		s.mu.Unlock()
		body, err := json.Marshal(agent.StepRequest{At: int64(at), Rate: rate, Instance: instance})
		if err != nil {
			return err
		}
		return s.post(ctx, address, agent.PathStep, body)
	})
}

// Refused says that a pod was reached and does not take what it was told, as things stand.
func Refused(err error) bool { return conflict(err) }

// Stop ends the load at every pod now; what was measured can still be pulled, and Finished will say when it was.
// The error names each pod that did not answer; call it again for those.
func (s *Session) Stop(ctx context.Context) error {
	return s.each(foreign, func(p *pod) error {
		err := s.post(ctx, s.addressOf(p), agent.PathStop, nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.statusWanted = true
		wake(p.poke)
		return err
	})
}

// Release stores the last checkpoint, and then lets every pod that is not lost exit. Nothing is released if the checkpoint cannot be
// stored. A pod with a Problem is left alone. The error names each pod that did not answer; call it again for those. Call it once Status says Finished, or to give up.
func (s *Session) Release(ctx context.Context) error {
	if err := s.save(ctx); err != nil {
		return fmt.Errorf("collect: store the last checkpoint: %w", err)
	}
	err := s.each(troubled, func(p *pod) error {
		if err := s.post(ctx, s.addressOf(p), agent.PathRelease, nil); err != nil {
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

// settle tells the series which pods have ended and were pulled entirely, and notes when all have.
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
		wake(s.saveNow)
	}
	s.finished = finished
	wake(s.changed)
}

// unsettled says whether settle has anything to do, without the record's lock.
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
		s.merged(func(series *record.Series) { series.Lose(p.index) })
	} else {
		s.merged(func(series *record.Series) { series.Finish(p.index) })
	}
	p.closed, s.grown = true, true
}

func (s *Session) addressOf(p *pod) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.address
}

// foreign says that the agent at the address is none of ours.
func foreign(p *pod) bool { return p.problem == WrongAgent }

// troubled says that there is nothing to release: what answers is not what was started.
func troubled(p *pod) bool { return p.problem != "" }
