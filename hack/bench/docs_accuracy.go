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

func accuracySection() (string, error) {
	var list []accuracy
	ok, err := readJSON(accuracyFile, &list)
	if !ok || err != nil {
		return "", err
	}
	where, err := machineOf(accuracyFile)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(where)
	b.WriteString(
		"| case | outages | truth within the bounds | planted within | median error ms | median width ms | p95 width ms | doubted |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for begin := 0; begin < len(list); {
		end := begin
		for end < len(list) && list[end].Case == list[begin].Case {
			end++
		}
		writeAccuracy(&b, list[begin].Case, list[begin:end])
		begin = end
	}
	writeAccuracy(&b, "all, quiet",
		slices.DeleteFunc(slices.Clone(list), func(a accuracy) bool { return a.Disturbed }))
	writeAccuracy(&b, "all, disturbed",
		slices.DeleteFunc(slices.Clone(list), func(a accuracy) bool { return !a.Disturbed }))
	return b.String(), nil
}

// writeAccuracy writes one line of the table.
func writeAccuracy(b *strings.Builder, name string, list []accuracy) {
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
	if len(list) == 0 {
		return
	}
	slices.Sort(errors)
	slices.Sort(widths)
	at := func(values []float64, q float64) float64 {
		return values[min(int(q*float64(len(values))), len(values)-1)]
	}
	fmt.Fprintf(b, "| %s | %d | %d | %d | %.2f | %.2f | %.2f | %d |\n", name, len(list), within,
		planted, at(errors, 0.5), at(widths, 0.5), at(widths, 0.95), doubted)
}
