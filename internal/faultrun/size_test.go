package faultrun

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// manyTargets are targets as a selection records them, each with a revert record of a size.
func manyTargets(n, data int) []v1alpha1.FaultTarget {
	targets := make([]v1alpha1.FaultTarget, n)
	for i := range targets {
		targets[i] = v1alpha1.FaultTarget{
			Pod:       fmt.Sprintf("redis-cluster-%d", i),
			UID:       fmt.Sprintf("0f7d2a3c-7a53-4a5f-9c67-%012d", i),
			Node:      fmt.Sprintf("ip-10-0-0-%d.eu-central-1.compute.internal", i),
			Role:      v1alpha1.RolePrimary,
			Address:   "10.128.200.200:6379",
			RunID:     strings.Repeat("a", 40),
			Container: "redis",
			Revert:    &v1alpha1.RevertRecord{Version: 1, Data: strings.Repeat("x", data)},
		}
	}
	return targets
}

func TestCheckSize(t *testing.T) {
	for _, tc := range []struct {
		targets, data int
		fits          bool
	}{{1, 16384, true}, {1000, 64, true}, {1000, 400, false}, {500, 400, true}, {56, 16384, true}, {57, 16384, false}} {
		err := CheckSize(manyTargets(tc.targets, tc.data))
		if (err == nil) != tc.fits {
			t.Errorf("%d targets with records of %d bytes: %v", tc.targets, tc.data, err)
		}
		if err == nil {
			continue
		}
		if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Reason != v1alpha1.ReasonInvalidSpec ||
			!strings.HasPrefix(p.Message, "spec.select: ") {
			t.Errorf("%d targets with records of %d bytes: %v, want a Problem of spec.select", tc.targets, tc.data, err)
		}
		var most int
		_, advice, _ := strings.Cut(err.Error(), "select at most")
		if _, scan := fmt.Sscanf(advice, "%d targets", &most); scan != nil || CheckSize(manyTargets(most, tc.data)) != nil {
			t.Errorf("%q: that many do not fit either", err)
		}
	}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for targets, want := range map[int]int{1: MaxCommand, 80: MaxCommand, 800: MaxCommand / 10} {
		if got := len(Shorten(long, MaxCommand, targets)); got > want || got < want-8 {
			t.Errorf("%d targets: a text of %d bytes, want %d", targets, got, want)
		}
	}
}
