package engine

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
)

func TestGapLog(t *testing.T) {
	g := newGapLog(10 * ms)
	for _, at := range []int64{ms, 11 * ms, 22 * ms, 5 * ms, 23 * ms, 150 * ms} {
		g.success(at)
	}
	// 10 ms is not over the threshold, 11 is; a success that is reported late opens no gap.
	want := []record.Gap{{From: 11 * ms, To: 22 * ms}}
	if diff := cmp.Diff(want, g.take(100*ms)); diff != "" {
		t.Errorf("gaps that ended before 100 ms (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]record.Gap{{From: 23 * ms, To: 150 * ms}}, g.take(200*ms)); diff != "" {
		t.Errorf("gaps that ended before 200 ms (-want +got):\n%s", diff)
	}
	if got := g.take(1 << 62); len(got) != 0 {
		t.Errorf("a gap is returned twice: %v", got)
	}
	if gap, open := g.open(155 * ms); open {
		t.Errorf("5 ms are an open gap: %v", gap)
	}
	if gap, open := g.open(200 * ms); !open || gap != (record.Gap{From: 150 * ms, To: 200 * ms, Open: true}) {
		t.Errorf("the open gap is %v, %v", gap, open)
	}
}

func TestGapFromTheStart(t *testing.T) {
	g := newGapLog(0)
	g.success(gapFloor + 1)
	if diff := cmp.Diff([]record.Gap{{From: 0, To: gapFloor + 1}}, g.take(1<<62)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if gap, open := newGapLog(ms).open(1000 * ms); !open || gap.From != 0 {
		t.Errorf("a run without a success has the gap %v, %v", gap, open)
	}
}

func TestGapLogOfManyWorkers(t *testing.T) {
	g := newGapLog(gapFloor)
	var all sync.WaitGroup
	for w := range int64(8) {
		all.Go(func() {
			for i := range int64(1000) {
				at := i*ms + w
				if i >= 500 {
					at += 100 * ms // no worker has a success in between
				}
				g.success(at)
			}
		})
	}
	all.Wait()
	var long []record.Gap
	for _, gap := range g.take(1 << 62) {
		if gap.To-gap.From >= 100*ms {
			long = append(long, gap)
		}
	}
	if len(long) != 1 || g.last.Load() != 1099*ms+7 {
		t.Errorf("gaps of 100 ms and more: %v, last success %d", long, g.last.Load())
	}
}

func TestSuccessPace(t *testing.T) {
	p := newSuccessPace(100 * ms)
	if p.mean() != 0 {
		t.Errorf("before any success the pace is %d", p.mean())
	}
	for range 50 {
		p.add(10)
	}
	if p.mean() != 10*ms {
		t.Errorf("10 per 100 ms are a pace of %d ns", p.mean())
	}
	for range 600 { // an outage of a minute counts as one second of it
		p.add(0)
	}
	if p.mean() != 12*ms {
		t.Errorf("after an outage the pace is %d ns, want 12 ms", p.mean())
	}
	for range 100 { // the window moves on
		p.add(2)
	}
	if p.mean() != 50*ms {
		t.Errorf("at 2 per 100 ms the pace is %d ns, want 50 ms", p.mean())
	}
}
