package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scaleMachineFile says where build/bench-scale.json was measured.
const scaleMachineFile = "build/bench-scale-machine.json"

func scaleSection() (string, error) {
	var figures []figure
	ok, err := readJSON(scaleFile, &figures)
	if !ok || err != nil {
		return "", err
	}
	var where machine
	if ok, err := readJSON(scaleMachineFile, &where); !ok || err != nil {
		return "", fmt.Errorf("%s: it is missing or unreadable: %w", scaleMachineFile, err)
	}
	var b strings.Builder
	b.WriteString(where.describe())
	b.WriteString("| figure | value | unit | limit |\n| --- | ---: | --- | ---: |\n")
	for _, f := range figures {
		limit := "-"
		if f.Limit != nil {
			limit = fmt.Sprintf("below %g", *f.Limit)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Figure,
			strconv.FormatFloat(math.Round(100*f.Value)/100, 'f', -1, 64),
			strings.TrimSuffix(f.Unit, "count"), limit)
	}
	return b.String(), nil
}
