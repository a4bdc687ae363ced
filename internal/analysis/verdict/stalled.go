package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// Limits of GeneratorStalled for a load without objectives.
const (
	stalledFor   = 20 * time.Millisecond // of the 99th percentile
	stalledShare = 0.5                   // of it, and of the throughput
)

// stalled returns a doubt if it depends on stalls of the load generator, or on its waiting for a
// CPU, whether an objective is met; without objectives, if they may be most of the latency, or have
// cost half of the throughput and more; and if they cost a tenth of the throughput of a closed
// loop, as all its figures are those of a smaller load then. An objective that is missed in any
// case stays so, but for that throughput: Redis may have had to wait for a CPU more often, too, as
// it went to sleep whenever the load generator waited.
func stalled(r *result.Load, judged *result.Operation) *impact.Doubt {
	s := judged.Stalled
	if s == nil {
		return nil
	}
	starved := r.Starved()
	undecided, missed := openObjectives(r, starved != "")
	if missed {
		return nil
	}
	if starved != "" {
		return &impact.Doubt{
			Reason:  impact.GeneratorStarved,
			Message: strings.Join(append([]string{starved}, undecided...), ", ") + ". " + lessBusy,
		}
	}
	if len(r.Objectives) == 0 && (r.Bottleneck != nil && r.Bottleneck.Stalled || s.Starved()) {
		undecided = uncertain(judged)
	}
	if len(undecided) == 0 {
		return nil
	}
	reason := impact.GeneratorStalled
	if s.MostlyWaited() {
		reason = impact.GeneratorStarved
	}
	return &impact.Doubt{
		Reason: reason,
		Message: fmt.Sprintf("%s: it sent late, or not at all, what was due then: %s. %s", s,
			strings.Join(undecided, ", "), lessBusy),
	}
}

// openObjectives returns why objectives are undecided, and whether one is missed in any case: that
// of throughput is not if the load generator was starved.
func openObjectives(r *result.Load, starved bool) (undecided []string, missed bool) {
	for _, o := range r.Objectives {
		switch {
		case o.Met != nil && !*o.Met:
			missed = missed || !starved || o.Name != minThroughput
		case o.Met == nil && o.AtLeast != nil && o.Unit != result.UnitCount:
			undecided = append(undecided, o.Message)
		}
	}
	return undecided, missed
}

// lessBusy is what helps a load generator that does not get a CPU.
const lessBusy = "Use a second load pod on another node, a higher CPU limit, or a machine that is less busy"

// uncertain lists the figures of a load without objectives that stalls make so uncertain that they
// say little.
func uncertain(judged *result.Operation) (list []string) {
	s := judged.Stalled
	if p99 := judged.Latency; p99 != nil && s.Latency != nil {
		atLeast, value := time.Duration(s.Latency.P99), time.Duration(p99.P99)
		if apart := value - atLeast; apart > max(stalledFor, time.Duration(stalledShare*float64(value))) {
			list = append(list, fmt.Sprintf("the p99 is between %s and %s", format.Duration(atLeast),
				format.Duration(value)))
		}
	}
	if judged.Throughput < stalledShare*s.Throughput {
		list = append(list, fmt.Sprintf("the throughput is between %s/s and %s/s",
			format.Rate(judged.Throughput), format.Rate(s.Throughput)))
	}
	return list
}
