package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// A slow node has the time of a request for each question about keys, not for all of them together.
func TestKeysOfManyCommandsAtASlowNode(t *testing.T) {
	virtually(t, 100*time.Millisecond, func(t *testing.T, w *world) {
		c := newMemCluster(t, w)
		p := bare()
		p.Workload.Commands = nil
		for i := range 32 {
			p.Workload.Commands = append(p.Workload.Commands,
				plan.Command{Name: fmt.Sprint("get", i), Weight: 1, Words: []string{"GET", fmt.Sprint("k", i)}})
		}
		r, err := New(p, 0, w.dialled())
		if err != nil {
			t.Fatal(err)
		}
		c.route(r)
		if err := r.Prepare(t.Context(), nil); err != nil {
			t.Error(err)
		}
		r.close()
	})
}
