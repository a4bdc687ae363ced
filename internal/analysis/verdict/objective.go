package verdict

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// atMost evaluates a duration that must not exceed a limit: met if its upper bound does not, missed if its lower bound does, otherwise
// undecided. known is false if there is no figure. It returns nil if no limit is set.
func atMost(name string, limit *metav1.Duration, actual impact.Bounded, known bool) *v1alpha1.ObjectiveResult {
	if limit == nil {
		return nil
	}
	r := &v1alpha1.ObjectiveResult{Name: name, Unit: v1alpha1.UnitMicroseconds, Limit: micros(limit.Duration)}
	if !known {
		return unjudged(r)
	}
	r.Actual = micros(actual.Value)
	if actual.AtLeast != actual.AtMost {
		r.AtLeast, r.AtMost = micros(actual.AtLeast), micros(actual.AtMost)
	}
	switch {
	case actual.AtMost <= limit.Duration:
		r.Met = new(true)
	case actual.AtLeast > limit.Duration:
		return missed(r, format.Duration(actual.Value), format.Duration(limit.Duration))
	default:
		r.Message = fmt.Sprintf("%s is between %s and %s, which is not exact enough for the limit %s", name,
			format.Duration(actual.AtLeast), format.Duration(actual.AtMost), format.Duration(limit.Duration))
	}
	return r
}

func micros(d time.Duration) v1alpha1.Decimal {
	return v1alpha1.Decimal(strconv.FormatInt(int64(v1alpha1.MicrosecondsOf(d)), 10))
}

// share evaluates a share in [0, 1] that must not exceed a limit such as 0.1%.
func share(name string, limit *string, actual float64, known bool) *v1alpha1.ObjectiveResult {
	if limit == nil {
		return nil
	}
	most, err := percent(*limit)
	r := &v1alpha1.ObjectiveResult{Name: name, Unit: v1alpha1.UnitShare, Limit: v1alpha1.DecimalOf(most)}
	if !known || err != nil {
		return unjudged(r)
	}
	r.Actual = v1alpha1.DecimalOf(actual)
	if actual > most {
		return missed(r, format.Share(actual), *limit)
	}
	r.Met = new(true)
	return r
}

// countWithin evaluates a count that must not exceed a limit, as atMost does with a duration; nil = there is no figure.
func countWithin(name string, limit *int64, actual *result.Count) *v1alpha1.ObjectiveResult {
	if limit == nil {
		return nil
	}
	text := func(n uint64) string { return strconv.FormatUint(n, 10) }
	r := &v1alpha1.ObjectiveResult{Name: name, Unit: v1alpha1.UnitCount, Limit: v1alpha1.Decimal(strconv.FormatInt(*limit, 10))}
	if actual == nil {
		return unjudged(r)
	}
	atLeast, atMost := text(actual.AtLeast), text(actual.AtMost)
	shown := atMost
	if _, exact := actual.Exact(); exact {
		r.Actual = v1alpha1.Decimal(atMost)
	} else {
		r.AtLeast, r.AtMost = v1alpha1.Decimal(atLeast), v1alpha1.Decimal(atMost)
		shown = "between " + atLeast + " and " + atMost
	}
	switch {
	case actual.AtMost <= uint64(*limit):
		r.Met = new(true)
	case actual.AtLeast > uint64(*limit):
		return missed(r, shown, string(r.Limit))
	default:
		r.Message = fmt.Sprintf("%s is %s, which is not exact enough for the limit %s", name, shown, r.Limit)
	}
	return r
}

// throughput evaluates successes per second that must not be below a limit.
func throughput(name string, limit *string, actual float64, known bool) *v1alpha1.ObjectiveResult {
	if limit == nil {
		return nil
	}
	least, err := strconv.ParseFloat(*limit, 64)
	r := &v1alpha1.ObjectiveResult{Name: name, Unit: v1alpha1.UnitPerSecond, Limit: v1alpha1.DecimalOf(least)}
	if !known || err != nil {
		return unjudged(r)
	}
	r.Actual = v1alpha1.DecimalOf(actual)
	if actual < least {
		return missed(r, format.Rate(actual)+"/s", *limit+"/s")
	}
	r.Met = new(true)
	return r
}

// missed sets the result of a missed objective. A figure whose text equals that of the limit is written in full.
func missed(r *v1alpha1.ObjectiveResult, actual, limit string) *v1alpha1.ObjectiveResult {
	if actual == limit {
		actual = inFull(r.Actual, r.Unit)
	}
	r.Met, r.Message = new(false), fmt.Sprintf("%s is %s, limit %s", r.Name, actual, limit)
	return r
}

func inFull(figure v1alpha1.Decimal, unit v1alpha1.Unit) string {
	switch unit {
	case v1alpha1.UnitMicroseconds:
		n, _ := strconv.ParseInt(string(figure), 10, 64) // written by micros
		return v1alpha1.Microseconds(n).Duration().String()
	case v1alpha1.UnitPerSecond:
		return string(figure) + "/s"
	case v1alpha1.UnitShare:
		return "a share of " + string(figure)
	}
	return string(figure)
}

func unjudged(r *v1alpha1.ObjectiveResult) *v1alpha1.ObjectiveResult {
	r.Message = r.Name + " cannot be evaluated: its figure was not measured"
	return r
}

func percent(text string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return n / 100, err
}
