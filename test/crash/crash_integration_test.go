//go:build integration

package crash

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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/crashtest"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
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
	for _, kind := range stage.Kinds {
		if !kind.Quick && out == "" {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			s := kind.Raise(t)
			unkilled := live(s, kind, "")
			points := pointsOf(unkilled.calls)
			if len(unkilled.problems) > 0 || len(points) == 0 {
				t.Fatalf("without any kill, after %v: %s", unkilled.calls, strings.Join(unkilled.problems, "; "))
			}
			if out == "" {
				points = sampleOf(unkilled.calls)
			}
			for _, point := range points {
				seen := live(s, kind, point)
				if !seen.died && out != "" { // for example an optional second check
					t.Logf("%s: never came", point)
					continue
				}
				if !seen.died {
					t.Errorf("%s never came: %v", point, seen.calls)
				}
				addCrash(crashRow{Fault: kind.Name, Point: point, Reverted: seen.reverted, Orphans: len(seen.orphans)})
				if n := len(seen.problems); n > 0 {
					t.Errorf("killed %s, %d problems: %s", point, n, strings.Join(seen.problems[:min(n, 8)], "\n\t"))
					s = kind.Raise(t) // the remains of this one must not be attributed to the next one
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
		if i > 0 && (strings.HasPrefix(call, crashtest.Storing+"active") ||
			strings.HasPrefix(call, crashtest.Storing+"injecting")) {
			points = append(points, "after "+calls[i-1])
			break
		}
	}
	if i := slices.IndexFunc(calls, func(c string) bool {
		return strings.HasPrefix(c,
			crashtest.Storing+"reverted")
	}); i >= 0 {
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
func live(s *stage.Stage, kind stage.Kind, dieAt string) crashRun {
	s.T.Helper()
	s.Faults++
	name := fmt.Sprintf("fault-%d", s.Faults)
	c := crashRun{}
	broken := 0
	if s.Broken != nil {
		broken = s.Broken()
	}
	s.Operator.Arm(dieAt)
	s.Create(operatortest.NewFault(name, "run", kind.Fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = operatortest.Length(0), *operatortest.Length(time.Second)
		kind.Spec(s.Place, &f.Spec)
	}))
	over := s.Within(2*time.Minute, func() bool {
		revive(s, &c)
		return s.PushOn(name)
	})
	when, _, _ := strings.Cut(dieAt, " ")
	// it was the last one: the process is about to end
	if !c.died && slices.ContainsFunc(s.Operator.Calls(), func(call string) bool {
		return crashtest.IsAt(dieAt,
			when+" "+call)
	}) {
		s.Within(time.Minute, func() bool {
			revive(s, &c)
			return c.died
		})
	}
	if !c.died {
		c.calls = s.Operator.Calls()
	}
	f := s.Fault(name)
	if !over {
		c.problems = append(c.problems,
			fmt.Sprintf("it is not over after 2 minutes: %s; targets %+v", operatortest.Where(f.Status.Conditions),
				f.Status.Targets))
	}
	c.problems = append(c.problems, kind.ProblemsIn(f)...)
	if kind.Pauses {
		c.problems = append(c.problems, s.LeftPaused()...)
	}
	var differs []string
	c.reverted = s.Within(30*time.Second, func() bool {
		differs = stage.Differences(s.Before, s.Shows())
		return len(differs) == 0
	})
	c.problems = append(c.problems, differs...)
	for _, o := range stage.OrphansOf(s.Place, f) {
		c.orphans = append(c.orphans, o)
		c.problems = append(c.problems, o+" is left behind")
	}
	if s.Broken != nil && s.Broken()-broken != 1 {
		c.problems = append(c.problems, fmt.Sprintf("it was broken %d times", s.Broken()-broken))
	}
	s.MustChange(s.Client.Delete(s.T.Context(), f))
	if !s.Within(time.Minute, func() bool {
		return !s.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}) {
		c.problems = append(c.problems, "it cannot be deleted")
	}
	return c
}

// revive starts another operator if the process has ended.
func revive(s *stage.Stage, c *crashRun) {
	s.T.Helper()
	if s.Operator.Died() {
		c.died, c.calls = true, s.Operator.Calls()
		s.Operator = crashtest.Start(s.Place)
	}
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
