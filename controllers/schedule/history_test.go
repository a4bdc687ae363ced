package schedule_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// A history that a later version of the operator has written is not overwritten, and the schedule goes on once it can
// be read. So it does with one that cannot be read at all.
func TestHistoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"later version": {
			`{"version":2,"runs":"elsewhere"}`,
			"ConfigMap nightly-history: the schedule's history has version 2, later than 1",
		},
		"edited": {
			`{"version":1,"confirming":{"run":"nightly-1"}}`,
			"ConfigMap nightly-history: read the schedule's history: the repetition",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheduletest.InNights(t, func(n *scheduletest.Nights) {
				t := n.T
				n.Begin(scheduletest.ToLast)
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
				var written []byte
				var other bytes.Buffer
				w := gzip.NewWriter(&other)
				if _, err := w.Write([]byte(c.text)); err != nil || w.Close() != nil {
					t.Fatal(err)
				}
				n.MustChange(operatortest.Change(n.Place, scheduletest.HistoryOf("nightly"), func(m *corev1.ConfigMap) {
					written, m.BinaryData["history.json.gz"] = m.BinaryData["history.json.gz"], other.Bytes()
				}))
				time.Sleep(50 * time.Hour)
				e := scheduletest.Schedule(n.World.Place, "nightly")
				if text := operatortest.Where(
					e.Status.Conditions); operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonResultsNotStorable ||
					!strings.Contains(text, c.want) || len(scheduledRuns(n.World.Place, "nightly")) != 1 {
					t.Errorf("%s; %v", text, scheduledRuns(n.World.Place, "nightly"))
				}
				if m := scheduletest.HistoryOf("nightly"); !n.Read(m) ||
					!bytes.Equal(m.BinaryData["history.json.gz"], other.Bytes()) {
					t.Error("it was overwritten")
				}
				n.MustChange(operatortest.Change(n.Place, scheduletest.HistoryOf("nightly"), func(m *corev1.ConfigMap) {
					m.BinaryData["history.json.gz"] = written
				}))
				e = scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, 30*time.Hour)
				if got := names(e); got[0] != scheduletest.NameOf("nightly", scheduletest.Night(1)) ||
					got[1] != scheduletest.NameOf("nightly", scheduletest.Night(3)) ||
					e.Status.Skipped != 1 {
					t.Errorf("ran %v, skipped %d", got, e.Status.Skipped)
				}
			})
		})
	}
}

// A ConfigMap of somebody else keeps a schedule from creating runs, until it is deleted.
func TestHistoryOfSomebodyElse(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(lasting(10 * time.Hour))
		scheduletest.ScheduleIs(n.World.Place, "nightly", "it runs", scheduletest.LongAfter,
			func(e *v1alpha1.RedisExperimentSchedule) bool {
				return e.Status.Active != ""
			})
		n.Create(scheduletest.HistoryOf("nightly"))
		time.Sleep(20 * time.Hour) // the run ends
		e := scheduletest.Schedule(n.World.Place, "nightly")
		if text := operatortest.Where(
			e.Status.Conditions); operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonObjectNotOwned ||
			!strings.Contains(text, "ConfigMap nightly-history belongs to somebody else") || len(e.Status.History) > 0 {
			t.Errorf("%s", text)
		}
		other := scheduletest.HistoryOf("nightly")
		n.Read(other)
		n.MustChange(n.Client.Delete(t.Context(), other))
		if e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1,
			time.Hour); !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("after it was deleted: %s", operatortest.Where(e.Status.Conditions))
		}
	})
}

// A history that somebody deletes is made again of the runs that are kept. One whose record is gone says so, and none
// is shown any more.
func TestHistoryThatIsDeleted(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		o := n.Begin(scheduletest.ToLast)
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
		o.Stop()
		run := scheduletest.NameOf("nightly", scheduletest.Night(1))
		remove := func(object client.Object) {
			n.Read(object)
			n.MustChange(n.Client.Delete(t.Context(), object))
		}
		remove(scheduletest.HistoryOf("nightly"))
		remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: run + "-experiment"}})
		o = operatortest.StartOperator(n.Place, operatortest.Spy{})
		e := scheduletest.ScheduleIs(n.World.Place, "nightly", "it says what is missing", scheduletest.LongAfter,
			func(e *v1alpha1.RedisExperimentSchedule) bool {
				return len(e.Status.History) == 1 && e.Status.History[0].Message != ""
			})
		if got := e.Status.History[0].Message; got != "its record, ConfigMap "+run+"-experiment, is missing" {
			t.Errorf("%q", got)
		}
		o.Stop()
		remove(scheduletest.HistoryOf("nightly"))
		remove(n.Experiment(run))
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		e = scheduletest.ScheduleIs(n.World.Place, "nightly", "the history is empty", scheduletest.LongAfter,
			func(e *v1alpha1.RedisExperimentSchedule) bool {
				return len(e.Status.History) == 0
			})
		if e.Status.Verdict != "" || e.Status.Results != "" {
			t.Errorf("verdict %q, results in %q", e.Status.Verdict, e.Status.Results)
		}
	})
}
