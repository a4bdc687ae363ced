package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// minSuccess is the objective of the command line.
const minSuccess = "minSuccess"

// Success evaluates the least share of the requests that must succeed, in [0, 1].
func Success(least float64, r *result.Load) result.Objective {
	t := &r.Total
	o := &result.Objective{
		Name:  minSuccess,
		Unit:  result.UnitShare,
		Limit: least,
	}
	if t.Requests == 0 {
		return *unjudged(o)
	}
	achieved := exactly(1 - t.ErrorRate)
	if s := t.Stalled; s != nil {
		achieved.atMost = max(achieved.value, 1-s.ErrorRate)
	}
	setBounds(o, achieved)
	switch limit := format.Share(least); {
	case achieved.atLeast >= least:
		o.Met = new(true)
	case achieved.atMost < least:
		missed(o, format.Share(achieved.value), limit)
		o.Message += fmt.Sprintf(": %d of %d requests were no success%s", t.Errors(), t.Requests,
			mostFrequent(r))
	default:
		inconclusive(o, format.Share(achieved.atLeast), format.Share(achieved.atMost), limit)
	}
	return *o
}

// mostFrequent is why most requests that were no success were none; "" if that is unknown.
func mostFrequent(r *result.Load) string {
	classes := slices.Clone(r.Errors)
	if n := r.Total.Dropped; n > 0 {
		classes = append(classes, result.ErrorCount{
			Class:  "dropped",
			Count:  n,
			Sample: "never sent, as Redis or its connections were too slow for the rate",
		})
	}
	if len(classes) == 0 {
		return ""
	}
	most := slices.MaxFunc(classes, func(a, b result.ErrorCount) int {
		return cmp.Compare(a.Count, b.Count)
	})
	text := ", most often " + most.Class
	if most.Sample != "" {
		text += " (" + most.Sample + ")"
	}
	return text
}
