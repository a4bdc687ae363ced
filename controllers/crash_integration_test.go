//go:build integration

package controllers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
)

// crashOut is the file that the table is written to. If it is set, every point of every kind is tested, otherwise two
// points of one kind for each mechanism.
const crashOut = "REDQUAKE_CRASH_OUT"

// crashRow is a kill of the operator at one point of one kind of fault, and what was found when the fault was over.
type crashRow struct {
	Fault    string `json:"fault"`
	Point    string `json:"point"`
	Reverted bool   `json:"reverted"` // Redis and the cluster are in their previous state
	Orphans  int    `json:"orphans"`  // objects that the fault created and that still exist
	// Late is how many seconds after its end what the fault had broken was restored, for a point that is a loss instead of
	// a kill; negative if it ended early.
	Late *float64 `json:"late,omitempty"`
	// Measured is by what the end of the fault was seen, for such a point.
	Measured string `json:"measured,omitempty"`
}

// crashRows are the rows of all tests.
var crashRows struct {
	mu  sync.Mutex
	all []crashRow
}

func addCrash(row crashRow) {
	crashRows.mu.Lock()
	defer crashRows.mu.Unlock()
	crashRows.all = append(crashRows.all, row)
}

// storeCrashes stores the rows so far.
func storeCrashes(t *testing.T, out string) {
	t.Helper()
	crashRows.mu.Lock()
	defer crashRows.mu.Unlock()
	slices.SortStableFunc(crashRows.all, func(a, b crashRow) int { return cmp.Compare(a.Fault, b.Fault) })
	if err := writeCrashes(out, crashRows.all); err != nil {
		t.Error(err)
	}
}

// The operator is killed before and after calls by which a fault changes something. After another process has
// continued, Redis and the cluster are in their previous state, and there is one record of one injection.
func TestCrashSafety(t *testing.T) {
	t.Parallel()
	out := os.Getenv(crashOut)
	t.Cleanup(func() {
		if out != "" {
			storeCrashes(t, out)
		}
	})
	for _, kind := range crashKinds {
		if !kind.quick && out == "" {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			s := kind.raise(t)
			unkilled := s.live(kind, "")
			points := pointsOf(unkilled.calls)
			if len(unkilled.problems) > 0 || len(points) == 0 {
				t.Fatalf("without any kill, after %v: %s", unkilled.calls, strings.Join(unkilled.problems, "; "))
			}
			if out == "" {
				points = sampleOf(unkilled.calls)
			}
			for _, point := range points {
				seen := s.live(kind, point)
				if !seen.died && out != "" { // for example an optional second check
					t.Logf("%s: never came", point)
					continue
				}
				if !seen.died {
					t.Errorf("%s never came: %v", point, seen.calls)
				}
				addCrash(crashRow{Fault: kind.name, Point: point, Reverted: seen.reverted, Orphans: len(seen.orphans)})
				if n := len(seen.problems); n > 0 {
					t.Errorf("killed %s, %d problems: %s", point, n, strings.Join(seen.problems[:min(n, 8)], "\n\t"))
					s = kind.raise(t) // the remains of this one must not be attributed to the next one
				}
			}
		})
	}
}

// pointsOf are the failpoints around calls, each once.
func pointsOf(calls []string) []string {
	var points []string
	for _, call := range calls {
		if !slices.Contains(points, "before "+call) {
			points = append(points, "before "+call, "after "+call)
		}
	}
	return points
}

// sampleOf returns the two most critical points: after the injection and after the revert, both before they are
// recorded.
func sampleOf(calls []string) []string {
	var points []string
	for i, call := range calls {
		if i > 0 && (strings.HasPrefix(call, storing+"active") || strings.HasPrefix(call, storing+"injecting")) {
			points = append(points, "after "+calls[i-1])
			break
		}
	}
	if i := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, storing+"reverted") }); i >= 0 {
		points = append(points, "before "+calls[i])
	}
	return points
}

// crashRun is the course of one fault and what was found after it.
type crashRun struct {
	calls    []string // the failpoints that the process passed before it died
	died     bool
	reverted bool
	orphans  []string
	problems []string // all differences from the expected state
}

