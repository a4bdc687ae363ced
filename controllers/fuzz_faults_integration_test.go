//go:build integration

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
)

// member draws the settings of the spec's type; optional ones are sometimes omitted.
func (d draw) member(spec *v1alpha1.RedisFaultSpec) {
	if d.yes() {
		spec.Duration = d.length(time.Second, 24*time.Hour)
	}
	spec.Deadline = d.length(time.Second, 336*time.Hour)
	if d.IntN(4) == 0 {
		spec.Allow = pick(d, []v1alpha1.Allowance{v1alpha1.AllowAllCopies},
			[]v1alpha1.Allowance{v1alpha1.AllowEviction, v1alpha1.AllowTooFewCores}, nil)
	}
	if declared.IsExternal(spec) {
		d.external(spec)
	} else if wild := wildOf(spec.Action.Type); wild != nil {
		wild(d, &spec.Action)
	}
}

// wildOf draws the settings of a type; nil = it has none.
func wildOf(faultType v1alpha1.FaultType) func(draw, *v1alpha1.Action) {
	for _, kind := range crashKinds {
		if kind.fault == faultType && kind.wild != nil {
			return kind.wild
		}
	}
	return nil
}

// external draws the settings of a fault that breaks nothing: it selects nothing and does not last, or else is refused.
func (d draw) external(spec *v1alpha1.RedisFaultSpec) {
	spec.Action.External = maybe(d, v1alpha1.External{WaitFor: d.value(time.Second, 24*time.Hour)})
	if d.IntN(8) != 0 {
		spec.Select, spec.Duration, spec.Allow = v1alpha1.FaultSelector{}, nil, nil
	}
}

// marks are annotations of a fault of type External, also of others.
func (d draw) marks() map[string]string {
	return pick(d, nil, nil, map[string]string{
		v1alpha1.AnnotationMark: pick(d, "", "now", time.Now().Format(time.RFC3339Nano), "9999-12-31T23:59:59Z",
			"\x00 nonsense"),
	})
}

func (d draw) quantity(values ...string) *resource.Quantity {
	if d.yes() {
		return nil
	}
	return new(resource.MustParse(pick(d, values...)))
}

// record is any record that a person or another version may have written of a target.
func (d draw) record(pod string) v1alpha1.FaultTarget {
	return v1alpha1.FaultTarget{
		Pod:             pod,
		UID:             "u",
		Node:            pick(d, "", "node-1"),
		RunID:           pick(d, "", "r"),
		Address:         pick(d, "", "127.0.0.1:1"),
		Role:            pick(d, "", v1alpha1.RolePrimary, v1alpha1.RoleReplica),
		IntendedAt:      d.instant(),
		InjectedAt:      d.instant(),
		ActiveAt:        d.instant(),
		RevertedAt:      d.instant(),
		LastError:       pick(d, "", "x"),
		RevertError:     pick(d, "", "y"),
		Progress:        pick(d, "", "1 of 3"),
		RevertAbandoned: d.IntN(4) == 0,
		Revert: pick(d, nil, &v1alpha1.RevertRecord{Version: 1, Data: `{"old":{"appendfsync":"no"}}`},
			&v1alpha1.RevertRecord{Version: 1, Data: "{nonsense"},
			&v1alpha1.RevertRecord{Version: 7, Data: `{"replicas":"many"}`}),
	}
}

// faultTypes are the types that need no Chaos Mesh.
var faultTypes = func() []v1alpha1.FaultType {
	var types []v1alpha1.FaultType
	for _, kind := range declared.All {
		if kind.Engine == v1alpha1.EngineNative {
			types = append(types, kind.Type)
		}
	}
	return types
}()
