package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/agent"
)

const (
	// startMargin is how long before the start instant it is no longer sent: a pod that receives it
	// later could start late.
	startMargin = 100 * time.Millisecond
	// startRetry is the pause between two attempts for a pod.
	startRetry = 50 * time.Millisecond
)

// Start sends the start instant at, converted to the pod's clock, to all pods that are not lost,
// concurrently. It retries until the pod has accepted it or at is near. The error names each pod
// that did not accept it. A pod that already has a start instant keeps it, so Start may be called
// again with the same instant, also by another operator process after Resume. The caller must store
// the instant before.
func (s *Session) Start(ctx context.Context, at time.Time) error {
	s.compareClocks()
	s.record.Lock()
	s.mu.Lock()
	if !s.start.set {
		s.begin(at)
	}
	local, apart := s.start.local, at.Round(0).Sub(s.start.at.Round(0)).Abs()
	s.mu.Unlock()
	s.record.Unlock()
	if apart > time.Millisecond {
		return fmt.Errorf("collect: already started with another instant, which differs by %v", apart)
	}
	return s.each(never, func(p *pod) error { return s.startPod(ctx, p, local) })
}

// startPod sends the start instant to one pod.
func (s *Session) startPod(ctx context.Context, p *pod, local int64) error {
	var last error
	for {
		taken, address, request, err := s.startRequest(p, local)
		if taken {
			return nil
		}
		if time.Duration(local-s.now()) < startMargin {
			return errors.Join(errors.New("the start instant passed before the pod accepted it"), err, last)
		}
		if err == nil {
			tryCtx, cancel := context.WithTimeout(ctx, min(s.cfg.RequestTimeout, time.Second))
			err = s.postStart(tryCtx, address, request)
			cancel()
			s.startAnswered(p, request, err)
			if err == nil {
				return nil
			}
		}
		last = err
		select {
		case <-p.ctx.Done():
			return errors.Join(errors.New("lost or closed"), last)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		default:
		}
		if !pause(ctx, startRetry) {
			return errors.Join(ctx.Err(), last)
		}
	}
}

// startRequest reports whether a pod already has a start instant, or returns the request to send.
// The error is why none can be sent now.
func (s *Session) startRequest(
	p *pod, local int64,
) (taken bool, address string, request agent.StartRequest, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offset, _, ok := p.process.clock.Estimate(s.now())
	switch {
	case p.problem != "":
		return false, "", request, errors.New(p.problemText)
	case !ok || !p.process.clock.Settled():
		return false, "", request, errors.New(
			strings.TrimSuffix("its clock is not aligned yet; "+p.contact.err, "; "))
	case p.last.StartAt != 0:
		return true, "", request, nil
	case p.last.State.Ended():
		return false, "", request, fmt.Errorf("%s: %s %s", p.last.State, p.last.Reason, p.last.Message)
	case p.last.State != agent.Ready:
		return false, "", request, fmt.Errorf("is %s", p.last.State)
	}
	if p.process.sentAt == 0 {
		// Kept, so that a request whose response was lost is repeated with the same instant.
		p.process.sentAt = local + offset
	}
	return false, p.address, agent.StartRequest{At: p.process.sentAt, Instance: p.last.Instance}, nil
}

// startAnswered records the result of a start request.
func (s *Session) startAnswered(p *pod, request agent.StartRequest, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && p.last.Instance == request.Instance && p.last.StartAt == 0 {
		p.last.StartAt, p.last.State = request.At, agent.Running
		wake(s.changed)
	}
	p.statusWanted = true
	wake(p.poke)
}
