package operatortest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/sim"
)

type (
	// Write is one write of an operator to the API server.
	Write = sim.Write
	// Spy is called for every write of an operator.
	Spy = sim.Spy
)

// ErrDead is the error of the calls of a process that has crashed.
var ErrDead = sim.ErrDead

// Operator is one operator process with both reconcilers.
type Operator struct {
	*sim.Life
	Sessions *runs.Registry
	Metrics  *metrics.Metrics
	End      func()

	Lead, LoseLeadership func() // start and end the manager of the process
	once                 sync.Once
}

// NewOperator returns a process with a clock that does nothing yet.
func NewOperator(now func() time.Time) *Operator {
	o := &Operator{Life: sim.NewLife(), Sessions: runs.NewRegistry()}
	o.Metrics = controllers.NewMetrics(now, o.Sessions)
	return o
}

// Stop ends the process.
func (o *Operator) Stop() {
	o.once.Do(o.End)
}

// StartOperator starts an operator, which ends with the test.
func StartOperator(p *Place, s Spy) *Operator {
	p.T.Helper()
	o := p.Operate(s)
	p.T.Cleanup(o.Stop)
	return o
}

// KeepRunning starts a new process whenever one has crashed, until the test ends, as a Deployment
// does.
func KeepRunning(p *Place, s func(o func() *Operator) Spy) *atomic.Int32 {
	var starts atomic.Int32
	var mu sync.Mutex
	var current *Operator
	get := func() *Operator {
		mu.Lock()
		defer mu.Unlock()
		return current
	}
	start := func() {
		starts.Add(1)
		mu.Lock() // held until current is set: the first write of the process may follow at once
		defer mu.Unlock()
		current = StartOperator(p, s(get))
	}
	start()
	over := make(chan struct{})
	stopped := make(chan struct{})
	p.T.Cleanup(func() { close(over); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			case <-get().Died():
				get().Stop()
				start()
			}
		}
	}()
	return &starts
}
