package main

import (
	"fmt"
	"strings"
)

// starvation is a load that shared its CPU with busy programs.
type starvation struct {
	Load       string   `json:"load"`
	Beside     int      `json:"beside"`
	Throughput float64  `json:"throughputPerSecond"`
	AtMost     float64  `json:"throughputAtMostPerSecond"`
	P99        float64  `json:"p99Seconds"`
	P99AtLeast float64  `json:"p99AtLeastSeconds"`
	Doubts     []string `json:"doubts"`
}

// starvations is what `make starvation` writes.
type starvations struct {
	Loads       []starvation `json:"loads"`
	Experiments []struct {
		Wrong bool `json:"wrong"`
	} `json:"experiments"`
}

func writeStarvation(b *strings.Builder, measured starvations) {
	b.WriteString(
		"| load | busy programs | throughput, at most | p99 ms, at least | runs in doubt |\n" +
			"| --- | ---: | ---: | ---: | ---: |\n")
	type key struct {
		load   string
		beside int
	}
	for _, runs := range groups(measured.Loads, func(s starvation) key {
		return key{
			s.Load,
			s.Beside,
		}
	}) {
		doubted := 0
		var throughput, atMost, p99, p99AtLeast []float64
		for _, r := range runs {
			throughput = append(throughput, r.Throughput)
			atMost = append(atMost, r.AtMost)
			p99, p99AtLeast = append(p99, r.P99), append(p99AtLeast, r.P99AtLeast)
			if len(r.Doubts) > 0 {
				doubted++
			}
		}
		fmt.Fprintf(b, "| %s | %d | %.0f/s, %.0f/s | %.2f, %.2f | %d of %d |\n", runs[0].Load,
			runs[0].Beside,
			median(throughput), median(atMost), 1000*median(p99), 1000*median(p99AtLeast), doubted,
			len(runs))
	}
	wrong := 0
	for _, e := range measured.Experiments {
		if e.Wrong {
			wrong++
		}
	}
	fmt.Fprintf(b,
		"\n`redquake compare` found a difference between the same Redis and itself in %d of %d experiments.\n",
		wrong, len(measured.Experiments))
}
