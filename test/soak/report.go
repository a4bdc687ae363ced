package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// Report is build/soak.json.
type Report struct {
	Seed    uint64           `json:"seed"`
	Minutes float64          `json:"minutes"`
	Began   time.Time        `json:"began"`
	Events  map[string]Count `json:"events"` // by kind

	Orphans       int `json:"orphans"`
	Unreverted    int `json:"unreverted"`
	LateReverts   int `json:"lateReverts"`
	WithoutEnd    int `json:"statusesWithoutEnd"`
	Untrue        int `json:"statusesUntrue"`
	Panics        int `json:"panics"`
	NotAnswered   int `json:"newObjectsNotAnswered"`
	NotCarriedOut int `json:"eventsNotCarriedOut"`

	FirstAnswer float64 `json:"firstAnswerSeconds"` // to a new object, at the end; -1 = none
	// that were created all the time to see whether the operator answers
	Pulses        int     `json:"newObjects"`
	SlowestAnswer float64 `json:"slowestAnswerSeconds"`
	SlowestWhile  float64 `json:"slowestAnswerWhileLeadingSeconds"` // without the time in which no manager led
	// of the effects that were seen from outside, beyond the end, while the operator could act
	LatestRevert   float64 `json:"latestRevertSeconds"`
	EffectsSeen    int     `json:"effectsSeen"`
	WithoutManager float64 `json:"secondsWithoutManager"`

	CPUSeconds float64 `json:"managerCPUSeconds"`
	// its threads together: much of it means that the machine was busy
	CPUWaitedSeconds float64 `json:"managerWaitedForCPUSeconds"`

	AtFirst    Process     `json:"managerAtFirst"`
	AtLast     Process     `json:"managerAtLast"`
	Violations []Violation `json:"violations"`
}

// Count is how many events of a kind there were. One is survived if the operator answered a new object afterwards, and,
// of an object, if nothing is wrong with it.
type Count struct {
	Planned  int `json:"planned"`
	Done     int `json:"done"`
	Survived int `json:"survived"`
}

// NewReport sums up a soak.
func NewReport(plan Plan, began time.Time, f *Facts, broken []Violation) Report {
	r := Report{
		Seed:             plan.Seed,
		Minutes:          plan.Length.Minutes(),
		Began:            began,
		Events:           map[string]Count{},
		FirstAnswer:      f.FirstAnswer.Seconds(),
		Pulses:           len(f.Pulses),
		CPUSeconds:       f.CPU.Ran.Round(time.Second / 10).Seconds(),
		CPUWaitedSeconds: f.CPU.Waited.Round(time.Second / 10).Seconds(),
		AtFirst:          f.AtFirst,
		AtLast:           f.AtLast,
		Violations:       broken,
	}
	if f.FirstAnswer < 0 {
		r.FirstAnswer = -1
	}
	wrong, by := map[string]bool{}, map[Judgement]int{}
	for _, v := range broken {
		wrong[v.Object] = true
		by[v.Judgement]++
	}
	r.Orphans = by[Orphan]
	r.Unreverted = by[Unreverted]
	r.LateReverts = by[LateRevert]
	r.WithoutEnd = by[Unended]
	r.Untrue = by[Untrue]
	r.Panics = by[Panicked]
	r.NotAnswered = by[NoAnswer]
	r.NotCarriedOut = by[NotDone]
	for _, e := range plan.Events {
		r.count(e, func(c *Count) { c.Planned++ })
	}
	for _, e := range f.Events {
		if e.Began.IsZero() {
			continue
		}
		r.count(e.Event, func(c *Count) {
			c.Done++
			if !wrong[e.World+"/"+e.Name] && f.answeredAfter(e) {
				c.Survived++
			}
		})
	}
	for _, p := range f.Pulses {
		took, answered := f.took(p)
		r.SlowestWhile = max(r.SlowestWhile, took.Seconds())
		if answered {
			r.SlowestAnswer = max(r.SlowestAnswer, p.Answered.Sub(p.Created).Seconds())
		}
	}
	for _, s := range f.Faults {
		if late, _, _, mark := f.lateness(s); f.Marks[mark] != nil && !f.Marks[mark].First.IsZero() {
			r.EffectsSeen++
			r.LatestRevert = max(r.LatestRevert, late.Seconds())
		}
	}
	if n := len(f.Able); n > 0 {
		from, to := f.Able[0].At, f.Able[n-1].At
		r.WithoutManager = (to.Sub(from) - f.Able.Within(from, to, 0)).Round(time.Second).Seconds()
	}
	return r
}

func (r *Report) count(e Event, change func(*Count)) {
	c := r.Events[e.Label()]
	change(&c)
	r.Events[e.Label()] = c
}

// answeredAfter reports whether an object that was created after an event had a status in time, or the one at the end.
func (f *Facts) answeredAfter(e Done) bool {
	after := latest(e.Began, e.Ended)
	for _, p := range f.Pulses {
		if p.Created.After(after) {
			took, answered := f.took(p)
			return answered && took <= pulseLimit
		}
	}
	return f.FirstAnswer >= 0 && f.FirstAnswer <= answerLimit
}

// Write writes the report as JSON.
func (r Report) Write(file string) error {
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o644)
}

// Print writes the report for a person.
func (r Report) Print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "event\tplanned\tdone\tsurvived\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Events)) {
		c := r.Events[kind]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", kind, c.Planned, c.Done, c.Survived)
	}
	_ = w.Flush()
	fmt.Fprintf(out,
		"seed %d, %.1f min: orphans %d, unreverted %d, late reverts %d, statuses without an end %d, untrue %d, panics %d, "+
			"new objects without an answer %d, events not carried out %d\n",
		r.Seed, r.Minutes, r.Orphans, r.Unreverted, r.LateReverts, r.WithoutEnd, r.Untrue, r.Panics, r.NotAnswered,
		r.NotCarriedOut)
	fmt.Fprintf(out,
		"first answer to a new object at the end %.2f s; of %d before, the slowest %.1f s, %.1f s of that while a manager "+
			"led; %d effects seen from outside, the latest gone %.1f s after its end; no manager for %.0f s\n",
		r.FirstAnswer, r.Pulses, r.SlowestAnswer, r.SlowestWhile, r.EffectsSeen, r.LatestRevert, r.WithoutManager)
	fmt.Fprintf(out,
		"manager: %.0f goroutines and %.0f MiB at first, %.0f and %.0f at last, %.0f s after its start; it used the CPU "+
			"for %.1f s, and waited for it for %.1f s\n",
		r.AtFirst.Goroutines, r.AtFirst.Memory/(1<<20), r.AtLast.Goroutines, r.AtLast.Memory/(1<<20), r.AtLast.Age,
		r.CPUSeconds, r.CPUWaitedSeconds)
	for _, v := range r.Violations {
		fmt.Fprintf(out, "VIOLATION %s: %s: want %s; got %s (%s)\n", v.Judgement, v.Object, v.Expected, v.Seen, v.Evidence)
	}
}
