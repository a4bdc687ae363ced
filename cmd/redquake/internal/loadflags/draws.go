package loadflags

import (
	"math/rand/v2"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
)

// applySeed sets the seed of the random draws: that of the flag, of the file, or one of this
// process.
func (f *Flags) applySeed(workload *v1alpha1.Workload) {
	switch {
	case f.changed("seed"):
		workload.Seed = &f.seed
	case workload.Seed == nil:
		workload.Seed = new(1 + rand.Int64N(children.MaxSeed))
	}
}

func (f *Flags) applyProbe(probe *v1alpha1.LoadProbe) {
	if f.changed("probe-rate") {
		probe.Rate = &f.probeRate
	}
	if f.changed("probe-operation") {
		probe.Operation = v1alpha1.ProbeOperation(f.probeOperation)
	}
}
