package bottleneck

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	used "github.com/redquake/redquake/internal/analysis/usage"
	"github.com/redquake/redquake/internal/record"
)

// heldCores is the usage up to which a container without a CPU limit, and above saturated cores,
// counts as a program of one thread that uses its whole core. Above it the program has several
// threads, and nothing tells how many cores it could use.
const heldCores = 1.1

// observed is the sum of the readings of one container of an observed pod in the steady part.
type observed struct {
	name, pod, container string
	cpu                  float64       // core-seconds
	window               time.Duration // of all readings
	most                 record.PodUse // the busiest reading
}

func (o *observed) mean() float64 {
	return o.cpu / o.window.Seconds()
}

// share returns the highest usage as a share of what the container can use; 0 = that is unknown.
func (o *observed) share() float64 {
	switch {
	case o.most.CPULimit > 0:
		return o.most.MaxCPU / o.most.CPULimit
	case o.most.MaxCPU <= heldCores:
		return o.most.MaxCPU
	}
	return 0
}

// busier compares two readings of a container, whose limit may change: one with a limit says more
// than one without.
func busier(a, b *record.PodUse) bool {
	switch {
	case (a.CPULimit > 0) != (b.CPULimit > 0):
		return a.CPULimit > 0
	case a.CPULimit > 0:
		return a.MaxCPU/a.CPULimit > b.MaxCPU/b.CPULimit
	}
	return a.MaxCPU > b.MaxCPU
}

// pods sums the readings of observed pods. They are about 15 s each, so that a reading is a stretch
// for which a component may be at its limit.
func (e *evidence) pods(steady []summary.Window) {
	for _, u := range e.in.Series.PodUses() {
		if u.Window <= 0 ||
			!slices.ContainsFunc(steady, func(w summary.Window) bool {
				return used.InWindow(&u, w.From,
					w.To)
			}) {
			continue
		}
		i := slices.IndexFunc(e.observed, func(o *observed) bool {
			return o.name == u.Name &&
				o.pod == u.Pod && o.container == u.Container
		})
		if i < 0 {
			i = len(e.observed)
			e.observed = append(e.observed, &observed{
				name:      u.Name,
				pod:       u.Pod,
				container: u.Container,
			})
		}
		e.observed[i].add(&u)
	}
}

func (o *observed) add(u *record.PodUse) {
	window := time.Duration(u.Window)
	o.cpu += u.CPU * window.Seconds()
	o.window += window
	if busier(u, &o.most) {
		o.most = *u
	}
}

// exhausted returns the observed container with the highest share; nil = none is at its limit.
// Without a backend the load does not pass through the observed pods, so that their CPU does not
// limit it.
func (e *evidence) exhausted() *observed {
	if e.in.Backend == "" {
		return nil
	}
	var worst *observed
	for _, o := range e.observed {
		if o.share() >= saturated && (worst == nil || o.share() > worst.share()) {
			worst = o
		}
	}
	return worst
}

// application returns the evidence that the CPU of an observed pod was exhausted.
func (e *evidence) application() string {
	o := e.exhausted()
	if o == nil {
		return ""
	}
	of := "one core, which it does not exceed, and it has no CPU limit"
	ceiling := 1.0
	if limit := o.most.CPULimit; limit > 0 {
		of, ceiling = "its limit of "+cores(limit), limit
	}
	most, mean := percent(o.share()), percent(o.mean()/ceiling)
	text := fmt.Sprintf("%s: container %s of pod %s used %s of CPU, %s of %s", o.name, o.container,
		o.pod, cores(o.most.MaxCPU), most, of)
	if most != mean {
		text += fmt.Sprintf(", over its busiest %.0fs, %s on average",
			time.Duration(o.most.Window).Seconds(), mean)
	}
	return text
}

// observedUse returns the usage of the busiest observed container, for the evidence of other
// findings; "" = none was observed.
func (e *evidence) observedUse() string {
	if len(e.observed) == 0 {
		return ""
	}
	o := slices.MaxFunc(e.observed, func(a, b *observed) int {
		return cmp.Or(cmp.Compare(a.share(), b.share()), cmp.Compare(a.most.MaxCPU, b.most.MaxCPU))
	})
	if o.most.CPULimit > 0 {
		return fmt.Sprintf("; of the observed pods, %s used at most %s of its CPU limit", o.name,
			percent(o.share()))
	}
	return fmt.Sprintf("; of the observed pods, %s used at most %s of CPU, without a limit", o.name,
		cores(o.most.MaxCPU))
}
