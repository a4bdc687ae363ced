// Package live shows runs in a cluster while they move: as a page of a terminal, or as lines of
// text. What it shows is computed by pure functions of State.
package live

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
)

// State is what is known of the objects that are followed, at one instant.
type State struct {
	Now     time.Time
	Objects []*kube.Object     // load tests, then faults, then experiments; by age
	Courses map[string]*Course // of load tests, by name
	Trouble string             // why nothing new is seen; "" = nothing is wrong
	Hint    string             // what the keys do
}

// unseen is how long the operator may take to see an object before that is strange.
const unseen = 10 * time.Second

// of is the state of an object. Where the operator takes long to see it, it says what to do.
func (s *State) of(o *kube.Object) (reason, message string) {
	reason, message = o.State()
	since := s.Now.Sub(o.Meta().CreationTimestamp.Time)
	if reason == kube.NotObserved && since >= unseen {
		message = "is the operator up? redquake doctor" // fits into 80 columns
	}
	return reason, message
}

// Course is the load over time.
type Course struct {
	Rows []Row
	tail *v1alpha1.LoadSummary // after the last row
}

// Row is a part of the load.
type Row struct {
	At, Until time.Duration // since its start
	Rate      float64       // successes per second
	P99       time.Duration // 0 = nothing succeeded, or unknown
}

// rows is how many rows a course has at most, before those that the statuses add.
const rows = 600

// CourseOf is the course of a record, in rows of a second or more.
func CourseOf(series *merged.Series) (*Course, error) {
	every := max(time.Second, (series.End() / rows).Round(time.Second))
	read, err := result.NewCourse(series, every, "", nil)
	if err != nil {
		return nil, err
	}
	c := &Course{}
	for i := range read.Rows {
		r := &read.Rows[i]
		row := Row{
			At:    time.Duration(r.At),
			Until: time.Duration(r.Until),
			Rate:  r.Throughput,
		}
		if r.Latency != nil {
			row.P99 = time.Duration(r.Latency.P99)
		}
		if row.Until-row.At < every/2 && i > 0 {
			continue // the end of the record so far: too short for a rate
		}
		c.Rows = append(c.Rows, row)
	}
	return c, nil
}

// End is when the last row ends.
func (c *Course) End() time.Duration {
	if c == nil || len(c.Rows) == 0 {
		return 0
	}
	return c.Rows[len(c.Rows)-1].Until
}

// Extend adds what a status shows beyond the record, which is stored every 10 s: the mean rate
// since the status before. Its instants follow from the mean of the measured time, by which
// successes are divided.
func (c *Course) Extend(test *v1alpha1.RedisLoadTest) {
	now := test.Status.Summary
	if now == nil {
		return
	}
	before := c.tail
	c.tail = now
	if before == nil {
		return
	}
	from, began := measured(test, before)
	until, ok := measured(test, now)
	if !began || !ok || until-from < time.Second || until-c.End() < time.Second/2 {
		return
	}
	rate := float64(successes(now)-successes(before)) / (until - from).Seconds()
	c.Rows = append(c.Rows, Row{
		At:    max(from, c.End()),
		Until: until,
		Rate:  rate,
	})
}

func successes(s *v1alpha1.LoadSummary) int64 {
	return s.Requests - s.Errors - s.Drained
}

// measured is until when, since the start of the load, a summary counts.
func measured(test *v1alpha1.RedisLoadTest, s *v1alpha1.LoadSummary) (time.Duration, bool) {
	rate, err := strconv.ParseFloat(string(s.Throughput), 64)
	if err != nil || rate <= 0 || successes(s) <= 0 {
		return 0, false
	}
	return unmeasured(&test.Spec.Load) +
		time.Duration(float64(successes(s))/rate*float64(time.Second)), true
}

// unmeasured is the time before the measured one.
func unmeasured(l *v1alpha1.LoadShape) (sum time.Duration) {
	for _, d := range []*metav1.Duration{l.RampUp, l.WarmUp} {
		if d != nil {
			sum += d.Duration
		}
	}
	return sum
}

// Now is the latest rate, and the latest p99 that is known; 0 = none.
func (c *Course) Now() (rate float64, p99 time.Duration) {
	if c == nil || len(c.Rows) == 0 {
		return 0, 0
	}
	for _, r := range slices.Backward(c.Rows) {
		if r.P99 > 0 {
			p99 = r.P99
			break
		}
	}
	return c.Rows[len(c.Rows)-1].Rate, p99
}

// Planned is how long a load is to take as a whole; 0 = unknown.
func Planned(l *v1alpha1.LoadShape) time.Duration {
	if len(l.Stages) > 0 {
		var sum time.Duration
		for i := range l.Stages {
			sum += l.Stages[i].Duration.Duration
		}
		return sum
	}
	if l.Duration == nil || l.Search != nil {
		return 0
	}
	return unmeasured(l) + l.Duration.Duration
}
