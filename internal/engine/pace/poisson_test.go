package pace

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// randomly is the plan of a shape with Poisson arrivals.
func randomly(s plan.Shape, pods int, seed uint64) *plan.Plan {
	s.Arrivals = plan.Poisson
	p := planOf(s, pods)
	p.Workload.Seed = seed
	return p
}

// arrivalsOf are the due times of all pods in order.
func arrivalsOf(p *plan.Plan) (due []int64) {
	for pod := range p.Pods {
		pacer := NewPacer(p, pod)
		for i := int64(0); pacer.Due(i) != math.MaxInt64; i++ {
			due = append(due, pacer.Due(i))
		}
	}
	slices.Sort(due)
	return due
}

// kolmogorov is the greatest distance between the distribution of samples and a continuous one, times the root of
// their number: above 1.63 in one of a hundred cases by chance.
func kolmogorov(samples []float64, below func(float64) float64) float64 {
	slices.Sort(samples)
	n, d := float64(len(samples)), 0.0
	for i, x := range samples {
		d = max(d, below(x)-float64(i)/n, float64(i+1)/n-below(x))
	}
	return d * math.Sqrt(n)
}

// TestPoissonArrivalsAreExponential: by the integral of the rate the distances of arrivals are exponential with mean 1,
// over all pods, with ramps, stages and rates that change, and independent of the one before.
func TestPoissonArrivalsAreExponential(t *testing.T) {
	exponential := func(x float64) float64 { return 1 - math.Exp(-x) }
	for name, shape := range map[string]plan.Shape{
		"constant": {Rate: 1234.5, Duration: 20 * time.Second},
		"slow":     {Rate: 0.5, Duration: 10 * time.Hour},
		"ramp":     {Rate: 5000, RampUp: 3 * time.Second, WarmUp: time.Second, Duration: 2 * time.Second},
		"stages": {Stages: []plan.Stage{
			{Duration: 5 * time.Second, Rate: 1000},
			{Duration: 2 * time.Second},
			{Duration: 5 * time.Second, Rate: 3000},
			{Duration: time.Second, Rate: 3000},
		}},
		"requests": {Rate: 700, Requests: 15_000},
	} {
		for _, pods := range []int{1, 3} {
			due := arrivalsOf(randomly(shape, pods, 7))
			schedule := plan.NewSchedule(shape)
			// With a number of requests each pod ends by itself: what is after the first end is not the whole process.
			if shape.Requests > 0 {
				due = due[:len(due)*9/10]
			}
			var gaps []float64
			before, together := 0.0, 0.0
			for i, at := range due {
				a := schedule.Integral(at)
				gaps = append(gaps, a-before)
				before = a
				if i > 0 {
					together += (gaps[i] - 1) * (gaps[i-1] - 1)
				}
			}
			// the sum of n products of independent distances has the variance n
			if r := together / math.Sqrt(float64(len(gaps))); math.Abs(r) > 2.6 {
				t.Errorf("%s, %d pods: distances depend on the one before, by %.2f standard deviations", name, pods, r)
			}
			if d := kolmogorov(gaps, exponential); d > 1.63 || len(gaps) < 5000 {
				t.Errorf("%s, %d pods: %d distances differ from the exponential distribution by %.2f", name, pods, len(gaps), d)
			}
		}
	}
}

// TestPoissonArrivalsOfMistakes: the test above finds arrivals that are even, or whose distances are uniform.
func TestPoissonArrivalsOfMistakes(t *testing.T) {
	exponential := func(x float64) float64 { return 1 - math.Exp(-x) }
	var even, uniform []float64
	for i := range 5000 {
		even = append(even, 1)
		uniform = append(uniform, 2*float64(i)/5000)
	}
	if kolmogorov(even, exponential) < 10 || kolmogorov(uniform, exponential) < 10 {
		t.Error("the statistic does not tell these from exponential distances")
	}
}

// TestPoissonRateIsExactInExpectation: the mean of many runs is the integral of the rate, and its variance as well.
func TestPoissonRateIsExactInExpectation(t *testing.T) {
	const runs = 2000
	shape := plan.Shape{Rate: 40, RampUp: time.Second, Duration: 4 * time.Second}
	want := plan.NewSchedule(shape).Integral(int64(shape.Length())) // 180
	var sum, squares float64
	for seed := range uint64(runs) {
		n := 0.0
		for pod := range 2 {
			n += float64(NewPacer(randomly(shape, 2, seed+1), pod).Arrivals(int64(shape.Length())))
		}
		sum += n
		squares += (n - want) * (n - want)
	}
	mean, variance := sum/runs, squares/runs
	if off := (mean - want) / math.Sqrt(want/runs); math.Abs(off) > 2.6 {
		t.Errorf("on average %.2f requests in a run, %.1f standard errors from %.0f", mean, off, want)
	}
	// the variance of a variance of n samples is about 2/n of its square
	if off := (variance/want - 1) / math.Sqrt(2.0/runs); math.Abs(off) > 2.8 {
		t.Errorf("the variance is %.1f, %.1f standard errors from that of a Poisson process, %.0f", variance, off, want)
	}
}

