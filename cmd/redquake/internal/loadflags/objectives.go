package loadflags

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// applyObjectives overrides the objectives with the flags of the same names.
func (f *Flags) applyObjectives(spec *v1alpha1.RedisLoadTestSpec) {
	objectives := &v1alpha1.Objectives{}
	if spec.Objectives != nil {
		objectives = spec.Objectives
	}
	limits := map[string]func(){
		"min-throughput":   func() { objectives.MinThroughput = &f.minThroughput },
		"max-latency-p50":  func() { objectives.MaxLatencyP50 = limit(f.maxP50) },
		"max-latency-p99":  func() { objectives.MaxLatencyP99 = limit(f.maxP99) },
		"max-latency-p999": func() { objectives.MaxLatencyP999 = limit(f.maxP999) },
		"max-error-rate":   func() { objectives.MaxErrorRate = &f.maxErrorRate },
		"max-lost-writes":  func() { objectives.MaxLostWrites = &f.maxLostWrites },
	}
	for name, set := range limits {
		if f.changed(name) {
			set()
			spec.Objectives = objectives
		}
	}
}

func limit(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d}
}
