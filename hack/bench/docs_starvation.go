package main

import (
	"fmt"
	"slices"
	"strings"
)

// starvationFile is what `make starvation` writes.
const starvationFile = "build/starvation.json"

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

func starvationSection() (string, error) {
	var measured struct {
		Loads       []starvation `json:"loads"`
		Experiments []struct {
			Wrong bool `json:"wrong"`
		} `json:"experiments"`
	}
	ok, err := readJSON(starvationFile, &measured)
	if !ok || err != nil {
		return "", err
	}
	where, err := machineOf(starvationFile)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(where)
	b.WriteString(
		"| load | busy programs | throughput, at most | p99 ms, at least | runs in doubt |\n| --- | ---: | ---: | ---: | ---: |\n")
	for list := measured.Loads; len(list) > 0; {
		one := list[0]
		same := func(s starvation) bool { return s.Load == one.Load && s.Beside == one.Beside }
		runs := slices.DeleteFunc(slices.Clone(list), func(s starvation) bool { return !same(s) })
		list = slices.DeleteFunc(slices.Clone(list), same)
		of := func(figure func(*starvation) float64) float64 {
			var values []float64
			for i := range runs {
				values = append(values, figure(&runs[i]))
			}
			return median(values)
		}
		doubted := len(slices.DeleteFunc(slices.Clone(runs), func(s starvation) bool {
			return len(s.Doubts) == 0
		}))
		fmt.Fprintf(&b, "| %s | %d | %.0f/s, %.0f/s | %.2f, %.2f | %d of %d |\n", one.Load, one.Beside,
			of(func(s *starvation) float64 { return s.Throughput }),
			of(func(s *starvation) float64 { return s.AtMost }),
			1000*of(func(s *starvation) float64 { return s.P99 }),
			1000*of(func(s *starvation) float64 { return s.P99AtLeast }), doubted, len(runs))
	}
	wrong := 0
	for _, e := range measured.Experiments {
		if e.Wrong {
			wrong++
		}
	}
	fmt.Fprintf(&b,
		"\n`redquake compare` told a difference between the same Redis and itself in %d of %d experiments.\n",
		wrong, len(measured.Experiments))
	return b.String(), nil
}
