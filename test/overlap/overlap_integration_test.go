//go:build integration

package overlap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	faults "github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// overlapOut is the file that the table is written to. If it is set, all pairs and schedules run, otherwise a few.
const overlapOut = "REDQUAKE_OVERLAP_OUT"

// What restricts the pairs that run.
const (
	overlapCourse = "OVERLAP_COURSE" // the beginning of the courses that run; empty = all do
	overlapKinds  = "OVERLAP_KINDS"  // a regular expression of which each pair has a kind; empty = any
)

// overlapRow is two or more faults on the same Redis, and what was found when they were over.
type overlapRow struct {
	First    string `json:"first"`
	Second   string `json:"second"`   // in a schedule, all others
	Restored bool   `json:"restored"` // Redis and the cluster are in their previous state, and nothing else is left
	Waited   bool   `json:"waited"`   // one of them has waited for another one
	Both     bool   `json:"both"`     // both have acted at the same time
	On       string `json:"on"`       // the stage
	Course   string `json:"course"`   // together, nested, or the number of the schedule
}

// schedules is the course of several faults at random, with a number.
const schedules = "schedule"

// The courses of a pair.
const (
	together = "together" // both are created at the same instant
	nested   = "nested"   // the second one is created while the first one is active, and would end earlier
	// the second one names the first one in spec.beside, and would end earlier, or later
	besideNested  = "beside, nested"
	besideCrossed = "beside, crossed"
)

// overlapTable has the rows of all tests.
type overlapTable struct {
	mu   sync.Mutex
	rows []overlapRow
}

func (o *overlapTable) add(row overlapRow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows = append(o.rows, row)
}

// Two faults of any kinds act on the same Redis, or a few at random: they act one after the other, and leave it as it
// was.
func TestOverlap(t *testing.T) {
	t.Parallel()
	out, table := os.Getenv(overlapOut), &overlapTable{}
	seed := seedOf(t, out == "")
	t.Cleanup(func() {
		if err := table.report(out); err != nil {
			t.Error(err)
		}
	})
	met := false
	for _, o := range overlaps {
		for part := range max(1, o.splits) {
			pairs := o.pairs(part, out == "")
			if len(pairs) == 0 {
				continue
			}
			met = true
			t.Run(fmt.Sprintf("pairs/%s/%d", o.name, part), func(t *testing.T) {
				t.Parallel()
				runAll(t, o, table, pairs)
			})
		}
	}
	if !met {
		t.Errorf("no pair has %s=%q and %s=%q", overlapCourse, os.Getenv(overlapCourse), overlapKinds, os.Getenv(overlapKinds))
	}
	if restricted() {
		return
	}
	for _, part := range schedulesOf(seed, out == "") {
		t.Run("schedules/"+part.name, func(t *testing.T) {
			t.Parallel()
			runAll(t, part.on, table, part.schedules)
		})
	}
}

// restricted reports whether only some pairs run, and no schedules.
func restricted() bool {
	return os.Getenv(overlapCourse)+os.Getenv(overlapKinds) != ""
}

// encounter is what is tried on a stage. It returns the names of its faults.
type encounter interface {
	run(s *overlapStage) (names []string)
	row() overlapRow
}

// runAll runs encounters on a stage one after the other; after a problem on another one, as its remains must not be
// attributed to the next ones.
func runAll[E encounter](t *testing.T, o overlapping, table *overlapTable, all []E) {
	t.Helper()
	for stage := 1; len(all) > 0; stage++ {
		t.Run(fmt.Sprint("stage ", stage), func(t *testing.T) {
			s := o.raise(t)
			for clean := true; clean && len(all) > 0; all = all[1:] {
				clean = meet(t, s, table, all[0])
			}
		})
	}
}

// meet runs an encounter, adds its row to the table, and reports whether everything is as it should be.
func meet(t *testing.T, s *overlapStage, table *overlapTable, e encounter) bool {
	t.Helper()
	row := e.row()
	row.On = s.of.name
	begun := time.Now()
	names := e.run(s)
	var problems []string
	row.Restored, problems = s.conclude(names)
	row.Waited, row.Both = s.hasWaited(names...), s.actedAtOnce(names)
	table.add(row)
	t.Logf("%s: %s, then %s: restored %t, waited %t, both at once %t, %.1f s", row.Course, row.First, row.Second,
		row.Restored, row.Waited, row.Both, time.Since(begun).Seconds())
	if n := len(problems); n > 0 {
		t.Errorf("%s on %s: %s, then %s, %d problems: %s", row.Course, row.On, row.First, row.Second, n,
			strings.Join(problems[:min(n, 12)], "\n\t"))
	}
	return len(problems) == 0
}

// pair is two kinds in one of the courses.
type pair struct {
	first, second stage.Kind
	course        string
}

