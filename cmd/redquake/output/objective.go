package output

import (
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// verdict writes the verdict and the objectives that are met: the reasons of the verdict name the others.
func verdict(b *strings.Builder, r *result.Load) {
	if r.Verdict == "" {
		return
	}
	line(b, "Verdict", "%s: %s", r.Verdict, r.Why)
	for _, o := range r.Objectives {
		if o.Met != nil && *o.Met && o.Actual != nil {
			line(b, "Objective", "%s is met: %s, limit %s", o.Name, inUnit(o.Unit, *o.Actual), inUnit(o.Unit, o.Limit))
		}
	}
}

func inUnit(unit result.Unit, x float64) string {
	switch unit {
	case result.UnitSeconds:
		return format.Duration(time.Duration(x * float64(time.Second)))
	case result.UnitShare:
		return format.Share(x)
	case result.UnitPerSecond:
		return format.Rate(x) + "/s"
	case result.UnitCores:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case result.UnitBytes:
		return strconv.FormatFloat(x/(1<<20), 'f', 1, 64) + "Mi"
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}
