package workload

import (
	"errors"

	"github.com/redquake/redquake/internal/plan"
)

// New creates a workload over the engine's connections to Redis. The plan's workload must have no
// Problem.
func New(w *plan.Workload) (Redis, error) {
	if problem := w.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	switch {
	case len(w.Commands) > 0:
		return newCommands(w)
	case w.Benchmark != nil:
		return newBenchmark(w)
	case w.Ranking != nil:
		return newRanking(w), nil
	case w.RateLimiter != nil:
		return newRateLimiter(w)
	}
	return nil, errors.New("the workload is remote: use NewRemote")
}

// NewRemote creates a workload that does not use the engine's connections. The plan's workload must
// have no Problem.
func NewRemote(w *plan.Workload, o RemoteOptions) (Remote, error) {
	if problem := w.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	switch {
	case w.CacheAside != nil:
		return newCacheAside(w, o)
	case w.HTTP != nil:
		return newHTTP(w, o), nil
	}
	return nil, errors.New("the workload is not remote: use New")
}

// Described returns the operations and tallies of a workload, without creating requests or callers.
// The plan's workload must have no Problem.
func Described(w *plan.Workload) (Workload, error) {
	if problem := w.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	m := mixOf(w)
	return &m, nil
}
