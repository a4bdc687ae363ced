package runs

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record/merged"
)

var t0 = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestStatusIsDuePerObject(t *testing.T) {
	r := NewRegistry()
	run := r.Add("test", t0, nil)
	for _, look := range []struct {
		object types.UID
		at     time.Duration
		want   bool
	}{
		{"a", 0, true},
		{"a", time.Second, false},
		{"b", time.Second, true},
		{"a", statusEvery - 1, false},
		{"a", statusEvery, true},
		{"b", statusEvery, false},
	} {
		if got := r.Due(run, look.object, t0.Add(look.at)); got != look.want {
			t.Errorf("%s after %s: %v, want %v", look.object, look.at, got, look.want)
		}
	}
	for range 2 {
		if !r.Due(nil, "a", t0) {
			t.Error("without a run the status is not due")
		}
	}
}

func TestOneFaultAtATimeClaimsALoad(t *testing.T) {
	r := NewRegistry()
	run := r.Add("test", t0, nil)
	if !r.Claim(run, t0, "a") || r.Claim(run, t0.Add(claimFor-1), "b") || !r.Claim(run, t0.Add(claimFor-1), "a") ||
		r.Claim(run, t0.Add(claimFor), "b") {
		t.Error("want only the first fault to claim the load while it renews its claim")
	}
	if !r.Claim(run, t0.Add(2*claimFor-1), "b") {
		t.Error("a claim that was not renewed is still valid")
	}
	if r.Claim(nil, t0, "a") {
		t.Error("the claim of a missing load succeeded")
	}
}

func TestRunWithoutStartHasNoRecord(t *testing.T) {
	read := func(*merged.Series) { t.Error("the record was read") }
	for _, run := range []*Run{nil, NewRegistry().Add("test", t0, nil)} {
		if run.Begun() || run.Read(read) || run.Finished() {
			t.Errorf("%+v has begun", run)
		}
	}
}

func TestRunsAreOpenedOnceAndPruned(t *testing.T) {
	r, opened := NewRegistry(), 0
	open := func() (*collect.Session, error) { opened++; return nil, nil }
	first, _ := r.Open("a", t0, open)
	second, _ := r.Open("a", t0, open)
	if first != second || opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	r.Add("b", t0, nil)
	r.Retain(map[types.UID]bool{"b": true})
	if r.Find("a") != nil || r.Find("b") == nil {
		t.Error("Retain did not keep exactly b")
	}
	r.Close()
	if r.Find("b") != nil {
		t.Error("the closed registry still contains a run")
	}
}
