package verdict

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// atMost evaluates a duration that must not exceed a limit: met if its upper bound does not, missed
// if its lower bound does, otherwise inconclusive. known is false if there is no figure. It returns
// nil if no limit is set.
func atMost(
	name string, limit *metav1.Duration, actual durations.Bounded, known bool,
) *result.Objective {
	if limit == nil {
		return nil
	}
	r := &result.Objective{
		Name:  name,
		Unit:  result.UnitSeconds,
		Limit: limit.Seconds(),
	}
	if !known {
		return unjudged(r)
	}
	r.Actual = new(actual.Value.Seconds())
	if actual.AtLeast != actual.AtMost {
		r.AtLeast = new(actual.AtLeast.Seconds())
		r.AtMost = new(actual.AtMost.Seconds())
	}
	switch {
	case actual.AtMost <= limit.Duration:
		r.Met = new(true)
	case actual.AtLeast > limit.Duration:
		return missed(r, format.Duration(actual.Value), format.Duration(limit.Duration))
	default:
		return inconclusive(r, format.Duration(actual.AtLeast), format.Duration(actual.AtMost),
			format.Duration(limit.Duration))
	}
	return r
}

// bounded is a figure with its bounds.
type bounded struct{ value, atLeast, atMost float64 }

func exactly(x float64) bounded {
	return bounded{x, x, x}
}

// share evaluates a share in [0, 1] that must not exceed a limit such as 0.1%, as atMost does with
// a duration.
func share(name string, limit *string, actual bounded, known bool) *result.Objective {
	if limit == nil {
		return nil
	}
	most, err := percent(*limit)
	r := &result.Objective{
		Name:  name,
		Unit:  result.UnitShare,
		Limit: most,
	}
	if !known || err != nil {
		return unjudged(r)
	}
	setBounds(r, actual)
	switch {
	case actual.atMost <= most:
		r.Met = new(true)
	case actual.atLeast > most:
		return missed(r, format.Share(actual.value), *limit)
	default:
		return inconclusive(r, format.Share(actual.atLeast), format.Share(actual.atMost), *limit)
	}
	return r
}

// countWithin evaluates a count that must not exceed a limit, as atMost does with a duration; nil =
// there is no figure.
func countWithin(name string, limit *int64, actual *result.Count) *result.Objective {
	if limit == nil {
		return nil
	}
	text := func(n uint64) string { return strconv.FormatUint(n, 10) }
	r := &result.Objective{
		Name:  name,
		Unit:  result.UnitCount,
		Limit: float64(*limit),
	}
	if actual == nil {
		return unjudged(r)
	}
	shown := text(actual.AtMost)
	if n, exact := actual.Exact(); exact {
		r.Actual = new(float64(n))
	} else {
		r.AtLeast = new(float64(actual.AtLeast))
		r.AtMost = new(float64(actual.AtMost))
		shown = "between " + text(actual.AtLeast) + " and " + text(actual.AtMost)
	}
	switch limitText := strconv.FormatInt(*limit, 10); {
	case actual.AtMost <= uint64(*limit):
		r.Met = new(true)
	case actual.AtLeast > uint64(*limit):
		return missed(r, shown, limitText)
	default:
		r.Message = fmt.Sprintf("%s is %s, which is not exact enough for the limit %s", name, shown,
			limitText)
	}
	return r
}

// throughput evaluates successes per second that must not be below a limit: met if the lower bound
// is not, missed if the upper bound is.
func throughput(name string, limit *string, actual bounded, known bool) *result.Objective {
	if limit == nil {
		return nil
	}
	least, err := strconv.ParseFloat(*limit, 64)
	r := &result.Objective{
		Name:  name,
		Unit:  result.UnitPerSecond,
		Limit: least,
	}
	if !known || err != nil {
		return unjudged(r)
	}
	setBounds(r, actual)
	switch {
	case actual.atLeast >= least:
		r.Met = new(true)
	case actual.atMost < least:
		return missed(r, format.Rate(actual.value)+"/s", *limit+"/s")
	default:
		return inconclusive(r, format.Rate(actual.atLeast)+"/s", format.Rate(actual.atMost)+"/s",
			*limit+"/s")
	}
	return r
}

func setBounds(r *result.Objective, actual bounded) {
	r.Actual = &actual.value
	if actual.atLeast != actual.atMost {
		r.AtLeast, r.AtMost = &actual.atLeast, &actual.atMost
	}
}

func inconclusive(r *result.Objective, atLeast, atMost, limit string) *result.Objective {
	r.Message = fmt.Sprintf("%s is between %s and %s, which is not exact enough for the limit %s",
		r.Name, atLeast, atMost, limit)
	return r
}

// missed sets the result of a missed objective. A figure whose text equals that of the limit is
// written in full.
func missed(r *result.Objective, actual, limit string) *result.Objective {
	if actual == limit {
		actual = inFull(*r.Actual, r.Unit)
	}
	r.Met = new(false)
	r.Message = fmt.Sprintf("%s is %s, limit %s", r.Name, actual, limit)
	return r
}

func inFull(figure float64, unit result.Unit) string {
	text := strconv.FormatFloat(figure, 'f', -1, 64)
	switch unit {
	case result.UnitSeconds:
		return text + "s"
	case result.UnitPerSecond:
		return text + "/s"
	case result.UnitShare:
		return "a share of " + text
	}
	return text
}

func unjudged(r *result.Objective) *result.Objective {
	r.Message = r.Name + " cannot be evaluated: its figure was not measured"
	return r
}

func percent(text string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return n / 100, err
}
