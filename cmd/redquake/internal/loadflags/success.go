package loadflags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/result"
)

// defaultSuccess is the share of requests that must succeed where nothing says how many may fail.
// A Redis that works answers all of them; a load of which more than one in a hundred fails is that
// of a wrong address, a wrong command, a full memory or an outage, whose exit code must not be 0.
const defaultSuccess = "99%"

// Success is the least share of the requests that must succeed.
type Success struct {
	least float64 // in [0, 1]; 0 = nothing is asked
	asked bool    // by the flag
}

// Success is that of the flag or of its default, which gives way to an objective of the flags or of
// the file about errors, and is none of a search: that has to make errors to find its rate.
func (f *Flags) Success(spec *v1alpha1.RedisLoadTestSpec) (Success, error) {
	asked := f.changed("min-success")
	if o := spec.Objectives; !asked && (o != nil && o.MaxErrorRate != nil || spec.Load.Search != nil) {
		return Success{}, nil
	}
	number, isShare := strings.CutSuffix(f.minSuccess, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || !(percent >= 0 && percent <= 100) || !isShare && percent != 0 {
		return Success{}, fmt.Errorf(
			"--min-success: %q must be a share in percent, as 99%%, or 0 for none", f.minSuccess)
	}
	return Success{least: percent / 100, asked: asked}, nil
}

// Objectives evaluates it. The default is an objective only where it is missed, or may be.
func (s Success) Objectives(load *result.Load) []result.Objective {
	if s.least == 0 {
		return nil
	}
	o := verdict.Success(s.least, load)
	if s.asked {
		return []result.Objective{o}
	}
	if o.Actual == nil || o.Met != nil && *o.Met {
		return nil
	}
	o.Message += "; --min-success sets another limit, and 0 none"
	return []result.Objective{o}
}
