// Package history keeps the runs of a schedule, and finds regressions and changes among them. It is
// pure.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
)

// Version is the version of History's JSON: it increases when a field is renamed, removed or means
// something else.
const Version = 1

// Limits of a history: the oldest runs go first.
const (
	maxRuns   = 500
	maxLength = 900 << 10 // compressed, as a ConfigMap holds 1 MiB
	fullRuns  = 3         // the last ones, of which the figures of all their runs are kept

	maxChanges = 500
)

// History is the runs of a schedule that have ended, in the order in which they were recorded. Its
// JSON is described in docs/record.md.
type History struct {
	Version int `json:"version"`
	// the names of the cells, by what experiment.HashOf returns
	Templates   map[string][]string `json:"templates"`
	Runs        []Run               `json:"runs"`
	Changes     []Change            `json:"changes,omitempty"`
	Regressions []Regression        `json:"regressions,omitempty"` // those that last
	Confirming  *Confirming         `json:"confirming,omitempty"`
	Dropped     Dropped             `json:"dropped,omitzero"`

	// Revision is that of the object from which it was read; "" = none.
	Revision string `json:"-"`
}

// Dropped is what the limits of a history have removed from it.
type Dropped struct {
	Runs int `json:"runs,omitempty"`
	// those of which the RedisExperiment is kept: they are not recorded again
	Names   []string `json:"names,omitempty"`
	Changes int      `json:"changes,omitempty"`
}

// Run is a run of a schedule that has ended.
type Run struct {
	Name      string           `json:"name"`
	Scheduled time.Time        `json:"scheduled"`
	Start     time.Time        `json:"start"`
	End       time.Time        `json:"end"`
	Template  string           `json:"template"`
	Confirms  string           `json:"confirms,omitempty"` // the run of which it is the repetition
	Verdict   v1alpha1.Verdict `json:"verdict,omitempty"`
	// all runs of its cells have ended: its figures count
	Complete bool `json:"complete,omitempty"`
	// why it is not, or the first regression
	Message string `json:"message,omitempty"`
	// the earlier run with which it was compared
	Against   string            `json:"against,omitempty"`
	Regressed []RegressedFigure `json:"regressed,omitempty"`
	// by figure, in the order of the cells; null = too few runs
	Medians map[string][]*Median `json:"medians,omitempty"`
	// of latencies, in the same way: those of Value.Least, where load generators waited for a CPU
	Least map[string][]*Median `json:"least,omitempty"`
	// of the last runs: what others are compared with
	Record *experiment.Record `json:"record,omitempty"`
}

// Median is the median of the conclusive runs of a cell, in the unit that package compare gives the
// figure.
type Median float64

// RegressedFigure is a figure of a cell that is worse than in an earlier run.
type RegressedFigure struct {
	Cell    string  `json:"cell"`
	Figure  string  `json:"figure"`
	Level   float64 `json:"level"` // the median in the earlier run
	Message string  `json:"message"`
}

// Change is a change of the level of a figure.
type Change struct {
	Cell     string    `json:"cell"`
	Figure   string    `json:"figure"`
	Template string    `json:"template"`
	Since    string    `json:"since"` // the first run on the new level
	Found    string    `json:"found"` // the run with which it was found
	At       time.Time `json:"at"`    // when that one ended
	Change   float64   `json:"change"`
	Worse    bool      `json:"worse,omitempty"`
}

// Regression is one that lasts: it ends with the second run in a row that is back within the margin
// of the level before.
type Regression struct {
	RegressedFigure
	Since string `json:"since"` // the first run that was worse
	Found string `json:"found"`
	Back  int    `json:"back,omitempty"` // runs in a row within the margin of the level before
	// Unconfirmed is why the run that was worse could not be repeated.
	Unconfirmed string `json:"unconfirmed,omitempty"`
}

// Confirming is a run that shows a regression and is repeated before that is called one.
type Confirming struct {
	Run       string            `json:"run"`
	Against   string            `json:"against"`
	Template  string            `json:"template"`
	Regressed []RegressedFigure `json:"regressed"`
	Attempts  int               `json:"attempts,omitempty"` // repetitions that could not tell
	Why       string            `json:"why,omitempty"`      // the last one of them could not
}

