package loadflags

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// rate is a flag with a number of requests per time: 500, 10k, 0.5, 30/m, 100/h. It is kept as a
// whole number of requests of the shortest time for which there is one, as the API has it.
type rate struct {
	number *int32
	per    *v1alpha1.RateUnit
}

// units are the times, in ascending order.
var units = []struct {
	suffix  string
	per     v1alpha1.RateUnit
	seconds float64
}{{"/s", v1alpha1.PerSecond, 1}, {"/m", v1alpha1.PerMinute, 60}, {"/h", v1alpha1.PerHour, 3600}}

var (
	errRate = errors.New(
		"must be a number of requests per second, as 500, 10k or 0.5, or per minute or hour, as 30/m")
	errRateSize = errors.New("must be between 1/h and 100000000")
)

// Set implements pflag.Value.
func (r *rate) Set(text string) error {
	n, given, err := parseRate(text)
	switch {
	case err != nil:
		return err
	case n == 0:
		*r.number = 0 // refused by its name
		return nil
	}
	possible := false
	for _, unit := range units[given:] {
		whole := n * unit.seconds / units[given].seconds
		possible = possible || whole >= 1 && whole <= 1e8
		if nearest := math.Round(whole); whole <= 1e8 && nearest >= 1 && math.Abs(whole-nearest) < 1e-6 {
			*r.number, *r.per = int32(nearest), unit.per
			return nil
		}
		if whole > 1e8 {
			break
		}
	}
	if possible {
		return fmt.Errorf("%s is no whole number of requests per hour", text)
	}
	return errRateSize
}

// parseRate returns the number of requests, and the unit that text names.
func parseRate(text string) (n float64, unit int, err error) {
	for i, u := range units {
		if number, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = number, i
			break
		}
	}
	text, factor := cutFactor(text)
	if strings.Trim(text, "0123456789.") != "" {
		return 0, 0, errRate
	}
	if n, err = strconv.ParseFloat(text, 64); err != nil {
		return 0, 0, errRate
	}
	return n * float64(factor), unit, nil
}

// String implements pflag.Value.
func (r *rate) String() string {
	if r.number == nil {
		return "0"
	}
	return strconv.Itoa(int(*r.number))
}

// Type implements pflag.Value.
func (r *rate) Type() string {
	return "rate"
}