// pairs are all pairs of a stage in each course, nested in both orders, of which each part runs some. A few are a
// sample, of the first part.
func (o overlapping) pairs(part int, few bool) []pair {
	var all []pair
	n := 0
	for i, a := range o.kinds {
		for _, b := range o.kinds[i:] {
			if !o.meet(a, b) {
				continue
			}
			if n++; !few && n%max(1, o.splits) != part {
				continue
			}
			all = append(all, pair{a, b, together}, pair{a, b, nested}, pair{a, b, besideNested}, pair{a, b, besideCrossed})
			if a.Name != b.Name {
				all = append(all, pair{b, a, nested}, pair{b, a, besideNested}, pair{b, a, besideCrossed})
			}
		}
	}
	if few {
		return slices.DeleteFunc(all, func(p pair) bool { return part > 0 || !sampled(o.name, p) })
	}
	kinds := regexp.MustCompile(os.Getenv(overlapKinds))
	return slices.DeleteFunc(all, func(p pair) bool {
		return !strings.HasPrefix(p.course, os.Getenv(overlapCourse)) ||
			!kinds.MatchString(p.first.Name) && !kinds.MatchString(p.second.Name)
	})
}

// meet reports whether two kinds of a stage meet there.
func (o overlapping) meet(a, b stage.Kind) bool {
	first, second := isAmong(o.meets, a), isAmong(o.meets, b)
	return o.meets == nil || first != second || first && !o.across
}

func isAmong(kinds []stage.Kind, one stage.Kind) bool {
	return slices.ContainsFunc(kinds, func(k stage.Kind) bool { return k.Name == one.Name })
}

// sampled are the pairs of which a fault once left something behind, or refused a state that the other one had made,
// and a few that act beside each other.
func sampled(on string, p pair) bool {
	if p.isBeside() {
		return on == overlaps[0].name && slices.Contains([]string{
			"Config, Resources", "ClientPause, Config", "PodKill, Config", "Hang by DEBUG SLEEP, PodKill", "Config, Config",
		}, p.first.Name+", "+p.second.Name)
	}
	return on == overlaps[0].name && p.course == nested && p.first.Name == p.second.Name &&
		slices.Contains([]string{"Config", "Resources"}, p.first.Name)
}

func (p pair) of(a, b stage.Kind) bool {
	return p.first.Name == a.Name && p.second.Name == b.Name || p.first.Name == b.Name && p.second.Name == a.Name
}

func (p pair) row() overlapRow {
	return overlapRow{First: p.first.Name, Second: p.second.Name, Course: p.course}
}

func (p pair) isBeside() bool { return p.course == besideNested || p.course == besideCrossed }

func (p pair) run(s *overlapStage) []string {
	if p.isBeside() {
		return p.runBeside(s)
	}
	lasts := 1500 * time.Millisecond
	if p.course == nested {
		lasts = 3 * time.Second
	}
	first := s.newFault(p.first, loads[0], lasts)
	second := s.newFault(p.second, loads[1], time.Second)
	s.Create(first)
	if p.course == nested {
		s.Within(time.Minute, func() bool {
			f := s.Fault(first.Name)
			return f.Status.InjectedAt != nil || state.IsFinished(f.Status.Conditions)
		})
	}
	s.Create(second)
	return []string{first.Name, second.Name}
}

// runBeside has the second fault act beside the first one, which lasts longer or shorter than it. One that does not last
// is acted beside until it has settled.
func (p pair) runBeside(s *overlapStage) []string {
	lasts, then := 8*time.Second, time.Second
	if p.course == besideCrossed {
		lasts, then = 3*time.Second, 5*time.Second
	}
	first, second := s.newFault(p.first, loads[0], lasts), s.newFault(p.second, loads[1], then)
	second.Spec.Beside = []string{first.Name}
	s.Create(first)
	s.Create(second)
	s.Within(90*time.Second, func() bool {
		f := s.Fault(second.Name)
		return f.Status.InjectedAt != nil || state.IsFinished(f.Status.Conditions)
	})
	return []string{first.Name, second.Name}
}

// outcomeOf returns what is wrong with the end of a fault that is over.
func outcomeOf(f *v1alpha1.RedisFault) []string {
	var wrong []string
	name := fmt.Sprintf("%s (%s)", f.Name, f.Spec.Action.Type)
	for _, t := range f.Status.Targets {
		if t.InjectedAt != nil && (t.RevertedAt == nil || t.RevertAbandoned) {
			wrong = append(wrong, fmt.Sprintf("%s: its record: %+v", name, t))
		}
	}
	done := []string{
		v1alpha1.ReasonSucceeded, v1alpha1.ReasonAborted, v1alpha1.ReasonNotRecovered,
		v1alpha1.ReasonInconclusive,
	}
	if !slices.Contains(done, operatortest.Reason(f.Status.Conditions)) && !isExpectedRefusal(f) {
		wrong = append(wrong, name+": "+operatortest.Where(f.Status.Conditions))
	}
	return wrong
}

