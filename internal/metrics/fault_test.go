package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
)

// kill is a fault with all figures.
func kill(name string) v1alpha1.RedisFault {
	return v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultHang}},
		Status: v1alpha1.RedisFaultStatus{
			LoadTest:       "cache",
			StartTime:      at(99),
			InjectedAt:     at(100),
			RevertedAt:     at(130),
			RecoveredAt:    at(140),
			SettledTime:    at(150),
			CompletionTime: at(160),
			Overstayed:     new(v1alpha1.DurationOf(3 * time.Second)),
			Targets:        []v1alpha1.FaultTarget{{Pod: "redis-0", RevertAttempts: 3}, {Pod: "redis-1", RevertAbandoned: true}},
			Effect:         v1alpha1.EffectConfirmed,
			Verdict:        v1alpha1.VerdictFail,
			Conditions:     []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}},
			Impact: &v1alpha1.Impact{
				Outage: &v1alpha1.Outage{
					BoundedDuration: v1alpha1.BoundedDuration{
						Value:   v1alpha1.DurationOf(400 * time.Millisecond),
						AtLeast: v1alpha1.DurationOf(390 * time.Millisecond),
						AtMost:  v1alpha1.DurationOf(410 * time.Millisecond),
					},
				},
				RecoveryTime: &v1alpha1.BoundedDuration{Value: v1alpha1.DurationOf(1_100 * time.Millisecond)},
				Dip:          &v1alpha1.Dip{Value: "0.94"},
				LostWrites:   new(int64(7)),
			},
		},
	}
}

// Each change of a status counts once, whatever else is stored with it.
func TestFaultStored(t *testing.T) {
	e := newExporter(t)
	var before, after v1alpha1.RedisFaultStatus
	step := func(change func(*v1alpha1.RedisFaultStatus)) {
		change(&after)
		e.FaultStored(v1alpha1.FaultConfig, &before, &after)
		after.DeepCopyInto(&before)
		e.FaultStored(v1alpha1.FaultConfig, &before, &after) // nothing has changed
	}
	step(func(s *v1alpha1.RedisFaultStatus) {
		s.StartTime, s.Targets = at(1), []v1alpha1.FaultTarget{{Pod: "redis-0"}, {Pod: "redis-1"}}
	})
	step(func(s *v1alpha1.RedisFaultStatus) { s.InjectedAt = at(2) })
	step(func(s *v1alpha1.RedisFaultStatus) { s.Overstayed = new(v1alpha1.DurationOf(2_100 * time.Millisecond)) })
	step(func(s *v1alpha1.RedisFaultStatus) { s.Overstayed = new(v1alpha1.DurationOf(3_100 * time.Millisecond)) })
	step(func(s *v1alpha1.RedisFaultStatus) { s.Targets[1].RevertAbandoned = true })
	step(func(s *v1alpha1.RedisFaultStatus) { s.Targets[0].RevertAbandoned, s.RevertedAt = true, at(3) })
	step(func(s *v1alpha1.RedisFaultStatus) { s.SettledTime = at(4) })
	step(func(s *v1alpha1.RedisFaultStatus) { s.CompletionTime, s.Verdict = at(5), v1alpha1.VerdictInconclusive })
	other := kill("other").Status
	other.Targets = nil
	e.FaultStored(v1alpha1.FaultHang, &v1alpha1.RedisFaultStatus{}, &other) // all at once
	want := `# HELP redquake_fault_%[1]s_total %[2]s
# TYPE redquake_fault_%[1]s_total counter
`
	for name, c := range map[string]struct {
		f    *family
		says []string
	}{
		"injections":      {faultInjections, []string{`{type="Config"} 1`, `{type="Hang"} 1`}},
		"reverts":         {faultReverts, []string{`{type="Hang"} 1`}},
		"revert_failures": {faultRevertFailures, []string{`{type="Config"} 1`}},
		"overstays":       {faultOverstays, []string{`{type="Config"} 1`, `{type="Hang"} 1`}},
		"effects": {
			faultEffects,
			[]string{`{effect="Inconclusive",type="Config"} 1`, `{effect="Confirmed",type="Hang"} 1`},
		},
		"ended": {
			faultsEnded,
			[]string{`{type="Config",verdict="Inconclusive"} 1`, `{type="Hang",verdict="Fail"} 1`},
		},
	} {
		got := nonzero(t, e, "redquake_fault_"+name+"_total")
		slices.Sort(c.says)
		if !slices.Equal(got, c.says) {
			t.Errorf("%s: %v, want %v", fmt.Sprintf(want, name, c.f.Help), got, c.says)
		}
	}
}

// nonzero are the series of a counter that have counted something.
func nonzero(t *testing.T, e *exporter, name string) []string {
	t.Helper()
	families, err := e.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && m.GetCounter().GetValue() > 0 {
				found = append(found, fmt.Sprintf("{%s} %v", labelsOf(m), m.GetCounter().GetValue()))
			}
		}
	}
	slices.Sort(found)
	return found
}

func labelsOf(m *dto.Metric) string {
	var all []string
	for _, l := range m.Label {
		all = append(all, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return strings.Join(all, ",")
}

// Every type of fault is counted from 0.
func TestFaultTypes(t *testing.T) {
	if all := slices.Sorted(slices.Values(v1alpha1.FaultTypes)); !slices.Equal(all, fault.Types()) {
		t.Errorf("%v, want %v", all, fault.Types())
	}
}

func TestFaultState(t *testing.T) {
	for want, status := range map[string]v1alpha1.RedisFaultStatus{
		"Pending":    {StartTime: at(1)},
		"Active":     {InjectedAt: at(1)},
		"Reverting":  {InjectedAt: at(1), RevertingSince: at(2)},
		"Recovering": {InjectedAt: at(1), RevertingSince: at(2), RevertedAt: at(3)},
		"Settled":    {InjectedAt: at(1), RevertedAt: at(3), SettledTime: at(4)},
		"Failed": {
			InjectedAt: at(1),
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue}},
		},
		"Suspended": {Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionTrue}}},
	} {
		if got := faultState(&status); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
