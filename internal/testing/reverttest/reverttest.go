// Package reverttest has an injector whose reverts end as a test plans it, and faults to revert: no server fails by
// such a plan.
package reverttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Answer is the result of a call of Revert.
type Answer struct {
	Progress contract.Progress
	Err      error
}

// Some answers.
var (
	Refusal = Answer{Err: errors.New("no")}
	Step    = Answer{Progress: contract.Underway("1 of 3")}
	Done    = Answer{}
)

// Reverts is an injector whose reverts have given results, in order; the last one repeats.
type Reverts struct {
	fault.Unknown
	Of      contract.Traits
	Change  string // what each call puts into the record
	Answers []Answer

	mu    sync.Mutex
	calls []time.Time
}

// Traits are those given.
func (r *Reverts) Traits() contract.Traits {
	return r.Of
}

// Revert returns the next answer.
func (r *Reverts) Revert(_ context.Context, t *v1alpha1.FaultTarget) (contract.Progress, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, time.Now())
	if r.Change != "" {
		t.Revert = &v1alpha1.RevertRecord{Version: 1, Data: r.Change}
	}
	a := r.Answers[min(len(r.calls), len(r.Answers))-1]
	return a.Progress, a.Err
}

// Calls is when Revert was called.
func (r *Reverts) Calls() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Begun reports that nothing is broken yet.
func (*Reverts) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) {
	return false, nil
}

// ManualRevertCommand is one that does nothing.
func (*Reverts) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	return "do this"
}

// ActiveFault is a fault that is active on some pods since now.
func ActiveFault(t *testing.T, pods ...string) *v1alpha1.RedisFault {
	t.Helper()
	now := metav1.NowMicro()
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{
		Namespace:         "ns",
		Name:              "slow",
		UID:               "u",
		CreationTimestamp: metav1.Now(),
	}}
	f.Status.StartTime, f.Status.InjectedAt = &now, &now
	for _, pod := range pods {
		f.Status.Targets = append(f.Status.Targets, v1alpha1.FaultTarget{
			Pod:        pod,
			InjectedAt: &now,
			ActiveAt:   &now,
			Revert:     &v1alpha1.RevertRecord{Version: 1, Data: "before"},
		})
	}
	return f
}
