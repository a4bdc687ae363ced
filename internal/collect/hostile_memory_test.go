package collect_test

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/collect"
)

// Many hostile pods of many load tests each send as much as is taken, and no more bytes then. The memory for it is that
// of a few, and an honest pod beside them is collected as always.
func TestHostilePodsShareMemory(t *testing.T) {
	const hostile, intervals, limit = 48, 200, 128 << 20
	// a frame that lacks some bytes
	answer := append(binary.AppendUvarint(nil, 4<<20-1), bytes.Repeat([]byte("x"), 4<<20-8)...)
	shared := &collect.Memory{}
	w := newWorld(t, 1, intervals, nil)
	w.config.Memory = shared
	var most, stuck atomic.Uint64
	over := make(chan struct{})
	grown(func() {
		for range hostile {
			h := &hostilePod{memory: shared, patience: 10 * time.Second, pull: func(w http.ResponseWriter, _ int64) {
				if _, err := w.Write(answer); err == nil {
					_ = http.NewResponseController(w).Flush() // without an error: the collector has them, or its socket
					stuck.Add(1)
					<-over
				}
			}}
			go func(s *collect.Session) {
				for !s.Status().AllReady && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				_ = s.Start(t.Context(), time.Now().Add(3*time.Second))
			}(h.open(t))
		}
		for end := time.Now().Add(20 * time.Second); stuck.Load() == 0 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		go watchHeap(over, &most)
		s := w.open()
		w.start(s)
		st := w.until(s, "finished", finished)
		close(over)
		if st.Pods[0].Err != "" || st.Pods[0].Filled > 0 {
			t.Errorf("%+v", st.Pods[0])
		}
		w.expect(s, intervals)
	})
	t.Logf("%d hostile pods, of which %d were read to the end, took at most %d MiB", hostile, stuck.Load(),
		most.Load()>>20)
	if stuck.Load() == 0 || most.Load() > limit {
		t.Errorf("the heap had %d MiB", most.Load()>>20)
	}
}
