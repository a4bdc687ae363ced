package main

import (
	"fmt"
	"slices"
	"strings"
)

// accuracy is a line of build/accuracy.json, which `make accuracy` writes: one planted outage.
type accuracy struct {
	Case      string  `json:"case"`
	Disturbed bool    `json:"disturbed"`
	Truth     float64 `json:"truthSeconds"`
	Planted   float64 `json:"plantedSeconds"`
	Measured  float64 `json:"measuredSeconds"`
	AtLeast   float64 `json:"atLeastSeconds"`
	AtMost    float64 `json:"atMostSeconds"`
	Doubt     string  `json:"doubt"`
}

func writeAccuracy(b *strings.Builder, list []accuracy) {
	b.WriteString(
		"| case | outages | truth within the bounds | planted within | median error ms | median width ms | " +
			"p95 width ms | doubted |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, of := range groups(list, func(a accuracy) string { return a.Case }) {
		writeAccuracyOf(b, of[0].Case, of)
	}
	names := map[bool]string{false: "all, quiet", true: "all, disturbed"}
	for _, of := range groups(list, func(a accuracy) bool { return a.Disturbed }) {
		writeAccuracyOf(b, names[of[0].Disturbed], of)
	}
}

// writeAccuracyOf writes one line of the table.
func writeAccuracyOf(b *strings.Builder, name string, list []accuracy) {
	var errors, widths []float64
	within, planted, doubted := 0, 0, 0
	for _, a := range list {
		if a.AtLeast <= a.Truth && a.Truth <= a.AtMost {
			within++
		}
		if a.AtLeast <= a.Planted && a.Planted <= a.AtMost {
			planted++
		}
		if a.Doubt != "" {
			doubted++
		}
		errors = append(errors, 1000*max(a.Measured-a.Truth, a.Truth-a.Measured))
		widths = append(widths, 1000*(a.AtMost-a.AtLeast))
	}
	slices.Sort(errors)
	slices.Sort(widths)
	at := func(values []float64, q float64) float64 {
		return values[min(int(q*float64(len(values))), len(values)-1)]
	}
	fmt.Fprintf(b, "| %s | %d | %d | %d | %.2f | %.2f | %.2f | %d |\n",
		name, len(list), within, planted, at(errors, 0.5), at(widths, 0.5), at(widths, 0.95), doubted)
}
