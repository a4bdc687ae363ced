package plan

import (
	"math"
	"time"
)

// Search is the range of a search for the highest rate that meets the objectives, and its
// precision.
type Search struct {
	From float64 `json:"from"` // requests/s over all pods: the first trial
	To   float64 `json:"to"`   // the highest rate of a trial
	// the search ends when the lowest rate that missed is at most this share above the highest that
	// met
	Precision float64       `json:"precision"`
	Settle    time.Duration `json:"settle"` // the first part of each trial, which is not evaluated
	Trial     time.Duration `json:"trial"`  // minimum length of the evaluated part of each trial
	// minimum number of requests in the evaluated part: quantiles and shares need enough samples
	Requests float64 `json:"requests"`
}

// Window returns the evaluated part of a trial of a rate (requests/s over all pods) that begins at
// the given time, since the load's start.
func (s Search) Window(rate float64, at time.Duration) (from, to time.Duration) {
	length := s.Trial
	if rate > 0 {
		length = max(length, time.Duration(math.Ceil(s.Requests/rate))*time.Second)
	}
	return at + s.Settle, at + s.Settle + length
}
