package curve

import (
	"html/template"
	"strings"

	"github.com/redquake/redquake/internal/report"
)

// Markup is a drawing as HTML.
type Markup = template.HTML

// Part is one part of a divided bar.
type Part struct {
	Name, Detail string
	Count        int64
	Class        int // of errors; 0 = no error
}

// Text is the count and the name.
func (p Part) Text() string {
	return report.Count(p.Count) + " " + p.Name
}

// Split draws a bar that is divided by counts.
func Split(parts []Part) Markup {
	var total int64
	var names []string
	for _, p := range parts {
		total += p.Count
		names = append(names, p.Text())
	}
	type shown struct {
		Part
		Wide bool // there is room for its name below it
	}
	var list []shown
	for _, p := range parts {
		list = append(list, shown{p, float64(p.Count) >= .12*float64(total)})
	}
	return execute("split", map[string]any{
		"Parts": list,
		"Label": "Of " + report.Count(total) + " requests not answered in their time: " +
			strings.Join(names, ", ") + ".",
	})
}
