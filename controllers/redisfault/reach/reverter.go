package reach

import (
	"context"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
)

// ReverterOf returns the reverter of a recorded fault.
func (r *Reach) ReverterOf(ctx context.Context, f *v1alpha1.RedisFault) *faultrun.Reverter {
	return r.Term.Adopt(ctx, f, func() *faultrun.Means { return r.meansOf(f) })
}

// meansOf is by what a reverter of the fault acts while this manager leads.
func (r *Reach) meansOf(f *v1alpha1.RedisFault) *faultrun.Means {
	deps := r.DepsOf(f, scope.RedisOf(f, nil))
	var traits contract.Traits
	if injector, err := fault.For(&f.Spec, deps); err == nil {
		traits = injector.Traits()
	}
	spec := f.Spec.DeepCopy()
	build := func(ctx context.Context) (contract.Injector, error) {
		deps, missing := r.login(ctx, deps)
		injector, err := fault.For(spec, deps)
		if err != nil { // of a type that only another version of the operator supports
			injector, missing = fault.Unknown{Problem: err}, nil
		}
		return injector, missing
	}
	return &faultrun.Means{
		Traits:   traits,
		Live:     r.APIReader,
		Statuses: r.Client.Status(),
		Build:    build,
		Stops:    r.stopsOf(f),
	}
}
