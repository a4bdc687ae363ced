package result

import "github.com/redquake/redquake/internal/plan"

// Figure is one of a workload's own figures. Exactly one of Count, Share and Seconds is set.
type Figure struct {
	Name    string   `json:"name"`
	Count   *uint64  `json:"count,omitempty"`
	Share   *float64 `json:"share,omitempty"`
	Seconds *Seconds `json:"seconds,omitempty"` // a mean
}

func figures(readings []plan.Reading) (out []Figure) {
	for _, r := range readings {
		f := Figure{Name: r.Name, Count: r.Count, Share: r.Share}
		if r.Mean != nil {
			f.Seconds = new(Seconds(*r.Mean))
		}
		out = append(out, f)
	}
	return out
}
