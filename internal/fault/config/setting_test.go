package config

import (
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// injected is a fault that was injected on the only server.
func injected(t *testing.T, w *faulttest.World, server *modifiable, spec *v1alpha1.RedisFaultSpec) *faulttest.Case {
	t.Helper()
	server.at(w)
	injector, err := Kinds.For(spec, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	c := &faulttest.Case{
		World:    w,
		Injector: injector,
		Target:   &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", RunID: "run-u0", Address: "10.0.0.1:6379"},
	}
	if err := injector.Preflight(t.Context(), c.Target); err != nil {
		t.Fatal(err)
	}
	c.Inject()
	return c
}

// A setting is injected before its load: nothing makes the threads work yet.
func TestIOThreadsOfASetting(t *testing.T) {
	for _, count := range []int32{1, 4} {
		w := faulttest.NewWorld(t)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		spec := threadsFault(count, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
		spec.Setting = true
		server := &modifiable{values: map[string]string{"io-threads": "1"}}
		c := injected(t, w, server, spec)
		c.Effect(v1alpha1.EffectConfirmed, "the server 0 commands")
		server.values["io-threads"] = "2"
		c.Effect(v1alpha1.EffectNotObserved, "still 2")
	}
}

// A replaced pod that has the value by its configuration serves the load with it; one that has not has lost the
// setting.
func TestConfigOfASettingInAReplacedPod(t *testing.T) {
	for value, want := range map[string]v1alpha1.Effect{"10": v1alpha1.EffectConfirmed, "50": v1alpha1.EffectNotObserved} {
		for _, setting := range []bool{true, false} {
			w := faulttest.NewWorld(t)
			pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
			server := &modifiable{values: map[string]string{"hz": "10"}}
			c := injected(t, w, server, &v1alpha1.RedisFaultSpec{Setting: setting, Action: v1alpha1.Action{
				Type:   v1alpha1.FaultConfig,
				Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": v1alpha1.ParameterValue(value)}},
			}})
			c.Effect(v1alpha1.EffectConfirmed, "hz "+value)
			server.values["hz"] = "10"
			w.Replace(pod, "u1")
			if setting {
				c.Effect(want, "the pod was replaced: CONFIG GET shows hz 10")
			} else {
				c.Effect(v1alpha1.EffectNotObserved, "does not exist any more")
			}
			if progress, err := c.Injector.Revert(t.Context(), c.Target); err != nil || progress != (contract.Progress{}) {
				t.Errorf("revert: %+v, %v", progress, err)
			}
		}
	}
}
