package loadflags

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/plan"
)

// draws are the flags of how requests are drawn, and of the probe beside them.
type draws struct {
	seed              int64
	distribution      string
	exponent          string
	centre, deviation string
	ttl               time.Duration
	prefill           bool
	cleanup           bool
	scattered         bool
	ratePer           v1alpha1.RateUnit
	arrivals          string
	probeRate         int32
	probeOperation    string
}

func (f *Flags) registerDraws(flags *pflag.FlagSet) {
	flags.DurationVar(&f.ttl, "ttl", 0,
		"`time` after which keys that --prefill and SET {key} write expire; 0 = never")
	flags.BoolVar(&f.cleanup, "cleanup", false,
		"remove the keys that the load can have created after it, at no more than 50,000 per second")
	flags.StringVar(&f.distribution, "distribution", "Uniform",
		"`way` in which keys are drawn: Uniform, Zipf, Gaussian or Sequential")
	flags.StringVar(&f.exponent, "zipf-exponent", "1.1",
		"`number` of Zipf, 0.01 to 10: the higher, the more requests go to the hottest keys; YCSB uses 0.99")
	flags.StringVar(&f.centre, "gaussian-centre", "50%",
		"`share` of the keys below the most frequent one of Gaussian")
	flags.StringVar(&f.deviation, "gaussian-deviation", "",
		"`share` of the keys that is the standard deviation of Gaussian (default a sixth)")
	flags.BoolVar(&f.scattered, "scattered", false,
		"spread hot keys over the key numbers, instead of having them as neighbours")
	flags.Int64Var(&f.seed, "seed", 0,
		"`number` that repeats the random draws of another run (default: another one each time)")
}

func (f *Flags) registerProbe(flags *pflag.FlagSet) {
	flags.Int32Var(&f.probeRate, "probe-rate", 100,
		"`number` of probes per second, of each shard, over connections of their own, which measure outages;\n"+
			"they SET the key rq:probe:0, or GET it if the load only reads; 0 = no probe")
	flags.StringVar(&f.probeOperation, "probe-operation", "Auto",
		"`operation` of the probe: Write, Read, or Auto: Read if the load only reads")
}

func (f *Flags) applyDraws(workload *v1alpha1.Workload) {
	f.applySeed(workload)
	keys := &workload.Keyspace
	if f.changed("distribution") {
		keys.Distribution = v1alpha1.KeyDistribution(f.distribution)
		keys.Zipf, keys.Gaussian = nil, nil // those of another one of the file
	}
	if f.changed("zipf-exponent") {
		keys.Zipf = &v1alpha1.ZipfKeys{Exponent: f.exponent}
	}
	if f.changed("gaussian-centre") || f.changed("gaussian-deviation") {
		if keys.Gaussian == nil {
			keys.Gaussian = &v1alpha1.GaussianKeys{}
		}
		if f.changed("gaussian-centre") {
			keys.Gaussian.Centre = f.centre
		}
		if f.changed("gaussian-deviation") {
			keys.Gaussian.Deviation = f.deviation
		}
	}
	if f.changed("scattered") {
		keys.Scattered = f.scattered
	}
	if f.changed("ttl") {
		keys.TTL = &metav1.Duration{Duration: f.ttl}
		if f.ttl == 0 {
			keys.TTL = nil
		}
	}
	if f.changed("cleanup") {
		keys.Cleanup = v1alpha1.CleanupKeep
		if f.cleanup {
			keys.Cleanup = v1alpha1.CleanupDelete
		}
	}
}

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

// unwritten says that most requests read keys which nothing has written.
func unwritten(w *plan.Workload) (notes []string) {
	if share := w.ReadsUnwritten(); share > 0 {
		notes = append(notes, fmt.Sprintf(
			"%.3g%% of the requests read keys that nothing had written before this load, unless they were there: "+
				"set --prefill", 100*share))
	}
	return notes
}
