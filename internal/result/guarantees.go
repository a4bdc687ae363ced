package result

import (
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Checked is what a load has against a truth of its own.
type Checked struct {
	// Verification is the result for the acknowledged writes, if the run verifies them.
	Verification *Verification `json:"verification,omitempty"`
	// Guarantees are what applications count on that do what the workload does, if it finds that out.
	Guarantees *Guarantees `json:"guarantees,omitempty"`
}

// Guarantees are what applications count on that use Redis as the workload does, with how often that
// was false in a run.
type Guarantees struct {
	Lock *Lock `json:"lock,omitempty"`
	// why the figures are lower bounds: they are not of the whole load; "" = they are exact
	Untold string `json:"untold,omitempty"`
}

// Lock is what happened to locks, as their holders saw it.
type Lock struct {
	Taken          uint64  `json:"taken"`
	Overlaps       uint64  `json:"overlaps"` // taken while another user still counted on the same lock
	LongestOverlap Seconds `json:"longestOverlapSeconds"`
	// when the first of them began and the last ended, from the load's start
	FirstOverlap Seconds `json:"firstOverlapSeconds,omitempty"`
	LastOverlap  Seconds `json:"lastOverlapSeconds,omitempty"`
	// gone before their holders gave them up and before their TTL had passed
	Lost          uint64  `json:"lost"`
	Expired       uint64  `json:"expired"`      // not renewed in time
	Unreplicated  uint64  `json:"unreplicated"` // given up, as too few replicas had them in time
	LongestUnheld Seconds `json:"longestUnheldSeconds"`
	// fencing tokens that were not above an earlier one; set with fencing
	FencesBackwards *uint64 `json:"fencesBackwards,omitempty"`
}

// Guaranteed sets the guarantees from what the load pods found; nil = the workload has none.
func (r *Load) Guaranteed(g *record.Guarantees) {
	r.Guarantees = nil
	if g == nil {
		return
	}
	r.Guarantees = &Guarantees{Untold: g.Untold}
	if l := g.Lock; l != nil {
		r.Guarantees.Lock = &Lock{
			Taken:           l.Taken,
			Overlaps:        l.Overlaps,
			LongestOverlap:  Seconds(time.Duration(l.Overlap)),
			FirstOverlap:    Seconds(l.FirstOverlap),
			LastOverlap:     Seconds(l.LastOverlap),
			Lost:            l.Lost,
			Expired:         l.Expired,
			Unreplicated:    l.Unreplicated,
			LongestUnheld:   Seconds(l.Unheld),
			FencesBackwards: l.FencesBack,
		}
	}
}
