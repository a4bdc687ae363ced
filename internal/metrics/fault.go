package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
)

// ofFault are the labels of a figure of one fault: type makes figures by kind of it.
var ofFault = []string{labelNamespace, labelFault, labelType}

var (
	faultInjections = define(Definition{
		Name:    "redquake_fault_injections_total",
		Kind:    Counter,
		Labels:  []string{labelType},
		Help:    "Faults that were injected, or with type External, marked.",
		Example: `sum by (type) (increase(redquake_fault_injections_total[1d])) > 0`,
	})
	faultEffects = define(Definition{
		Name:    "redquake_fault_effects_total",
		Kind:    Counter,
		Labels:  []string{labelType, labelEffect},
		Help:    "Injected faults that have settled, by whether Redis and the cluster have shown their effect.",
		Example: `sum by (type) (increase(redquake_fault_effects_total{effect!="Confirmed"}[1d])) > 0`,
	})
	faultReverts = define(Definition{
		Name:    "redquake_fault_reverts_total",
		Kind:    Counter,
		Labels:  []string{labelType},
		Help:    "Injected faults that were reverted on every target. Types that leave nothing to revert count, too.",
		Example: `sum by (type) (increase(redquake_fault_reverts_total[1d])) > 0`,
	})
	faultRevertFailures = define(Definition{
		Name:    "redquake_fault_revert_failures_total",
		Kind:    Counter,
		Labels:  []string{labelType},
		Help:    "Faults of which the operator has abandoned the revert on a target: a person has to revert them.",
		Example: `sum by (type) (increase(redquake_fault_revert_failures_total[1h])) > 0`,
	})
	faultOverstays = define(Definition{
		Name:    "redquake_fault_overstays_total",
		Kind:    Counter,
		Labels:  []string{labelType},
		Help:    "Faults that stayed for more than 2 s longer than asked.",
		Example: `sum by (type) (increase(redquake_fault_overstays_total[1d])) > 0`,
	})
	faultsEnded = define(Definition{
		Name:    "redquake_fault_ended_total",
		Kind:    Counter,
		Labels:  []string{labelType, labelVerdict},
		Help:    "Faults that have ended, by verdict.",
		Example: `sum by (type, verdict) (increase(redquake_fault_ended_total[7d])) > 0`,
	})

	faultInfo = define(Definition{
		Name: "redquake_fault_info",
		Kind: Gauge,
		Labels: []string{
			labelNamespace, labelFault, labelType, labelLoadTest, labelState, labelEffect,
			labelVerdict,
		},
		Help: "1 for each RedisFault, with its state: Pending, Active, Reverting, Recovering, " +
			"Settled, Suspended, Complete or Failed. loadtest is absent if that does not exist.",
		Example: `count by (type, state) (max by (namespace, fault, type, state) (redquake_fault_info))`,
	})
	faultInjected = define(Definition{
		Name:    "redquake_fault_injected_timestamp_seconds",
		Kind:    Gauge,
		Unit:    "seconds since 1970",
		Labels:  ofFault,
		Help:    "When a fault was injected: t0.",
		Example: `1000 * max by (namespace, fault, type) (redquake_fault_injected_timestamp_seconds)`,
	})
	faultReverted = define(Definition{
		Name:    "redquake_fault_reverted_timestamp_seconds",
		Kind:    Gauge,
		Unit:    "seconds since 1970",
		Labels:  ofFault,
		Help:    "When a fault was reverted on every target, or its revert abandoned.",
		Example: `1000 * max by (namespace, fault, type) (redquake_fault_reverted_timestamp_seconds)`,
	})
	faultRecovered = define(Definition{
		Name:    "redquake_fault_recovered_timestamp_seconds",
		Kind:    Gauge,
		Unit:    "seconds since 1970",
		Labels:  ofFault,
		Help:    "When the load had recovered from a fault; absent before, and if it has not.",
		Example: `1000 * max by (namespace, fault, type) (redquake_fault_recovered_timestamp_seconds)`,
	})
	faultOverstayed = define(Definition{
		Name:    "redquake_fault_overstayed_seconds",
		Kind:    Gauge,
		Unit:    "seconds",
		Labels:  ofFault,
		Help:    "By how much longer than asked a fault has stayed so far; absent up to 2 s.",
		Example: `max by (namespace, fault, type) (redquake_fault_overstayed_seconds)`,
	})
	faultRevertsFailing = define(Definition{
		Name:    "redquake_fault_reverts_failing",
		Kind:    Gauge,
		Labels:  ofFault,
		Help:    "Targets of a fault on which the last attempts to revert have failed; the operator goes on trying.",
		Example: `max by (namespace, fault, type) (redquake_fault_reverts_failing) > 0`,
	})
	faultRevertsAbandoned = define(Definition{
		Name:    "redquake_fault_reverts_abandoned",
		Kind:    Gauge,
		Labels:  ofFault,
		Help:    "Targets of a fault on which the operator has abandoned the revert: a person has to revert it there.",
		Example: `max by (namespace, fault, type) (redquake_fault_reverts_abandoned) > 0`,
	})
	faultOutage = define(Definition{
		Name:   "redquake_fault_outage_seconds",
		Kind:   Gauge,
		Unit:   "seconds",
		Labels: ofFault,
		Help: "Longest time without a success because of a fault, so far, of the load, a part of it " +
			"or the probe: impact.outage.value of its status, which has the bounds as well.",
		Example: `max by (type) (max_over_time(redquake_fault_outage_seconds[7d]))`,
	})
	faultRecovery = define(Definition{
		Name:    "redquake_fault_recovery_seconds",
		Kind:    Gauge,
		Unit:    "seconds",
		Labels:  ofFault,
		Help:    "Time from the injection to sustained recovery: impact.recoveryTime.value of the status of a fault; absent without a recovery.",
		Example: `max by (type) (max_over_time(redquake_fault_recovery_seconds[7d]))`,
	})
	faultDip = define(Definition{
		Name:   "redquake_fault_dip_ratio",
		Kind:   Gauge,
		Unit:   "share, from 0 to 1",
		Labels: ofFault,
		Help: "Largest drop of the throughput because of a fault, so far, as a share of the " +
			"baseline: impact.dip.value of its status, of all requests or of one kind.",
		Example: `max by (type) (max_over_time(redquake_fault_dip_ratio[7d]))`,
	})
	faultLostWrites = define(Definition{
		Name:   "redquake_fault_lost_writes",
		Kind:   Gauge,
		Labels: ofFault,
		Help: "Acknowledged writes that were certainly lost because of a fault; absent while " +
			"unknown, and if the load test does not verify writes.",
		Example: `max by (namespace, fault, type) (redquake_fault_lost_writes) > 0`,
	})
)

