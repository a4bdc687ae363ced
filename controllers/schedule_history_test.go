package controllers

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
)

func historyOf(schedule string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: schedule + "-history"}}
}

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
			inNights(t, func(n *nights) {
				t := n.t
				startOperator(n.place, spy{})
				n.create(newSchedule("nightly", toLast))
				n.runsHaveEnded("nightly", 1, longAfter)
				var written []byte
				var other bytes.Buffer
				w := gzip.NewWriter(&other)
				if _, err := w.Write([]byte(c.text)); err != nil || w.Close() != nil {
					t.Fatal(err)
				}
				n.mustChange(change(n.place, historyOf("nightly"), func(m *corev1.ConfigMap) {
					written, m.BinaryData["history.json.gz"] = m.BinaryData["history.json.gz"], other.Bytes()
				}))
				time.Sleep(50 * time.Hour)
				e := n.schedule("nightly")
				if text := where(e.Status.Conditions); reason(e.Status.Conditions) != v1alpha1.ReasonResultsNotStorable ||
					!strings.Contains(text, c.want) || len(n.scheduledRuns("nightly")) != 1 {
					t.Errorf("%s; %v", text, n.scheduledRuns("nightly"))
				}
				if m := historyOf("nightly"); !n.read(m) || !bytes.Equal(m.BinaryData["history.json.gz"], other.Bytes()) {
					t.Error("it was overwritten")
				}
				n.mustChange(change(n.place, historyOf("nightly"), func(m *corev1.ConfigMap) {
					m.BinaryData["history.json.gz"] = written
				}))
				e = n.runsHaveEnded("nightly", 3, 30*time.Hour)
				if got := names(e); got[0] != nameOf("nightly", night(1)) || got[1] != nameOf("nightly", night(3)) ||
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
	inNights(t, func(n *nights) {
		t := n.t
		startOperator(n.place, spy{})
		n.create(newSchedule("nightly", lasting(10*time.Hour)))
		n.scheduleIs("nightly", "it runs", longAfter, func(e *v1alpha1.RedisExperimentSchedule) bool {
			return e.Status.Active != ""
		})
		n.create(historyOf("nightly"))
		time.Sleep(20 * time.Hour) // the run ends
		e := n.schedule("nightly")
		if text := where(e.Status.Conditions); reason(e.Status.Conditions) != v1alpha1.ReasonObjectNotOwned ||
			!strings.Contains(text, "ConfigMap nightly-history belongs to somebody else") || len(e.Status.History) > 0 {
			t.Errorf("%s", text)
		}
		other := historyOf("nightly")
		n.read(other)
		n.mustChange(n.client.Delete(t.Context(), other))
		if e := n.runsHaveEnded("nightly", 1,
			time.Hour); !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("after it was deleted: %s", where(e.Status.Conditions))
		}
	})
}

// A history that somebody deletes is made again of the runs that are kept. One whose record is gone says so, and none
// is shown any more.
func TestHistoryThatIsDeleted(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t := n.t
		o := startOperator(n.place, spy{})
		n.create(newSchedule("nightly", toLast))
		n.runsHaveEnded("nightly", 1, longAfter)
		o.stop()
		run := nameOf("nightly", night(1))
		remove := func(object client.Object) {
			n.read(object)
			n.mustChange(n.client.Delete(t.Context(), object))
		}
		remove(historyOf("nightly"))
		remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: run + "-experiment"}})
		o = startOperator(n.place, spy{})
		e := n.scheduleIs("nightly", "it says what is missing", longAfter, func(e *v1alpha1.RedisExperimentSchedule) bool {
			return len(e.Status.History) == 1 && e.Status.History[0].Message != ""
		})
		if got := e.Status.History[0].Message; got != "its record, ConfigMap "+run+"-experiment, is missing" {
			t.Errorf("%q", got)
		}
		o.stop()
		remove(historyOf("nightly"))
		remove(n.experiment(run))
		startOperator(n.place, spy{})
		e = n.scheduleIs("nightly", "the history is empty", longAfter, func(e *v1alpha1.RedisExperimentSchedule) bool {
			return len(e.Status.History) == 0
		})
		if e.Status.Verdict != "" || e.Status.Results != "" {
			t.Errorf("verdict %q, results in %q", e.Status.Verdict, e.Status.Results)
		}
	})
}
