//go:build integration

package fuzz

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	faults "github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/testing/stage"
)

// member draws the settings of the spec's type; optional ones are sometimes omitted.
func member(d stage.Draw, spec *v1alpha1.RedisFaultSpec) {
	if d.Yes() {
		spec.Duration = length(d, time.Second, 24*time.Hour)
	}
	spec.Deadline = length(d, time.Second, 336*time.Hour)
	if d.IntN(4) == 0 {
		spec.Allow = stage.Pick(d, []v1alpha1.Allowance{v1alpha1.AllowAllCopies},
			[]v1alpha1.Allowance{v1alpha1.AllowEviction, v1alpha1.AllowTooFewCores}, nil)
	}
	if faults.TraitsOf(spec).Empties && d.IntN(8) != 0 { // otherwise it is refused
		spec.Duration, spec.Allow = nil, []v1alpha1.Allowance{v1alpha1.AllowDataLoss}
	}
	if declared.IsExternal(spec) {
		external(d, spec)
	} else if wild := wildOf(spec.Action.Type); wild != nil {
		wild(d, &spec.Action)
	}
}

// wildOf draws the settings of a type; nil = it has none.
func wildOf(faultType v1alpha1.FaultType) func(stage.Draw, *v1alpha1.Action) {
	for _, kind := range stage.Kinds {
		if kind.Fault == faultType && kind.Wild != nil {
			return kind.Wild
		}
	}
	return nil
}

// external draws the settings of a fault that breaks nothing: it selects nothing and does not last, or else is refused.
func external(d stage.Draw, spec *v1alpha1.RedisFaultSpec) {
	spec.Action.External = stage.Maybe(d, v1alpha1.External{WaitFor: d.Value(time.Second, 24*time.Hour)})
	if d.IntN(8) != 0 {
		spec.Select, spec.Duration, spec.Allow = v1alpha1.FaultSelector{}, nil, nil
	}
}

// marks are annotations of a fault of type External, also of others.
func marks(d stage.Draw) map[string]string {
	return stage.Pick(d, nil, nil, map[string]string{
		v1alpha1.AnnotationMark: stage.Pick(d, "", "now", time.Now().Format(time.RFC3339Nano), "9999-12-31T23:59:59Z",
			"\x00 nonsense"),
	})
}

// recordOf is any record that a person or another version may have written of a target.
func recordOf(d stage.Draw, pod string) v1alpha1.FaultTarget {
	return v1alpha1.FaultTarget{
		Pod:             pod,
		UID:             "u",
		Node:            stage.Pick(d, "", "node-1"),
		RunID:           stage.Pick(d, "", "r"),
		Address:         stage.Pick(d, "", "127.0.0.1:1"),
		Role:            stage.Pick(d, "", v1alpha1.RolePrimary, v1alpha1.RoleReplica),
		IntendedAt:      instant(d),
		InjectedAt:      instant(d),
		ActiveAt:        instant(d),
		RevertedAt:      instant(d),
		LastError:       stage.Pick(d, "", "x"),
		RevertError:     stage.Pick(d, "", "y"),
		Progress:        stage.Pick(d, "", "1 of 3"),
		RevertAbandoned: d.IntN(4) == 0,
		Revert: stage.Pick(d, nil, &v1alpha1.RevertRecord{Version: 1, Data: `{"old":{"appendfsync":"no"}}`},
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
