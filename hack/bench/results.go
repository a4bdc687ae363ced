package main

import "slices"

// result is one tool in one case: medians over the rounds. The first six fields are a contract.
type result struct {
	Case string `json:"case"` // "SET, pipeline 1"
	Tool string `json:"tool"`
	// user and system time of the whole process, its start included
	CPUMicros         float64 `json:"cpuMicrosPerRequest"`
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	P50Micros         float64 `json:"p50Micros"` // 0 = not reported by the tool
	P99Micros         float64 `json:"p99Micros"`

	// from the send on, where the others count from the planned time
	SentP50Micros float64 `json:"sentP50Micros,omitempty"`
	SentP99Micros float64 `json:"sentP99Micros,omitempty"`
	Rounds        int     `json:"rounds"`
	Work          string  `json:"work"`
	Pipelined     bool    `json:"pipelined,omitempty"`
	Open          bool    `json:"open,omitempty"` // an open loop
	CPUMicrosMin  float64 `json:"cpuMicrosMin"`
	CPUMicrosMax  float64 `json:"cpuMicrosMax"`
	Threads       int     `json:"threads"` // the most that were observed at once
}

// results are the medians of all tools in all cases, and the ratios of pairs of tools.
func (b *bench) results(cases []work) ([]result, []ratio) {
	var results []result
	var ratios []ratio
	for i := range cases {
		w := &cases[i]
		runs := b.runs[w.name]
		for k := range b.tools {
			if name := b.tools[k].name; len(runs[name]) > 0 {
				results = append(results, summarize(w, name, runs[name]))
			}
		}
		ratios = append(ratios, compare(w, runs)...)
	}
	return results, ratios
}

func summarize(w *work, tool string, runs []run) result {
	cpu := each(runs, func(r *run) float64 { return r.cpuMicros })
	return result{
		Case:              w.name,
		Tool:              tool,
		Rounds:            len(runs),
		Work:              w.describe(),
		Pipelined:         w.pipeline > 1,
		Open:              w.open(),
		CPUMicros:         median(cpu),
		CPUMicrosMin:      slices.Min(cpu),
		CPUMicrosMax:      slices.Max(cpu),
		RequestsPerSecond: median(each(runs, func(r *run) float64 { return r.perSecond })),
		P50Micros:         median(each(runs, func(r *run) float64 { return r.p50 })),
		P99Micros:         median(each(runs, func(r *run) float64 { return r.p99 })),
		SentP50Micros:     median(each(runs, func(r *run) float64 { return r.sent50 })),
		SentP99Micros:     median(each(runs, func(r *run) float64 { return r.sent99 })),
		Threads: int(slices.Max(each(runs, func(r *run) float64 {
			return float64(
				r.threads)
		}))),
	}
}

// pairs are the tools that are compared: redquake with all others, any of which may be the best of a
// case, and what it costs to do more or less.
var pairs = [][2]string{
	{nameRedquake, nameMemtier},
	{nameRedquake, nameRedisBenchmark},
	{nameRedquake, nameValkey},
	{nameRedquake, nameResp},
	{nameRedquake, nameGoRedis},
	{nameRedquake, nameFloor},
	{nameRedquake, nameOff},
	{nameRedquake, nameUnbounded},
	{nameLedger, nameRedquake},
}

// comparedFigure is what they are compared in, in some cases.
type comparedFigure struct {
	name string
	of   func(*run) float64
	in   func(*work) bool
}

var comparedFigures = []comparedFigure{
	{figureCPU, func(r *run) float64 { return r.cpuMicros }, func(*work) bool { return true }},
	// there it is given
	{
		figurePerSecond,
		func(r *run) float64 { return r.perSecond },
		func(w *work) bool { return !w.open() },
	},
	// else tools define latencies differently
	{figureP50, sentP50Of, func(w *work) bool { return w.pipeline == 1 }},
	{figureP99, sentP99Of, func(w *work) bool { return w.pipeline == 1 }},
}

// compare pairs the tools' runs of the same round in a case, where both were measured.
func compare(w *work, runs map[string][]run) []ratio {
	var ratios []ratio
	for _, pair := range pairs {
		one, other := runs[pair[0]], runs[pair[1]]
		if len(one) == 0 || len(other) == 0 {
			continue
		}
		for _, f := range comparedFigures {
			if !f.in(w) {
				continue
			}
			above, below := each(one, f.of), each(other, f.of)
			if slices.Contains(above, 0) || slices.Contains(below, 0) { // not reported
				continue
			}
			r := ratio{
				Case:   w.name,
				Figure: f.name,
				One:    pair[0],
				Other:  pair[1],
				Rounds: len(one),
			}
			quotients := make([]float64, len(above))
			for i := range above {
				quotients[i] = above[i] / below[i]
			}
			r.Ratio, r.Low, r.High = pairedRatio(quotients)
			ratios = append(ratios, r)
		}
	}
	return ratios
}

// sentP50Of and sentP99Of are latencies from the send on, which all tools report.
func sentP50Of(r *run) float64 {
	if r.sent50 > 0 {
		return r.sent50
	}
	return r.p50
}

func sentP99Of(r *run) float64 {
	if r.sent99 > 0 {
		return r.sent99
	}
	return r.p99
}

func each(runs []run, f func(*run) float64) []float64 {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = f(&runs[i])
	}
	return values
}

// median of at least one value.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
