package state

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
)

// What is stale, or says so, is not reported. The error of a step is returned after the report, and a report on a copy
// that has become stale is made again.
func TestConclude(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	until := clock.Now().Add(time.Second)
	failed := errors.New("failed")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "redisfaults"}, "kill", nil)
	for name, tc := range map[string]struct {
		o        Outcome
		answer   error
		reported bool
		want     ctrl.Result
		err      error
	}{
		"done":              {Outcome{}, nil, true, ctrl.Result{RequeueAfter: time.Second}, nil},
		"again":             {Outcome{Again: true}, nil, true, ctrl.Result{RequeueAfter: time.Millisecond}, nil},
		"failed":            {Outcome{Err: failed}, nil, true, ctrl.Result{RequeueAfter: time.Second}, failed},
		"stale":             {Outcome{Stale: true, SkipReport: true}, nil, false, Stale(), nil},
		"nothing to report": {Outcome{SkipReport: true, Err: failed}, nil, false, ctrl.Result{}, failed},
		"conflict":          {Outcome{Err: failed}, conflict, true, Stale(), nil},
	} {
		reported := false
		result, err := tc.o.Conclude(clock, until, func() error {
			reported = true
			return tc.answer
		})
		if result != tc.want || !errors.Is(err, tc.err) || reported != tc.reported {
			t.Errorf("%s: %+v, %v, reported: %t", name, result, err, reported)
		}
	}
}
