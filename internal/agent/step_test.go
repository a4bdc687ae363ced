package agent_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// steppable is a scripted load whose rate can be changed.
type steppable struct {
	*agenttest.Runner
	mu    sync.Mutex
	taken []agent.StepRequest
}

func (s *steppable) Step(at time.Duration, rate float64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rate == 666 {
		return errors.New("the step at 1s is in the past")
	}
	s.taken = append(s.taken, agent.StepRequest{At: int64(at), Rate: rate})
	return nil
}

func TestStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := &steppable{Runner: &agenttest.Runner{Intervals: 400}}
		w := serve(t, load.Runner, func(c *agent.Config) { c.Runner = load })
		want := func(what string, code int, body string) {
			t.Helper()
			if got, text, _ := w.do(http.MethodPost, agent.PathStep, body); got != code {
				t.Errorf("%s: answered %d %s, want %d", what, got, text, code)
			}
		}
		w.until(agent.Ready)
		want("before the start", http.StatusConflict, `{"at": 1000, "rate": 5}`)
		w.start()
		want("running", http.StatusNoContent, `{"at": 1000, "rate": 5}`)
		want("what the load refuses", http.StatusConflict, `{"at": 1000, "rate": 666}`)
		want("another process", http.StatusConflict, `{"at": 1000, "rate": 5, "instance": "x"}`)
		want("no instant", http.StatusBadRequest, `{"rate": 5}`)
		want("a negative rate", http.StatusBadRequest, `{"at": 1000, "rate": -5}`)
		want("an unknown field", http.StatusBadRequest, `{"at": 1000, "rate": 5, "x": 1}`)
		w.until(agent.Finished)
		want("a rate after the end", http.StatusConflict, `{"at": 1000, "rate": 5}`)
		want("the end after the end", http.StatusNoContent, `{"at": 1000, "rate": 0}`)
		load.mu.Lock()
		defer load.mu.Unlock()
		if len(load.taken) != 1 || load.taken[0].At != 1000 || load.taken[0].Rate != 5 {
			t.Errorf("the load has %+v, want the one step", load.taken)
		}
	})
}

func TestStepNeedsALoadThatCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{Intervals: 20}, nil)
		w.until(agent.Ready)
		w.start()
		if got, _, _ := w.do(http.MethodPost, agent.PathStep, `{"at": 1000, "rate": 5}`); got != http.StatusConflict {
			t.Errorf("answered %d", got)
		}
	})
}