// live runs a fault, kills the operator at a point, restarts it, and checks the state afterwards.
func (s *crashStage) live(kind crashKind, dieAt string) crashRun {
	s.t.Helper()
	s.faults++
	name := fmt.Sprintf("fault-%d", s.faults)
	c := crashRun{}
	broken := 0
	if s.broken != nil {
		broken = s.broken()
	}
	s.operator.arm(dieAt)
	s.create(newFault(name, "run", kind.fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = length(0), *length(time.Second)
		kind.spec(s.place, &f.Spec)
	}))
	over := s.within(2*time.Minute, func() bool {
		s.revive(&c)
		return s.pushOn(name)
	})
	when, _, _ := strings.Cut(dieAt, " ")
	// it was the last one: the process is about to end
	if !c.died && slices.ContainsFunc(s.operator.calls(), func(call string) bool { return isAt(dieAt, when+" "+call) }) {
		s.within(time.Minute, func() bool {
			s.revive(&c)
			return c.died
		})
	}
	if !c.died {
		c.calls = s.operator.calls()
	}
	f := s.fault(name)
	if !over {
		c.problems = append(c.problems,
			fmt.Sprintf("it is not over after 2 minutes: %s; targets %+v", where(f.Status.Conditions), f.Status.Targets))
	}
	c.problems = append(c.problems, kind.problemsIn(f)...)
	if kind.pauses {
		c.problems = append(c.problems, s.leftPaused()...)
	}
	var differs []string
	c.reverted = s.within(30*time.Second, func() bool {
		differs = differences(s.before, s.shows())
		return len(differs) == 0
	})
	c.problems = append(c.problems, differs...)
	for _, o := range s.orphansOf(f) {
		c.orphans = append(c.orphans, o)
		c.problems = append(c.problems, o+" is left behind")
	}
	if s.broken != nil && s.broken()-broken != 1 {
		c.problems = append(c.problems, fmt.Sprintf("it was broken %d times", s.broken()-broken))
	}
	s.mustChange(s.client.Delete(s.t.Context(), f))
	if !s.within(time.Minute, func() bool {
		return !s.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}) {
		c.problems = append(c.problems, "it cannot be deleted")
	}
	return c
}

// leftPaused returns the servers that are paused although the fault has finished. A pause expires, so it must be
// detected at once. After a stall of the machine the result is not reliable.
func (s *crashStage) leftPaused() (paused []string) {
	free := func() bool {
		paused = waitingIn(s.shows())
		return len(paused) == 0
	}
	if s.within(2*time.Second, free) || stalledSince(time.Now().Add(-5*time.Second)) && s.within(20*time.Second, free) {
		return nil
	}
	return paused
}

// waitingIn returns the servers that do not answer clients.
func waitingIn(shows map[string]string) []string {
	var waiting []string
	for name, value := range shows {
		if strings.HasSuffix(name, "publishes") &&
			(strings.Contains(value, "timeout") || strings.Contains(value, "deadline")) {
			waiting = append(waiting, name+": "+value)
		}
	}
	return waiting
}

// revive starts another operator if the process has ended.
func (s *crashStage) revive(c *crashRun) {
	s.t.Helper()
	if s.operator.died() {
		c.died, c.calls = true, s.operator.calls()
		s.operator = startProcess(s.place)
	}
}

// pushOn aborts a fault that only waits for recovery, and reports whether it has finished.
func (s *crashStage) pushOn(name string) bool {
	f := s.fault(name)
	if state.IsFinished(f.Status.Conditions) {
		return len(f.Finalizers) == 0
	}
	if reason(f.Status.Conditions) == v1alpha1.ReasonObserving && !f.Spec.Abort {
		s.mustChange(change(s.place, f, func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	}
	return false
}

// problemsIn returns what is wrong in the record of a fault.
func (k crashKind) problemsIn(f *v1alpha1.RedisFault) []string {
	var wrong []string
	if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete); c == nil ||
		c.Status != metav1.ConditionTrue {
		wrong = append(wrong, "it is not complete: "+where(f.Status.Conditions))
	}
	if n := len(f.Status.Targets); n != 1 {
		return append(wrong, fmt.Sprintf("it has %d records", n))
	}
	if t := f.Status.Targets[0]; t.InjectedAt == nil || t.RevertedAt == nil || t.RevertAbandoned {
		wrong = append(wrong, fmt.Sprintf("its record: %+v", t))
	}
	injections := slices.DeleteFunc(timelineOf(f), func(event string) bool { return event != "Injected" })
	if len(injections) != 1 {
		wrong = append(wrong, fmt.Sprintf("its timeline has %d injections: %v", len(injections), timelineOf(f)))
	}
	if seen := f.Status.Effect; seen == "" || seen == v1alpha1.EffectNotObserved && !k.fades {
		wrong = append(wrong, fmt.Sprintf("its effect is %q: %s", f.Status.Effect, f.Status.EffectEvidence))
	}
	return wrong
}

// writeCrashes stores the table and prints it.
func writeCrashes(file string, rows []crashRow) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "FAULT\tKILLED\tREVERTED\tORPHANS\tLATE\tMEASURED BY")
	for _, row := range rows {
		late := ""
		if row.Late != nil {
			late = fmt.Sprintf("%.1f s", *row.Late)
		}
		fmt.Fprintf(table, "%s\t%s\t%t\t%d\t%s\t%s\n", row.Fault, row.Point, row.Reverted, row.Orphans, late, row.Measured)
	}
	return table.Flush()
}
