package schedule_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// A run whose RedisExperiment is kept is recorded once, although the history has dropped it since.
func TestKeptRunIsRecordedOnce(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.SuccessfulRunsHistoryLimit = new(
				int32(9))
		})
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
		n.MustChange(operatortest.Change(n.Place, scheduletest.HistoryOf("nightly"), func(m *corev1.ConfigMap) {
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
		first := scheduletest.NameOf("nightly", scheduletest.Night(1))
		second := scheduletest.NameOf("nightly", scheduletest.Night(2))
		time.Sleep(50 * time.Hour) // two runs
		e := scheduletest.Schedule(n.World.Place, "nightly")
		h := e.Status.History
		if n := len(h); n != 100 || h[n-1].Name != scheduletest.NameOf("nightly", scheduletest.Night(4)) ||
			h[n-2].Name != scheduletest.NameOf("nightly", scheduletest.Night(3)) {
			t.Errorf("%+v", h[max(0, n-3):])
		}
		if got := scheduledRuns(n.World.Place, "nightly"); len(got) != 4 || got[0] != first || got[1] != second {
			t.Errorf("there are %v", got)
		}
	})
}

// A repetition that is deleted while it runs is created again.
func TestRepetitionIsDeleted(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t, again := n.T, scheduletest.NameOf("nightly", scheduletest.Night(2))+"c"
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		n.Create(withConfirm(n, lasting(time.Hour)))
		n.Until("the repetition runs", scheduletest.LongAfter, func() bool { return len(n.RunsOf(again)) > 0 },
			func() string {
				return ""
			})
		n.MustChange(n.Client.Delete(t.Context(), n.Experiment(again)))
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, scheduletest.LongAfter)
		if h := e.Status.History; h[2].Name != again || h[2].Verdict != v1alpha1.VerdictPass ||
			scheduletest.RegressedCondition(t, e.Status.Conditions).Reason != v1alpha1.ReasonRegressed {
			t.Errorf("%+v", h)
		}
	})
}
