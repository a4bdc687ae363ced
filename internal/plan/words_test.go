package plan_test

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

func TestDescriptionOfShape(t *testing.T) {
	for want, shape := range map[string]plan.Shape{
		"closed loop, 5 users":                            {Users: 5},
		"closed loop, 5 users with 10ms between requests": {Users: 5, ThinkTime: 10 * time.Millisecond},
		"open loop, 5 requests/s":                         {Rate: 5},
		"open loop, 5 requests/s, at most 2 in flight":    {Rate: 5, Users: 2},
		"closed loop, 2 stages up to 7 users":             {Stages: []plan.Stage{{Users: 7}, {Users: 3}}},
		"open loop, 1 stages up to 0.5 requests/s":        {Stages: []plan.Stage{{Rate: 0.5}}},
	} {
		if got := shape.InWords(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