// Find returns a run by its name; nil = it is not in the history.
func (h *History) Find(name string) *Run {
	i := slices.IndexFunc(h.Runs, func(r Run) bool { return r.Name == name })
	if i >= 0 {
		return &h.Runs[i]
	}
	return nil
}

// Has reports whether a run was recorded, although it may have been dropped since.
func (h *History) Has(name string) bool {
	return h.Find(name) != nil || slices.Contains(h.Dropped.Names, name)
}

// Last is the run that ended last with figures for the same cells and template; "" = there is none.
// While a run is to be repeated, which may be slower, it is the one before that.
func (h *History) Last(template string) string {
	if c := h.Confirming; c != nil && c.Template == template {
		if r := h.Find(c.Against); r != nil && r.Record != nil {
			return c.Against
		}
	}
	for _, r := range slices.Backward(h.Runs) {
		if r.Template == template && r.Complete && r.Record != nil && !h.isConfirming(r.Name) {
			return r.Name
		}
	}
	return ""
}

func (h *History) isConfirming(run string) bool {
	return h.Confirming != nil && h.Confirming.Run == run
}

// isEarlier reports whether the repetition that is under way is compared with a run.
func (h *History) isEarlier(run string) bool {
	return h.Confirming != nil && h.Confirming.Against == run
}

// Encode compresses a history. It drops the oldest runs until what remains is within the limits.
// pinned is a run whose figures are kept, however old it is; objects are the runs of which there is
// a RedisExperiment.
func (h *History) Encode(pinned string, objects []string) ([]byte, error) {
	h.drop(len(h.Runs)-maxRuns, pinned, objects)
	h.Dropped.Names = slices.DeleteFunc(h.Dropped.Names, func(name string) bool {
		return !slices.Contains(objects, name)
	})
	h.strip(pinned)
	for {
		h.dropTemplates()
		h.dropChanges()
		data, err := experiment.Encode(h)
		if err == nil && len(data) <= maxLength || err != nil && !errors.Is(err, experiment.ErrTooLong) {
			return data, err
		}
		if h.drop(max(1, len(h.Runs)/10), pinned, objects) == 0 {
			return nil, cmp.Or(err,
				fmt.Errorf("the schedule's history: the last run has %d bytes, more than %d", len(data),
					maxLength))
		}
	}
}

// drop drops the first n runs, but for the pinned and the last one and those of a repetition, and
// returns how many it has.
func (h *History) drop(n int, pinned string, objects []string) (dropped int) {
	last := len(h.Runs) - 1
	var kept []Run
	for i, r := range h.Runs {
		if i == last || dropped >= n || r.Name == pinned || h.isConfirming(r.Name) ||
			h.isEarlier(r.Name) {
			kept = append(kept, r)
			continue
		}
		dropped++
		if slices.Contains(objects, r.Name) {
			h.Dropped.Names = append(h.Dropped.Names, r.Name)
		}
	}
	h.Runs = kept
	h.Dropped.Runs += dropped
	return dropped
}

// dropChanges drops the oldest changes. The last one of a figure stays as long as runs before it
// do: with these it would be found again.
func (h *History) dropChanges() {
	type series struct{ template, cell, figure string }
	last := map[series]int{}
	for i, c := range h.Changes {
		last[series{c.Template, c.Cell, c.Figure}] = i
	}
	excess := len(h.Changes) - maxChanges
	var kept []Change
	for i, c := range h.Changes {
		if i >= excess || last[series{c.Template, c.Cell, c.Figure}] == i && h.Find(c.Since) != nil {
			kept = append(kept, c)
			continue
		}
		h.Dropped.Changes++
	}
	h.Changes = kept
}

// strip keeps the figures of all runs only of the last ones.
func (h *History) strip(pinned string) {
	full := 0
	for i := len(h.Runs) - 1; i >= 0; i-- {
		r := &h.Runs[i]
		if r.Record == nil {
			continue
		}
		if full++; full > fullRuns && r.Name != pinned && !h.isEarlier(r.Name) {
			r.Record = nil
		}
	}
}

// dropTemplates drops those of which there is no run.
func (h *History) dropTemplates() {
	for hash := range h.Templates {
		if !slices.ContainsFunc(h.Runs, func(r Run) bool { return r.Template == hash }) {
			delete(h.Templates, hash)
		}
	}
}
