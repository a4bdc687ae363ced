package faultrun

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// renewed is a fault that has to be renewed every 2 s.
type renewed struct {
	*reverttest.Reverts
	takes time.Duration

	mu    sync.Mutex
	calls []time.Time
	under int  // that are under way
	late  bool // one was under way during a revert
}

func newRenewed(takes time.Duration) *renewed {
	return &renewed{
		Reverts: &reverttest.Reverts{
			Answers: []reverttest.Answer{reverttest.Done},
			Of:      contract.Traits{Lasts: time.Minute, Renews: 2 * time.Second},
		},
		takes: takes,
	}
}

func (r *renewed) Renew(ctx context.Context, _ *v1alpha1.FaultTarget) error {
	r.mu.Lock()
	r.calls = append(r.calls, time.Now())
	r.under++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.under--
		r.mu.Unlock()
	}()
	timer, stop := context.WithTimeout(ctx, r.takes)
	defer stop()
	<-timer.Done()
	return ctx.Err()
}

func (r *renewed) Revert(ctx context.Context, t *v1alpha1.FaultTarget) (contract.Progress, error) {
	r.mu.Lock()
	r.late = r.late || r.under > 0
	r.mu.Unlock()
	return r.Reverts.Revert(ctx, t)
}

func (r *renewed) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// A fault that would end by itself is renewed from the first moment of a process that leads until its revert begins,
// and by no process that does not lead.
func TestRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := newRenewed(0)
		v := adopted(t.Context(), t, reverttest.ActiveFault(t, "redis-0"), nil, injector)
		time.Sleep(11 * time.Second) // in the middle between two
		if n := injector.count(); n != 0 {
			t.Errorf("renewed %d times by a process that does not lead", n)
		}
		term := v.session.registry.NewTerm()
		term.Lead()
		time.Sleep(10 * time.Second)
		if n := injector.count(); n != 5 {
			t.Errorf("renewed %d times in 10 s, want 5", n)
		}
		v.by.Load().term.Close()
		term.Close() // its lease is lost
		time.Sleep(10 * time.Second)
		if n := injector.count(); n != 5 {
			t.Errorf("renewed %d times after its lease was lost", n-5)
		}
		term = v.session.registry.NewTerm()
		term.Lead() // and won again
		time.Sleep(10 * time.Second)
		if n := injector.count(); n != 10 {
			t.Errorf("renewed %d times in 10 s after the lease was won again, want 5", n-5)
		}
		v.Ask()
		time.Sleep(10 * time.Second)
		if n := injector.count(); n != 10 || len(injector.Calls()) != 1 {
			t.Errorf("renewed %d times after the end, reverted %d times", n-10, len(injector.Calls()))
		}
	})
}

// A revert waits for a renewal that is under way, which ends then: it would undo the revert. One that hangs does not hold
// up those that follow.
func TestRevertWaitsForRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := newRenewed(time.Hour)
		v := adopted(t.Context(), t, reverttest.ActiveFault(t, "redis-0"), nil, injector)
		v.session.registry.NewTerm().Lead()
		time.Sleep(20 * time.Second)
		if n := injector.count(); n < 4 {
			t.Errorf("one that hangs holds up the others: %d renewals in 20 s", n)
		}
		v.Ask()
		time.Sleep(time.Second)
		if p, _ := v.Progress(); injector.late || p.revertedAt == nil {
			t.Errorf("a renewal was under way during the revert: %t; reverted %v", injector.late, p.revertedAt)
		}
	})
}
