package controllers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment/history"
)

// A run whose RedisExperiment is kept is recorded once, although the history has dropped it since.
func TestKeptRunIsRecordedOnce(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t := n.t
		startOperator(n.place, spy{})
		n.create(newSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.SuccessfulRunsHistoryLimit = new(
				int32(9))
		}))
		n.runsHaveEnded("nightly", 2, longAfter)
		n.mustChange(change(n.place, historyOf("nightly"), func(m *corev1.ConfigMap) {
			h, err := history.Decode(m.BinaryData["history.json.gz"])
			if err != nil {
				t.Fatal(err)
			}
			for len(h.Runs) < 500 { // so that the next run drops the first one
				old := h.Runs[len(h.Runs)-1]
				old.Record = nil
				old.Name = strings.Repeat("x", len(h.Runs)%60) + "-" + string(rune('a'+len(h.Runs)/60))
				h.Runs = append(h.Runs, old)
			}
			if m.BinaryData["history.json.gz"], err = h.Encode("", nil); err != nil {
				t.Fatal(err)
			}
		}))
		first, second := nameOf("nightly", night(1)), nameOf("nightly", night(2))
		time.Sleep(50 * time.Hour) // two runs
		e := n.schedule("nightly")
		h := e.Status.History
		if n := len(h); n != 100 || h[n-1].Name != nameOf("nightly", night(4)) || h[n-2].Name != nameOf("nightly", night(3)) {
			t.Errorf("%+v", h[max(0, n-3):])
		}
		if got := n.scheduledRuns("nightly"); len(got) != 4 || got[0] != first || got[1] != second {
			t.Errorf("there are %v", got)
		}
	})
}

// A repetition that is deleted while it runs is created again.
func TestRepetitionIsDeleted(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t, again := n.t, nameOf("nightly", night(2))+"c"
		startOperator(n.place, spy{})
		n.create(withConfirm(n, lasting(time.Hour)))
		n.until("the repetition runs", longAfter, func() bool { return len(n.runsOf(again)) > 0 }, func() string {
			return ""
		})
		n.mustChange(n.client.Delete(t.Context(), n.experiment(again)))
		e := n.runsHaveEnded("nightly", 3, longAfter)
		if h := e.Status.History; h[2].Name != again || h[2].Verdict != v1alpha1.VerdictPass ||
			regressedCondition(t, e.Status.Conditions).Reason != v1alpha1.ReasonRegressed {
			t.Errorf("%+v", h)
		}
	})
}