// faultCounters count what this process has done, by type.
type faultCounters struct {
	injections, effects, reverts, failures, overstays, ended *prometheus.CounterVec
}

// newFaultCounters returns counters that begin with 0 for each label: the increase to the first
// fault counts as well.
func newFaultCounters() faultCounters {
	c := faultCounters{
		injections: faultInjections.counters(),
		effects:    faultEffects.counters(),
		reverts:    faultReverts.counters(),
		failures:   faultRevertFailures.counters(),
		overstays:  faultOverstays.counters(),
		ended:      faultsEnded.counters(),
	}
	for _, t := range v1alpha1.FaultTypes {
		for _, of := range []*prometheus.CounterVec{c.injections, c.reverts, c.failures, c.overstays} {
			of.WithLabelValues(string(t))
		}
		for _, effect := range []v1alpha1.Effect{
			v1alpha1.EffectConfirmed, v1alpha1.EffectNotObserved,
			v1alpha1.EffectInconclusive,
		} {
			c.effects.WithLabelValues(string(t), string(effect))
		}
		for _, verdict := range verdicts {
			c.ended.WithLabelValues(string(t), verdict)
		}
	}
	return c
}

func (c *faultCounters) collect(out chan<- prometheus.Metric) {
	for _, of := range []*prometheus.CounterVec{
		c.injections, c.effects, c.reverts, c.failures,
		c.overstays, c.ended,
	} {
		of.Collect(out)
	}
}

// FaultStored counts what a write of a fault's status has made true. Call it once after each write,
// with the status that was read and the one that was stored: as the write fails if anybody else has
// changed the fault, each change is counted once.
func (m *Metrics) FaultStored(kind v1alpha1.FaultType, before, after *v1alpha1.RedisFaultStatus) {
	if m == nil {
		return
	}
	t, c := string(kind), &m.faults
	if isNew(before.InjectedAt, after.InjectedAt) {
		c.injections.WithLabelValues(t).Inc()
	}
	if isNew(before.RevertedAt, after.RevertedAt) && after.InjectedAt != nil && !anyAbandoned(after) {
		c.reverts.WithLabelValues(t).Inc()
	}
	if !anyAbandoned(before) && anyAbandoned(after) {
		c.failures.WithLabelValues(t).Inc()
	}
	if before.Overstayed == nil && after.Overstayed != nil {
		c.overstays.WithLabelValues(t).Inc()
	}
	if isNew(before.SettledTime, after.SettledTime) && after.InjectedAt != nil {
		c.effects.WithLabelValues(t, string(cmp.Or(after.Effect, v1alpha1.EffectInconclusive))).Inc()
	}
	if isNew(before.CompletionTime, after.CompletionTime) {
		c.ended.WithLabelValues(t, verdictOf(after.Verdict)).Inc()
	}
}

