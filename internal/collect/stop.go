package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/redquake/redquake/internal/agent"
)

// Step sends every pod that is not lost a new rate from at on, counted from the start; rate 0 ends
// the load at at. The error names each pod that did not accept it; Refused reports whether a pod
// rejected it.
func (s *Session) Step(ctx context.Context, at time.Duration, rate float64) error {
	return s.each(troubled, func(p *pod) error {
		s.mu.Lock()
		address, instance := p.address, p.last.Instance
		s.mu.Unlock()
		body, err := json.Marshal(agent.StepRequest{At: int64(at), Rate: rate, Instance: instance})
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

// Release stores the last checkpoint, and then allows every pod that is not lost to exit. It
// releases no pod if the checkpoint cannot be stored, nor pods with a Problem. The error names each
// pod that did not respond; call Release again for those. Call it once Status reports Finished, or
// to discard the remaining record.
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
