package loadflags

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// applyShape overrides the file's load. A flag also replaces what says the same in another way:
// --rate a number of users, stages or a search.
func (f *Flags) applyShape(shape *v1alpha1.LoadShape) error {
	f.replaceShape(shape)
	fromFlags := f.file == ""
	if f.changed("users") || fromFlags && f.rate == 0 && f.search == "" {
		shape.Users = &f.users
	}
	if f.changed("rate") {
		shape.Rate, shape.RatePer = &f.rate, f.ratePer
		if f.ratePer == v1alpha1.PerSecond {
			shape.RatePer = ""
		}
	}
	if f.changed("arrivals") {
		shape.Arrivals = v1alpha1.LoadArrivals(f.arrivals)
	}
	if f.changed("duration") {
		shape.Duration = &metav1.Duration{Duration: f.duration}
	}
	if f.changed("requests") {
		shape.Requests = &f.requests
	}
	f.applyPhases(shape)
	if err := f.applySearch(shape); err != nil {
		return err
	}
	if len(shape.Stages) == 0 && shape.Duration == nil && shape.Requests == nil {
		shape.Duration = &metav1.Duration{Duration: f.duration}
		if f.search != "" {
			shape.Duration.Duration = searchLimit
		}
	}
	return nil
}

// replaceShape removes what the flags replace by something else.
func (f *Flags) replaceShape(shape *v1alpha1.LoadShape) {
	openLoop := f.changed("rate") || f.search != ""
	if openLoop {
		if shape.Rate == nil && shape.Search == nil {
			shape.Users = nil // those of a closed loop, not a number of requests in flight
		}
		shape.Rate, shape.RatePer, shape.Stages, shape.ThinkTime = nil, "", nil, nil
	}
	if f.search != "" {
		shape.Requests = nil
	} else if openLoop {
		shape.Search = nil
	}
	if f.changed("users") {
		shape.Stages = nil
		if shape.Rate == nil {
			shape.RatePer = ""
		}
	}
}

// applyPhases overrides think time, ramp-up and warm-up.
func (f *Flags) applyPhases(shape *v1alpha1.LoadShape) {
	for name, d := range map[string]struct {
		field **metav1.Duration
		value time.Duration
	}{
		"think-time": {&shape.ThinkTime, f.thinkTime},
		"ramp-up":    {&shape.RampUp, f.rampUp},
		"warm-up":    {&shape.WarmUp, f.warmUp},
	} {
		if f.changed(name) {
			*d.field = &metav1.Duration{Duration: d.value}
		}
	}
}

// searchLimit is the default duration of a search.
const searchLimit = 30 * time.Minute

// applySearch sets the range of the search and its precision.
func (f *Flags) applySearch(shape *v1alpha1.LoadShape) error {
	if err := f.applySearchRange(shape); err != nil {
		return err
	}
	search := shape.Search
	if search == nil {
		if f.changed("search-trial") || f.changed("search-precision") {
			return errors.New("--search-trial and --search-precision need --search")
		}
		return nil
	}
	if f.changed("search-trial") {
		search.Trial = metav1.Duration{Duration: f.searchTrial}
	}
	if f.changed("search-precision") {
		search.Precision = f.searchPrecision
	}
	return nil
}

// applySearchRange makes the shape a search if --search is given.
func (f *Flags) applySearchRange(shape *v1alpha1.LoadShape) error {
	if f.search == "" {
		return nil
	}
	from, to, err := parseSearch(f.search)
	if err != nil {
		return err
	}
	if shape.Search == nil {
		shape.Search = &v1alpha1.LoadSearch{}
	}
	shape.Search.From, shape.Search.To = from, to
	return nil
}

// parseSearch parses FROM:TO.
func parseSearch(text string) (from, to int32, err error) {
	low, high, ok := strings.Cut(text, ":")
	a, errA := strconv.ParseInt(low, 10, 32)
	b, errB := strconv.ParseInt(high, 10, 32)
	if !ok || errA != nil || errB != nil || a < 1 || b < a {
		return 0, 0, fmt.Errorf("--search: %q is not FROM:TO, two rates such as 1000:200000", text)
	}
	return int32(a), int32(b), nil
}
