package verdict

import (
	"math"
	"strconv"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result"
)

// units are the units of a status, for those of a result.
var units = map[result.Unit]v1alpha1.Unit{
	result.UnitCount:     v1alpha1.UnitCount,
	result.UnitShare:     v1alpha1.UnitShare,
	result.UnitSeconds:   v1alpha1.UnitMicroseconds,
	result.UnitPerSecond: v1alpha1.UnitPerSecond,
}

// InStatus converts the results of objectives to the form of a status.
func InStatus(objectives []result.Objective) []v1alpha1.ObjectiveResult {
	var out []v1alpha1.ObjectiveResult
	for _, o := range objectives {
		out = append(out, v1alpha1.ObjectiveResult{
			Name:    o.Name,
			Unit:    units[o.Unit],
			Limit:   decimal(o.Unit, &o.Limit),
			Actual:  decimal(o.Unit, o.Actual),
			AtLeast: decimal(o.Unit, o.AtLeast),
			AtMost:  decimal(o.Unit, o.AtMost),
			Met:     o.Met,
			Message: o.Message,
		})
	}
	return out
}

// decimal is a figure in the unit of a status; "" for nil.
func decimal(unit result.Unit, x *float64) v1alpha1.Decimal {
	switch {
	case x == nil:
		return ""
	case unit == result.UnitSeconds:
		d := time.Duration(math.Round(*x * float64(time.Second)))
		return v1alpha1.Decimal(strconv.FormatInt(int64(v1alpha1.MicrosecondsOf(d)), 10))
	case unit == result.UnitCount:
		return v1alpha1.Decimal(strconv.FormatFloat(*x, 'f', 0, 64))
	}
	return v1alpha1.DecimalOf(*x)
}
