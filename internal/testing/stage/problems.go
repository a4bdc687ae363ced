//go:build integration

package stage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// LeftPaused returns the servers that are paused although the fault has finished. A pause expires,
// so it must be detected at once. After a stall of the machine the result is not reliable.
func (s *Stage) LeftPaused() (paused []string) {
	free := func() bool {
		paused = waitingIn(s.Shows())
		return len(paused) == 0
	}
	if s.Within(2*time.Second, free) ||
		operatortest.StalledSince(time.Now().Add(-5*time.Second)) && s.Within(20*time.Second, free) {
		return nil
	}
	return paused
}

// waitingIn returns the servers that do not answer clients.
func waitingIn(shows map[string]string) []string {
	var waiting []string
	for name, value := range shows {
		if strings.HasSuffix(name, "publishes") &&
			(strings.Contains(value, "timeout") || strings.Contains(value, "deadline")) {
			waiting = append(waiting, name+": "+value)
		}
	}
	return waiting
}

// PushOn aborts a fault that only waits for recovery, and reports whether it has finished.
func (s *Stage) PushOn(name string) bool {
	f := s.Fault(name)
	if state.IsFinished(f.Status.Conditions) {
		return len(f.Finalizers) == 0
	}
	if operatortest.Reason(f.Status.Conditions) == v1alpha1.ReasonObserving && !f.Spec.Abort {
		s.MustChange(operatortest.Change(s.Place, f, func(f *v1alpha1.RedisFault) {
			f.Spec.Abort = true
		}))
	}
	return false
}

// ProblemsIn returns what is wrong in the record of a fault.
func (k Kind) ProblemsIn(f *v1alpha1.RedisFault) []string {
	var wrong []string
	if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete); c == nil ||
		c.Status != metav1.ConditionTrue {
		wrong = append(wrong, "it is not complete: "+operatortest.Where(f.Status.Conditions))
	}
	want := max(1, k.targets)
	if n := len(f.Status.Targets); n != want {
		return append(wrong, fmt.Sprintf("it has %d records", n))
	}
	for _, t := range f.Status.Targets {
		if t.InjectedAt == nil || t.RevertedAt == nil || t.RevertAbandoned {
			wrong = append(wrong, fmt.Sprintf("its record: %+v", t))
		}
	}
	injections := slices.DeleteFunc(operatortest.TimelineOf(f), func(event string) bool {
		return event != "Injected"
	})
	if len(injections) != want {
		wrong = append(wrong, fmt.Sprintf("its timeline has %d injections: %v", len(injections),
			operatortest.TimelineOf(f)))
	}
	if seen := f.Status.Effect; seen == "" || seen == v1alpha1.EffectNotObserved && !k.Fades {
		wrong = append(wrong, fmt.Sprintf("its effect is %q: %s", f.Status.Effect,
			f.Status.EffectEvidence))
	}
	return wrong
}

// KindsNamed are kinds of the crash test.
func KindsNamed(names ...string) []Kind {
	var kinds []Kind
	for _, name := range names {
		i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
		kinds = append(kinds, Kinds[i])
	}
	return kinds
}

// OperationOf is the declaration of the fault of a kind.
func OperationOf(kind Kind) *declared.Kind {
	spec := v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: kind.Fault}}
	if kind.needs == NeedsMesh {
		spec.Engine = v1alpha1.EngineChaosMesh
	}
	return declared.Of(&spec)
}

const (
	// Planted is part of every password in TestPasswordsAreFoundNowhere.
	Planted = "pLaNtEd"
	// PlantedLabel marks the Secrets that hold it.
	PlantedLabel = "planted"
)
