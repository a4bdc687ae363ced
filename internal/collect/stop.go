package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/agent"
)

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
