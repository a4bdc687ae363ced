// Package report is a run as text and as JSON, for the command line.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// WriteJSON writes v for programs: indented, one object, a newline at its end.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// MarshalJSON writes a decimal number of seconds, exact to the nanosecond.
func (s Seconds) MarshalJSON() ([]byte, error) {
	// Not Duration.Seconds, which adds two floats and so is off in the last digit.
	return strconv.AppendFloat(nil, float64(s)/float64(time.Second), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("%s is no number of seconds", text)
	}
	*s = Seconds(math.Round(x * float64(time.Second)))
	return nil
}
