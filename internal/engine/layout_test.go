package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/builders"
)

func TestLayOut(t *testing.T) {
	tests := []struct {
		name        string
		shape       plan.Shape
		connections int
		pipeline    int
		depths      []int // of pod 0's connections, of 2 pods
	}{
		{"one connection per user", plan.Shape{Users: 5, Requests: 1}, 50, 1, []int{1, 1, 1}},
		{"users share connections", plan.Shape{Users: 100, Requests: 1}, 2, 4, []int{4, 4}},
		{"open loop uses all", plan.Shape{Rate: 1, Requests: 1}, 3, 4, []int{4, 4, 4}},
		{"users bound what is in flight", plan.Shape{Rate: 1, Users: 14, Requests: 1}, 3, 4, []int{3, 2, 2}},
		{"users bound the connections", plan.Shape{Rate: 1, Users: 3, Requests: 1}, 3, 4, []int{1, 1}},
		{"one at least", plan.Shape{Rate: 1, Users: 1, Requests: 1}, 3, 4, []int{1}},
	}
	for _, tt := range tests {
		p := builders.Plan()
		p.Shape, p.Client.Connections, p.Client.Pipeline = tt.shape, tt.connections, tt.pipeline
		r, err := New(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		var depths []int
		for _, c := range r.loops[0].Connections() {
			depths = append(depths, c.Depth)
		}
		if diff := cmp.Diff(tt.depths, depths); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestNewRefusesUnknownPod(t *testing.T) {
	for _, pod := range []int{-1, 2} {
		if _, err := New(builders.Plan(), pod); err == nil {
			t.Errorf("pod %d of 2 was accepted", pod)
		}
	}
}
