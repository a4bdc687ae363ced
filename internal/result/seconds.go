package result

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Seconds is a duration, in JSON a number of seconds.
type Seconds time.Duration

// Seconds is the number of seconds.
func (s Seconds) Seconds() float64 {
	return time.Duration(s).Seconds()
}

// MarshalJSON writes a decimal number of seconds, exact to the nanosecond.
func (s Seconds) MarshalJSON() ([]byte, error) {
	// Not Duration.Seconds, which adds two floats and is inexact in the last digit.
	return strconv.AppendFloat(nil, float64(s)/float64(time.Second), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("%s is not a number of seconds", text)
	}
	*s = Seconds(math.Round(x * float64(time.Second)))
	return nil
}
