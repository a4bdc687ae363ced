package collect_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// locking is a run of two pods that found something of their locks.
func locking(t *testing.T, wanted bool) *world {
	t.Helper()
	w := newWorld(t, 2, 20, func(pod int, r *agenttest.Runner, _ *agent.Config) {
		at := int64(pod + 1)
		r.Found = &record.Guarantees{Lock: &record.Lock{
			Taken: 10, Overlaps: uint64(pod), Overlap: 5 * int64(pod), FirstOverlap: 7 * int64(pod), LastOverlap: 12 * int64(pod),
			Lost: 1, Unheld: 3 * at, FencesBack: new(uint64(pod)),
		}}
	})
	w.config.Wanted.Guarantees = wanted
	return w
}

// What the pods found is added up; a session that is opened after the record was complete asks for it again.
func TestGuaranteesAreMerged(t *testing.T) {
	want := &record.Guarantees{Lock: &record.Lock{
		Taken: 20, Overlaps: 1, Overlap: 5, FirstOverlap: 7, LastOverlap: 12, Lost: 2, Unheld: 6, FencesBack: new(uint64(1)),
	}}
	synctest.Test(t, func(t *testing.T) {
		w := locking(t, true)
		s := w.open()
		at := w.start(s)
		st := w.until(s, "finished", finished)
		if diff := cmp.Diff(want, st.Guarantees); diff != "" {
			t.Error(diff)
		}
		w.until(s, "stored", func(st collect.Status) bool { return st.Pods[0].Acked == 20 && st.Pods[1].Acked == 20 })
		s.Close()
		again := w.open()
		if err := again.Resume(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.until(again, "finished", finished).Guarantees); diff != "" {
			t.Error(diff)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the status has it already
		w := locking(t, false)
		s := w.open()
		w.start(s)
		if st := w.until(s, "finished", finished); st.Guarantees != nil {
			t.Errorf("%+v", st.Guarantees)
		}
	})
}

// What a lost pod found is missing, and is said to be.
func TestGuaranteesOfALostPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := locking(t, true)
		s := w.open()
		w.start(s)
		s.Lose(1)
		g := w.until(s, "finished", finished).Guarantees
		if g == nil || g.Lock == nil || g.Lock.Taken != 10 || !strings.Contains(g.Untold, "1 of 2 load pods") {
			t.Errorf("%+v", g)
		}
	})
}
