package faulttest

import (
	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Aimed makes a fault's injector and records, as the controller does.
func (w *World) Aimed(
	kinds contract.Kinds, choose Chooser, spec *v1alpha1.RedisFaultSpec,
) (contract.Injector, []v1alpha1.FaultTarget) {
	w.T.Helper()
	deps := w.Of("lose")
	injector, err := kinds.For(spec, deps)
	if err != nil {
		w.T.Fatal(err)
	}
	found, err := choose(w.T.Context(), On(deps, ByPods(map[string]string{"app": "redis"})).Redis, spec, injector.Traits())
	if err != nil {
		w.T.Fatal(err)
	}
	for i := range found {
		err := injector.Preflight(w.T.Context(), &found[i])
		if err != nil {
			w.T.Fatal(err)
		}
	}
	return injector, found
}
