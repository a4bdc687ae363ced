package impact

import (
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Anomaly is a dip of the throughput outside of all faults.
type Anomaly struct {
	At      time.Duration // its begin, from the start of the run, to the second
	Length  time.Duration // whole seconds, at least 2
	MinRate float64       // successes/s in its lowest second
	Usual   float64       // successes/s: the running median before the dip
	Depth   float64       // 1 - MinRate/Usual, in [0, 1]
}

const (
	anomalyShare  = 0.70 // of the running median
	anomalyLength = 2    // seconds
	anomalyMemory = 30   // seconds of the running median
	anomalyLearn  = 5    // seconds of the running median before any dip counts
)

// Anomalies returns the stretches from measuredFrom on and outside exclude in which the 1 s success rate is below 70 % of the running median for 2 s or
// more. The seconds lie side by side from measuredFrom; the running median is that of the up to 30 such seconds before, dips included, so that a new level
// that lasts becomes the usual one. Where not all pods took part, rates are scaled to all of them: a lost pod is no dip of Redis.
// exclude are the faults, each from its injection to its recovery.
func Anomalies(s *record.Series, measuredFrom time.Duration, exclude []Window) []Anomaly {
	c := newCurve(s)
	var found []Anomaly
	var memory []float64
	var dip *Anomaly
	end := func() {
		if dip != nil && dip.Length >= anomalyLength*c.width() {
			found = append(found, *dip)
		}
		dip = nil
	}
	for i := c.ceil(measuredFrom); i+c.wide <= c.n; i += c.wide {
		pods := s.At(i).Pods
		for k := i; k < i+c.wide; k++ {
			pods = min(pods, s.At(k).Pods)
		}
		if pods == 0 || overlaps(exclude, Window{c.at(i), c.at(i + c.wide)}) {
			end()
			continue
		}
		rate := c.windowRate(i) * float64(s.Pods) / float64(pods)
		usual := median(memory)
		if dip != nil {
			usual = dip.Usual
		}
		if len(memory) >= anomalyLearn && rate < anomalyShare*usual {
			if dip == nil {
				dip = &Anomaly{At: c.at(i), MinRate: rate, Usual: usual}
			}
			dip.Length += c.width()
			dip.MinRate = min(dip.MinRate, rate)
			dip.Depth = 1 - dip.MinRate/dip.Usual
			// A level that lasts as long as the memory is the new usual one.
			if dip.Length >= anomalyMemory*second {
				end()
			}
		} else {
			end()
		}
		if memory = append(memory, rate); len(memory) > anomalyMemory {
			memory = memory[1:]
		}
	}
	end()
	return found
}

func overlaps(list []Window, w Window) bool {
	for _, e := range list {
		if e.From < w.To && w.From < e.To {
			return true
		}
	}
	return false
}
