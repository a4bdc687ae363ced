package result

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record/merged"
)

// CourseVersion is the version of Course's JSON: it increases when a field is renamed, removed or
// means something else.
const CourseVersion = 1

// Course is the course of a run over time: figures per row, the times without a success, and the
// faults. Its JSON is described in docs/record.md.
type Course struct {
	Version int    `json:"version"`
	Run     string `json:"run"` // the UID of the load test
	// when the load began, UTC; all other instants count from here
	Start     time.Time `json:"start"`
	Every     Seconds   `json:"everySeconds"`       // length of a row; the last one may be shorter
	Step      Seconds   `json:"stepSeconds"`        // of the counts in the record
	Latencies Seconds   `json:"latencyStepSeconds"` // of the latencies in the record
	// the selected one, which the rows are of; "" = all
	Operation string   `json:"operation,omitempty"`
	All       []string `json:"operations"`          // of the run
	Rows      []Row    `json:"rows"`                // in the order of time
	Gaps      []Gap    `json:"gaps,omitempty"`      // times without a success of the load
	ProbeGaps []Gap    `json:"probeGaps,omitempty"` // of the probe, which opens new connections
	// The following gaps are those in which a request waited in vain: a part with few requests is
	// silent for most of the time.
	ReadGaps      []Gap           `json:"readGaps,omitempty"`  // of a load that reads and writes
	WriteGaps     []Gap           `json:"writeGaps,omitempty"` // of a load that reads and writes
	OperationGaps []OperationGaps `json:"operationGaps,omitempty"`
	ShardGaps     []ShardGap      `json:"shardGaps,omitempty"` // of one shard of several
	Faults        []Mark          `json:"faults,omitempty"`    // in the order of their injection
	// what is missing from the record, or was coarsened
	Notes []string `json:"notes,omitempty"`
}

// Row is the figures of a part of the run.
type Row struct {
	At        Seconds `json:"atSeconds"`
	Until     Seconds `json:"untilSeconds"`
	Operation         // its name is "all", or that of the selected operation
	// Silent is how much of the row is in a gap of the load, or of the selected operation.
	Silent Seconds `json:"gapSeconds"`
	// that were injected and from which the load had not recovered, at any time of the row
	Faults []string `json:"faults,omitempty"`
}

// Mark is a fault on the load.
type Mark struct {
	Name string  `json:"name"`
	Type string  `json:"type"`
	At   Seconds `json:"atSeconds"` // the injection
	// not set if the load did not recover
	Until *Seconds `json:"recoveredAtSeconds,omitempty"`
	// from the injection to recovery; not set if the load did not recover
	Took *BoundedSeconds `json:"recoveryTime,omitempty"`
	// the longest time without a success that the fault caused: of the load, a shard, or the probe
	Outage  *BoundedSeconds `json:"outage,omitempty"`
	Verdict string          `json:"verdict,omitempty"`
}

// BoundedSeconds is a duration with its lower and upper bound.
type BoundedSeconds struct {
	Value   Seconds `json:"valueSeconds"`
	AtLeast Seconds `json:"atLeastSeconds"`
	AtMost  Seconds `json:"atMostSeconds"`
}

// Mark is the fault on the course of its load.
func (f *Fault) Mark() Mark {
	m := Mark{
		Name:    f.Name,
		Type:    f.Type,
		At:      f.At,
		Verdict: f.Verdict,
	}
	if took, recovered := f.Recovery(); recovered {
		m.Until, m.Took = new(f.At+Seconds(took.Value)), new(Bounds(took))
	}
	if f.Measured() {
		m.Outage = new(Bounds(f.Outage().Bounded))
	}
	return m
}

// NewCourse returns the course of a recorded run in rows of a length, which is rounded up to whole
// steps of the record. operation selects the figures of one operation; "" = all.
func NewCourse(
	series *merged.Series, every time.Duration, operation string, faults []Mark,
) (*Course, error) {
	selected := slices.Index(series.Ops, operation)
	if operation != "" && selected < 0 {
		return nil, fmt.Errorf("the run has no operation %q, it has %q", operation, series.Ops)
	}
	every = max(1, (every+series.Step-1)/series.Step) * series.Step
	c := &Course{
		Version:   CourseVersion,
		Run:       series.Run,
		Start:     series.Start,
		Every:     Seconds(every),
		Step:      Seconds(series.Step),
		Latencies: Seconds(series.LatencyStep),
		Operation: operation,
		All:       series.Ops,
		Rows:      []Row{},
		Faults:    faults,
		Notes:     series.Notes,
	}
	c.setGaps(series)
	for at := time.Duration(0); at < series.End(); at += every {
		until := min(at+every, series.End())
		sum := summary.SummarizeWindow(series, at, until)
		row := Row{
			At:        Seconds(at),
			Until:     Seconds(until),
			Operation: OperationOf("all", &sum.Figures),
		}
		if selected >= 0 {
			row.Operation = OperationOf(operation, &sum.Operations[selected].Figures)
		}
		c.Rows = append(c.Rows, row)
	}
	c.mark()
	return c, nil
}

// mark sets the gaps and the faults of the rows.
func (c *Course) mark() {
	for i := range c.Rows {
		r := &c.Rows[i]
		for _, g := range c.Selected() {
			r.Silent += max(0, min(r.Until, g.At+g.Length)-max(r.At, g.At))
		}
		for _, f := range c.Faults {
			if f.At < r.Until && (f.Until == nil || *f.Until >= r.At) {
				r.Faults = append(r.Faults, f.Name)
			}
		}
	}
}

// LongestIn is the longest part of a gap that is in a row; 0 = none. Gaps that may be none do not
// count.
func (c *Course) LongestIn(r *Row) (longest Seconds) {
	for _, g := range c.Selected() {
		if g.AtLeast > 0 {
			longest = max(longest, min(r.Until, g.At+g.Length)-max(r.At, g.At))
		}
	}
	return longest
}
