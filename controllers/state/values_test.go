package state

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record/merged"
)

func TestTTL(t *testing.T) {
	if TTL(nil) != nil {
		t.Error("a TTL without the field")
	}
	if got := TTL(new(int32(90))); *got != 90*time.Second {
		t.Errorf("90 seconds are %s", got)
	}
}

func TestClockDoubts(t *testing.T) {
	for _, c := range []struct {
		series merged.Series
		want   string
	}{
		{merged.Series{ClockUncertainty: MaxSkew, ClockSpread: MaxSkew}, "[]"},
		{merged.Series{ClockUncertainty: MaxSkew + 1}, "[ClockUncertainty]"},
		{merged.Series{ClockSpread: MaxSkew + 1}, "[ClockDrift]"},
	} {
		reasons := []string{}
		for _, d := range ClockDoubts(&c.series) {
			reasons = append(reasons, d.Reason)
		}
		if got := fmt.Sprint(reasons); got != c.want {
			t.Errorf("%v ± %v: %s, want %s", c.series.ClockSpread, c.series.ClockUncertainty, got, c.want)
		}
	}
}

func TestInjectedAfter(t *testing.T) {
	start := time.Unix(1000, 0)
	status := &v1alpha1.RedisFaultStatus{InjectedAt: &metav1.MicroTime{Time: start.Add(7 * time.Second)}}
	if got := InjectedAfter(status, start); got != 7*time.Second {
		t.Errorf("by the wall clock: %v", got)
	}
	status.InjectedOffset = new(v1alpha1.DurationOf(2 * time.Second))
	if got := InjectedAfter(status, start); got != 2*time.Second {
		t.Errorf("by the clock of the run: %v", got)
	}
}