// isNew reports whether an instant was stored that was not known before.
func isNew(before, after *metav1.MicroTime) bool {
	return before == nil && after != nil
}

func anyAbandoned(status *v1alpha1.RedisFaultStatus) bool {
	return slices.ContainsFunc(status.Targets, func(t v1alpha1.FaultTarget) bool {
		return t.RevertAbandoned
	})
}

func collectFaults(out chan<- prometheus.Metric, objects *Objects) {
	loads := map[types.NamespacedName]bool{}
	for i := range objects.LoadTests {
		loads[types.NamespacedName{
			Namespace: objects.LoadTests[i].Namespace,
			Name:      objects.LoadTests[i].Name,
		}] = true
	}
	for i := range objects.Faults {
		f := &objects.Faults[i]
		load := f.Status.LoadTest
		if !loads[types.NamespacedName{Namespace: f.Namespace, Name: load}] {
			load = ""
		}
		of := []string{f.Namespace, f.Name, string(f.Spec.Action.Type)}
		faultInfo.set(out, 1, append(slices.Clone(of), load, faultState(&f.Status),
			string(f.Status.Effect), string(f.Status.Verdict))...)
		collectFault(out, of, &f.Status)
		if i := f.Status.Impact; i != nil {
			collectImpact(out, of, i)
		}
	}
}

// collectFault sends what has happened to a fault.
func collectFault(out chan<- prometheus.Metric, of []string, status *v1alpha1.RedisFaultStatus) {
	at := func(f *family, t *metav1.MicroTime) {
		if t != nil {
			f.set(out, float64(t.UnixMicro())/1e6, of...)
		}
	}
	at(faultInjected, status.InjectedAt)
	at(faultReverted, status.RevertedAt)
	at(faultRecovered, status.RecoveredAt)
	if late := status.Overstayed; late != nil {
		faultOverstayed.set(out, late.Duration.Seconds(), of...)
	}
	if status.StartTime == nil { // no targets are recorded yet
		return
	}
	failing, abandoned := 0, 0
	for i := range status.Targets {
		switch t := &status.Targets[i]; {
		case t.RevertAbandoned:
			abandoned++
		case t.RevertedAt == nil && t.RevertAttempts > 0:
			failing++
		}
	}
	faultRevertsFailing.set(out, float64(failing), of...)
	faultRevertsAbandoned.set(out, float64(abandoned), of...)
}

// collectImpact sends the figures of a fault.
func collectImpact(out chan<- prometheus.Metric, of []string, i *v1alpha1.Impact) {
	// not Duration.Seconds, which is inexact in the last digit
	seconds := func(d v1alpha1.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
	if i.Outage != nil {
		faultOutage.set(out, seconds(i.Outage.Value), of...)
	}
	if i.RecoveryTime != nil {
		faultRecovery.set(out, seconds(i.RecoveryTime.Value), of...)
	}
	if i.Dip != nil {
		if dip, known := i.Dip.Value.Number(); known {
			faultDip.set(out, dip, of...)
		}
	}
	switch {
	case i.LostWrites != nil:
		faultLostWrites.set(out, float64(*i.LostWrites), of...)
	case i.LostWritesAtLeast != nil:
		faultLostWrites.set(out, float64(*i.LostWritesAtLeast), of...)
	}
}

// faultState is where a fault stands.
func faultState(status *v1alpha1.RedisFaultStatus) string {
	ended := endedOf(status.Conditions)
	switch {
	case ended != "":
		return ended
	case status.SettledTime != nil:
		return "Settled"
	case status.RevertedAt != nil && status.InjectedAt != nil:
		return "Recovering"
	case status.RevertingSince != nil && status.InjectedAt != nil:
		return "Reverting"
	case status.InjectedAt != nil:
		return "Active"
	}
	return statePending
}
