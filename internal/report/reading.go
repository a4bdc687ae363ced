package report

import (
	"strconv"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
)

// Figure is one of a workload's own figures. One of count, share and seconds is there.
type Figure struct {
	Name    string   `json:"name"`
	Count   *uint64  `json:"count,omitempty"`
	Share   *float64 `json:"share,omitempty"`
	Seconds *Seconds `json:"seconds,omitempty"` // a mean
	Text    string   `json:"-"`
}

// Reading is a workload's reading as text: a count, a share such as 99.2%, a mean such as 0.41ms.
func Reading(r plan.Reading) string {
	switch {
	case r.Share != nil:
		return format.Share(*r.Share)
	case r.Mean != nil:
		return format.Duration(*r.Mean)
	case r.Count != nil:
		return strconv.FormatUint(*r.Count, 10)
	}
	return ""
}

func figures(readings []plan.Reading) (out []Figure) {
	for _, r := range readings {
		f := Figure{Name: r.Name, Count: r.Count, Share: r.Share, Text: Reading(r)}
		if r.Mean != nil {
			f.Seconds = new(Seconds(*r.Mean))
		}
		out = append(out, f)
	}
	return out
}