// TestPoissonCountsAndDueTimesAgree: to the nanosecond, in any order of the questions.
func TestPoissonCountsAndDueTimesAgree(t *testing.T) {
	for name, shape := range shapes {
		for _, pods := range []int{1, 3} {
			for pod := range pods {
				p := NewPacer(randomly(shape, pods, 3), pod)
				length, last, i := int64(shape.Length()), int64(-1), int64(0)
				for ; p.Due(i) != math.MaxInt64; i++ {
					due := p.Due(i)
					if due < last || due >= length {
						t.Fatalf("%s: arrival %d is due at %d, the one before at %d, the run ends at %d", name, i, due, last, length)
					}
					if i%37 == 0 && (p.Arrivals(due) > i || p.Arrivals(due+1) < i+1) {
						t.Fatalf("%s: arrival %d is due at %d: %d are before, %d until then", name, i, due, p.Arrivals(due),
							p.Arrivals(due+1))
					}
					last = due
				}
				if n := p.Arrivals(length); n != i || p.Arrivals(math.MaxInt64) != i {
					t.Errorf("%s: %d arrivals, but %d are counted", name, i, n)
				}
				again := NewPacer(randomly(shape, pods, 3), pod)
				if again.Arrivals(length) != i || i > 0 && again.Due(i-1) != p.Due(i-1) {
					t.Errorf("%s: the same seed gives other arrivals", name)
				}
			}
		}
	}
}

// TestPoissonOfOldChunks: arrivals long past are the same when they are asked for again.
func TestPoissonOfOldChunks(t *testing.T) {
	p := NewPacer(randomly(plan.Shape{Rate: 1e6, Duration: time.Hour}, 1, 1), 0)
	var near *Chunk
	first := p.Due(5)
	for i := int64(0); i < 40*chunkSize; i += chunkSize / 2 {
		if p.Due(i) != p.DueNear(&near, i) {
			t.Fatalf("arrival %d is due at %d and at %d", i, p.Due(i), p.DueNear(&near, i))
		}
	}
	if p.Due(5) != first {
		t.Errorf("arrival 5 was due at %d, and is at %d", first, p.Due(5))
	}
	if got := p.Expected(int64(time.Hour)); got != 3.6e9 {
		t.Errorf("%v arrivals are expected in an hour, want 3.6e9", got)
	}
}

// TestPoissonSteps: a step changes no arrival before it, and has its rate after it.
func TestPoissonSteps(t *testing.T) {
	shape := plan.Shape{Rate: 1000, Duration: time.Hour, Search: &plan.Search{From: 1000, To: 9000}}
	p := NewPacer(randomly(shape, 1, 5), 0)
	at := 10 * time.Second
	next := p.Step(at, time.Hour, 4000)
	n := p.Arrivals(int64(at))
	for i := range n {
		if p.Due(i) != next.Due(i) {
			t.Fatalf("arrival %d was due at %d, and is at %d after the step", i, p.Due(i), next.Due(i))
		}
	}
	if more := next.Arrivals(int64(2*at)) - n; next.Arrivals(int64(at)) != n || more < 39_400 || more > 40_600 {
		t.Errorf("%d arrivals in the 10 s after the step, want about 40000", more)
	}
	over := next.Step(2*at, time.Hour, 0)
	last := over.Arrivals(math.MaxInt64)
	if last != next.Arrivals(int64(2*at)) || over.Due(last) != math.MaxInt64 {
		t.Errorf("%d arrivals until the end, want %d", last, next.Arrivals(int64(2*at)))
	}
}

// TestPoissonRequests: each pod sends its part, and knows whether time or requests end the load.
func TestPoissonRequests(t *testing.T) {
	for requests, ends := range map[uint64]bool{100: true, 100_000: false} {
		sum := int64(0)
		for pod := range 3 {
			p := NewPacer(randomly(plan.Shape{Rate: 300, Requests: requests, Duration: 10 * time.Second}, 3, 2), pod)
			mine := Share(int64(requests), 3, int64(pod))
			if p.EndsByRequests(mine) != ends {
				t.Errorf("%d requests at 300/s in 10 s: the requests end the load: %v", requests, !ends)
			}
			sum += p.Arrivals(math.MaxInt64)
		}
		if ends && sum != 100 || !ends && (sum < 2800 || sum > 3200) {
			t.Errorf("%d of %d requests are sent in 10 s at 300/s", sum, requests)
		}
	}
}

func BenchmarkPoissonDue(b *testing.B) {
	p := NewPacer(randomly(plan.Shape{Rate: 1e6, Duration: 168 * time.Hour}, 1, 1), 0)
	var near *Chunk
	b.ReportAllocs()
	for i := range int64(b.N) {
		p.DueNear(&near, i)
	}
}
