// Package repeats shows the runs of a study one by one: each as a dot beside the others of its
// cell, the phases of the one with the median recovery, whether they drift, which are in no figure
// and why, and all in a table.
package repeats

import (
	_ "embed" // the drawings

	"github.com/redquake/redquake/internal/report/plot"
)

//go:embed repeats.html
var templates string

var drawings = plot.NewDrawings(templates)
