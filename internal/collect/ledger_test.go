package collect_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// verifying is a run whose pods verify their ledgers: pod 1 takes longer, and finds lost writes.
func verifying(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 2, 20, func(pod int, r *agenttest.Runner, c *agent.Config) {
		c.Plan = &plan.Plan{Verify: &plan.Verify{Share: 0.01}}
		r.Verifying = time.Duration(pod) * time.Second
		r.Ledger = &record.Ledger{Acked: 10, Lost: uint64(pod), FirstLost: int64(7 * pod), LastLost: int64(9 * pod)}
	})
	w.config.Wanted.Ledger = true
	return w
}

var mergedLedger = &record.Ledger{Acked: 20, Lost: 1, FirstLost: 7, LastLost: 9}

func TestLedgersAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := verifying(t)
		s := w.open()
		w.start(s)
		st := w.until(s, "verifying", func(st collect.Status) bool { return st.Verifying > 0 })
		if st.Finished || st.Ledger != nil {
			t.Errorf("%+v", st)
		}
		st = w.until(s, "finished", finished)
		if diff := cmp.Diff(mergedLedger, st.Ledger); diff != "" {
			t.Error(diff)
		}
		w.expect(s, 20, 20)
	})
}

// A session that is opened after the record was complete requests the ledgers again: the checkpoint does not contain
// them.
func TestLedgersAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := verifying(t)
		s := w.open()
		at := w.start(s)
		w.until(s, "finished", finished)
		w.until(s, "stored", func(st collect.Status) bool { return st.Pods[0].Acked == 20 && st.Pods[1].Acked == 20 })
		s.Close()

		again := w.open()
		if err := again.Resume(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		st := w.until(again, "finished", finished)
		if diff := cmp.Diff(mergedLedger, st.Ledger); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLedgerOfALostPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := verifying(t)
		s := w.open()
		w.start(s)
		w.until(s, "verifying", func(st collect.Status) bool { return st.Pods[1].State == agent.Verifying })
		s.Lose(1)
		st := w.until(s, "finished", finished)
		if st.Ledger == nil || st.Ledger.Acked != 10 || !strings.Contains(st.Ledger.Unread, "1 of 2 load pods") {
			t.Errorf("%+v", st.Ledger)
		}
	})
}
