package faultrun

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// checkedFor is how long a check before the injection counts.
const checkedFor = 5 * time.Second

// check is one evaluation of a fault's stop conditions before its injection. It runs outside of the
// reconciles: a Prometheus may take long to answer.
type check struct {
	term   *Term // whose clients it uses
	cancel context.CancelFunc
	done   chan struct{}
	at     time.Time        // set before done is closed, as is found
	found  *v1alpha1.Breach // nil = none
}

func (t *Term) beginCheck(
	of client.ObjectKey, conditions *Stops, lately func() *impact.Live,
) *check {
	// not that of the reconcile, which ends before
	ctx, cancel := context.WithTimeout(context.Background(), SlowestQuery)
	c := &check{term: t, cancel: cancel, done: make(chan struct{})}
	t.start(func() {
		defer cancel()
		c.found = conditions.check(ctx, lately)
		c.at = t.clock.Now()
		if c.found != nil {
			c.found.At = metav1.NewMicroTime(c.at)
		}
		close(c.done)
		t.Notify(of)
	})
	return c
}

func (c *check) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