// expectedRefusals are what a fault may say of the state that the other ones have left, by a part of the message.
var expectedRefusals = []string{
	"is a primary, and would be removed",    // ReplicaScale after a Failover
	"no server of the target is on node",    // NodeLoss and Drain after the pod was moved
	"no server that matches is in",          // the same if another server is on the node, or in the zone
	"has no replica that could be promoted", // Failover
	"would hit the last copy in sync",       // PodKill and others while replicas copy the data again
	"cores, one of them spare",              // IOThreads beside Resources
	"whichever is reverted last would",      // beside another one: both change the same
	"the last copy might be among them",     // beside one that removes servers
	"spec.beside: RedisFault",               // the other one is over before the targets answer
}

// isExpectedRefusal reports whether a fault was refused for a reason that is right after another one, and has broken
// nothing.
func isExpectedRefusal(f *v1alpha1.RedisFault) bool {
	return f.Status.InjectedAt == nil &&
		slices.ContainsFunc(expectedRefusals, func(text string) bool {
			return strings.Contains(operatortest.Where(f.Status.Conditions),
				text)
		})
}

// overlapsIn returns which faults have acted on the same thing at the same time.
func overlapsIn(all []*v1alpha1.RedisFault) []string {
	var wrong []string
	for i, a := range all {
		for _, b := range all[i+1:] {
			on := sharedBy(a, b)
			if on == "" || slices.Contains(b.Spec.Beside, a.Name) || a.Status.InjectedAt == nil ||
				b.Status.InjectedAt == nil || a.Status.RevertedAt == nil || b.Status.RevertedAt == nil {
				continue
			}
			if atOnce(a, b) {
				wrong = append(wrong, fmt.Sprintf("on %s at once: %s from %s to %s, %s from %s to %s", on, a.Name,
					a.Status.InjectedAt.Format(time.StampMicro),
					a.Status.RevertedAt.Format(time.StampMicro), b.Name, b.Status.InjectedAt.Format(time.StampMicro),
					b.Status.RevertedAt.Format(time.StampMicro)))
			}
		}
	}
	return wrong
}

// atOnce reports whether one of two faults was injected before the other one was reverted.
func atOnce(a, b *v1alpha1.RedisFault) bool {
	return a.Status.InjectedAt.Before(b.Status.RevertedAt) && b.Status.InjectedAt.Before(a.Status.RevertedAt)
}

// sharedBy is what two faults of one stage both act on: its workload if one of them changes that, a pod, or a node; ""
// if nothing.
func sharedBy(a, b *v1alpha1.RedisFault) string {
	one, other := traitsOf(a), traitsOf(b)
	if one.Apart || other.Apart {
		return ""
	}
	if one.Whole || other.Whole {
		return "the workload"
	}
	for _, hit := range a.Status.Targets {
		for _, also := range b.Status.Targets {
			switch {
			case hit.Pod == also.Pod:
				return "pod " + hit.Pod
			case hit.Node == also.Node && one.Taints && other.Taints:
				return "node " + hit.Node
			}
		}
	}
	return ""
}

// traitsOf are those of a fault by the product.
func traitsOf(f *v1alpha1.RedisFault) contract.Traits {
	return faults.TraitsOf(&f.Spec)
}

// report stores the rows, if a file is named, and prints a summary. Rows that the file has of other stages, courses and
// kinds stay: they may run one by one.
func (o *overlapTable) report(file string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if file == "" {
		return nil
	}
	var earlier []overlapRow
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &earlier); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	earlier = slices.DeleteFunc(earlier, func(e overlapRow) bool {
		return slices.ContainsFunc(o.rows, func(r overlapRow) bool {
			return r.On == e.On && r.kind() == e.kind() &&
				(!restricted() || r.First == e.First && r.Second == e.Second)
		})
	})
	o.rows = append(earlier, o.rows...)
	slices.SortStableFunc(o.rows, func(a, b overlapRow) int {
		return cmp.Or(cmp.Compare(a.On, b.On),
			cmp.Compare(a.kind(), b.kind()))
	})
	text, err := json.MarshalIndent(o.rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ON\tCOURSE\tRUNS\tRESTORED\tWAITED\tBOTH")
	for from := 0; from < len(o.rows); {
		of := o.rows[from]
		runs, restored, waited, both := 0, 0, 0, 0
		for ; from < len(o.rows) && o.rows[from].On == of.On && o.rows[from].kind() == of.kind(); from++ {
			runs++
			if o.rows[from].Restored {
				restored++
			}
			if o.rows[from].Waited {
				waited++
			}
			if o.rows[from].Both {
				both++
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\n", of.On, of.kind(), runs, restored, waited, both)
	}
	return table.Flush()
}

// kind is the course, without the number of a schedule.
func (r overlapRow) kind() string {
	if strings.HasPrefix(r.Course, schedules) {
		return schedules
	}
	return r.Course
}
