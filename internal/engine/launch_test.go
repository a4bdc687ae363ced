package engine

import (
	"runtime"
	"testing"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/builders"
)

// It is not parallel, as GOMAXPROCS is the process's.
func TestSpareProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	tests := []struct {
		name              string
		processors, conns int
		probed, portable  bool
		want              int
	}{
		{name: "one processor", processors: 1, conns: 50, want: 2},
		{name: "as many loops as processors", processors: 2, conns: 128, want: 3},
		{name: "one is free already", processors: 2, conns: 50, want: 2},
		{name: "a loop and that of the probes", processors: 2, conns: 50, probed: true, want: 3},
		{name: "one is free beside the probes", processors: 3, conns: 50, probed: true, want: 3},
		{name: "without epoll", processors: 1, conns: 50, probed: true, portable: true, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runtime.GOMAXPROCS(tt.processors)
			p := builders.Plan()
			p.Pods, p.Client.Connections, p.Shape.Users = 1, tt.conns, tt.conns
			if !tt.probed {
				p.Probe = plan.Probe{}
			}
			r, err := New(p, 0)
			if err != nil {
				t.Fatal(err)
			}
			r.run.Portable = tt.portable
			r.spareProcessor()
			if got := runtime.GOMAXPROCS(0); got != tt.want {
				t.Errorf("%d loops, GOMAXPROCS %d, want %d", len(r.loops), got, tt.want)
			}
		})
	}
}
