package controllers

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/sim"
)

type (
	write = sim.Write
	spy   = sim.Spy
)

var errDead = sim.ErrDead

// operator is one operator process with both reconcilers.
type operator struct {
	*sim.Life
	sessions *runs.Registry
	metrics  *metrics.Metrics
	end      func()

	lead, loseLeadership func() // start and end the manager of the process
	once                 sync.Once
}

// newOperator returns a process with a clock that does nothing yet.
func newOperator(now func() time.Time) *operator {
	o := &operator{Life: sim.NewLife(), sessions: runs.NewRegistry()}
	o.metrics = NewMetrics(now, o.sessions)
	return o
}

// stop ends the process.
func (o *operator) stop() { o.once.Do(o.end) }

func startOperator(p *place, s spy) *operator {
	p.t.Helper()
	o := p.operate(s)
	p.t.Cleanup(o.stop)
	return o
}

// keepRunning starts a new process whenever one has crashed, until the test ends, as a Deployment does.
func keepRunning(p *place, s func(o func() *operator) spy) *atomic.Int32 {
	var starts atomic.Int32
	var mu sync.Mutex
	var current *operator
	get := func() *operator {
		mu.Lock()
		defer mu.Unlock()
		return current
	}
	start := func() {
		starts.Add(1)
		mu.Lock() // held until current is set: the first write of the process may follow at once
		defer mu.Unlock()
		current = startOperator(p, s(get))
	}
	start()
	over := make(chan struct{})
	stopped := make(chan struct{})
	p.t.Cleanup(func() { close(over); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			case <-get().Died():
				get().stop()
				start()
			}
		}
	}()
	return &starts
}
