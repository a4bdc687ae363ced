package impact

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// ledgers is a run of two pods, which read their ledgers every second, the second one until stop. It finds the losses.
func ledgers(
	t *testing.T, length, stop time.Duration, losses map[time.Duration][]uint64, last record.LedgerCheck,
) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 2)
	run := recorded.Load{Rate: 200, Length: length}
	for pod := range 2 {
		for i, iv := range run.Intervals(pod, 2) {
			end := time.Duration(i+1) * recorded.Step
			if end%time.Second == 0 && (pod == 0 || end <= stop) {
				iv.LedgerChecks = []record.LedgerCheck{{At: int64(end)}}
			} else if end%time.Second == 0 {
				iv.LedgerChecks = []record.LedgerCheck{last}
			}
			if pod == 1 {
				iv.Lost = losses[end-recorded.Step]
			}
			if err := s.Add(pod, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// Only what was found since the injection counts, and before one only what was found in the last second.
func TestLostWritesAreKnownMeanwhile(t *testing.T) {
	s := ledgers(t, 60*time.Second, time.Hour, map[time.Duration][]uint64{
		20 * time.Second: {7}, 40 * time.Second: {1, 2}, 50 * time.Second: {0, 0, 3}, 59*time.Second + 500*ms: {4},
	}, record.LedgerCheck{})
	for at, want := range map[time.Duration][]uint64{
		10 * time.Second:        {12, 2, 3},
		40*time.Second + 50*ms:  {5, 2, 3},
		40*time.Second + 100*ms: {4, 0, 3},
		59 * time.Second:        {4},
	} {
		got := LiveOf(s, Fault{At: at}, Options{}).Ledger
		if diff := cmp.Diff(summary.LiveLedger{Lost: want}, got); diff != "" {
			t.Errorf("a fault at %s (-want +got):\n%s", at, diff)
		}
	}
	if got := Lately(s).Ledger; got.Total() != 4 || got.Unread != "" {
		t.Errorf("lately %+v", got)
	}
	for s.Step < time.Second && s.Coarsen("it is coarse") {
	}
	if got := LiveOf(s, Fault{At: 10 * time.Second}, Options{}).Ledger; got.Total() < 17 {
		t.Errorf("coarse %+v", got)
	}
}

// A ledger that was not read lately is unread, with the reason; whether it can be read later is another question.
func TestUnreadLedger(t *testing.T) {
	for name, test := range map[string]struct {
		stop time.Duration
		last record.LedgerCheck
		want summary.LiveLedger
	}{
		"read":  {29 * time.Second, record.LedgerCheck{Failure: "a:1: no reply"}, summary.LiveLedger{}},
		"never": {0, record.LedgerCheck{}, summary.LiveLedger{Unread: "it has not been read yet"}},
		"silent": {
			20 * time.Second,
			record.LedgerCheck{},
			summary.LiveLedger{Unread: "it was last read 10s before the end of the record"},
		},
		"failing": {
			20 * time.Second,
			record.LedgerCheck{Failure: "a:1: no reply"},
			summary.LiveLedger{Unread: "a:1: no reply"},
		},
		"forbidden": {0, record.LedgerCheck{Failure: "NOPERM"}, summary.LiveLedger{Unread: "NOPERM"}},
		"evicted": {
			29 * time.Second,
			record.LedgerCheck{Failure: "evicted", Unknowable: true},
			summary.LiveLedger{Unread: "evicted", Unknowable: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := ledgers(t, 30*time.Second, test.stop, nil, test.last)
			got := LiveOf(s, Fault{At: 15 * time.Second}, Options{}).Ledger
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
