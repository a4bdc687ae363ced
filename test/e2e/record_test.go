//go:build e2e

package e2e_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// record reads the full record of a finished test from its results ConfigMap.
func (n *namespace) record(test *v1alpha1.RedisLoadTest) *merged.Series {
	n.Helper()
	if test.Status.Results == nil {
		n.Fatalf("RedisLoadTest %s has no results", test.Name)
	}
	stored := &corev1.ConfigMap{}
	if !n.get(test.Status.Results.ConfigMap, stored) {
		n.Fatalf("there is no results ConfigMap %s", test.Status.Results.ConfigMap)
	}
	series, err := merged.Decode(stored.BinaryData[children.ResultsSeriesKey])
	if err != nil {
		n.Fatalf("decode the record: %v", err)
	}
	return series
}

// total sums a record's counts from an instant on, by operation and over all.
func total(series *merged.Series, from time.Duration) (all record.Counts, byName map[string]*record.Counts) {
	byName = map[string]*record.Counts{}
	for _, name := range series.Ops {
		byName[name] = &record.Counts{}
	}
	for i := range series.Len() {
		if time.Duration(i)*series.Step < from {
			continue
		}
		for k, op := range series.At(i).Ops {
			for _, sum := range []*record.Counts{&all, byName[series.Ops[k]]} {
				sum.Due += op.Due
				sum.Sent += op.Sent
				sum.OK += op.OK
				sum.Fail += op.Fail
				sum.Unknown += op.Unknown
				sum.Dropped += op.Dropped
			}
		}
	}
	return all, byName
}

// measuredFrom is the end of a test's ramp-up and warm-up.
func measuredFrom(test *v1alpha1.RedisLoadTest) time.Duration {
	load := &test.Spec.Load
	from := time.Duration(0)
	if load.RampUp != nil {
		from += load.RampUp.Duration
	}
	if load.WarmUp != nil {
		from += load.WarmUp.Duration
	}
	return from
}

// sumsAgree checks that the status's figures are those of the stored record.
func (n *namespace) sumsAgree(test *v1alpha1.RedisLoadTest, series *merged.Series) {
	n.Helper()
	s := test.Status.Summary
	if s == nil {
		n.Fatal("there is no summary")
	}
	all, byName := total(series, measuredFrom(test))
	outcomes := func(c *record.Counts) int64 { return int64(c.OK + c.Fail + c.Unknown + c.Dropped) }
	errors := func(c *record.Counts) int64 { return int64(c.Fail + c.Unknown + c.Dropped) }
	if s.Requests != outcomes(&all) || s.Errors != errors(&all) || s.Failed != int64(all.Fail) ||
		s.Unknown != int64(all.Unknown) || s.Dropped != int64(all.Dropped) {
		n.Errorf("the summary has %d requests, %d errors (%d failed, %d unknown, %d dropped); the record %d, %d (%d, %d, %d)",
			s.Requests, s.Errors, s.Failed, s.Unknown, s.Dropped, outcomes(&all), errors(&all), all.Fail, all.Unknown,
			all.Dropped)
	}
	if len(s.Operations) != len(byName) {
		n.Errorf("the summary has %d operations, the record %d", len(s.Operations), len(byName))
	}
	for _, op := range s.Operations {
		if c := byName[op.Name]; c == nil || op.Requests != outcomes(c) || op.Errors != errors(c) {
			n.Errorf("operation %s: the summary has %d requests, %d errors; the record %+v", op.Name, op.Requests, op.Errors, c)
		}
	}
}

// abortTakes is how long an abort may take from the first load pod to the last.
const abortTakes = 10 * time.Second

// endLoad aborts a load that has served its purpose, and waits for its end.
func (n *namespace) endLoad(name string) *v1alpha1.RedisLoadTest {
	n.Helper()
	n.patch(n.loadTest(name), `{"spec":{"abort":true}}`)
	var test *v1alpha1.RedisLoadTest
	n.watched(patience, name+" has been aborted", &v1alpha1.RedisLoadTestList{}, name, func() (bool, string) {
		test = n.loadTest(name)
		reason, message, complete, _ := completeReason(test.Status.Conditions)
		return complete && reason == v1alpha1.ReasonAborted, reason + ": " + message
	})
	return test
}

// recordIsWhole checks that no interval is missing and that the requests match the schedule.
func (n *namespace) recordIsWhole(test *v1alpha1.RedisLoadTest, series *merged.Series) {
	n.Helper()
	load := &test.Spec.Load
	length := measuredFrom(test) + load.Duration.Duration
	if series.Lost() != 0 || !series.Ended() || series.Complete() != series.Len() {
		n.Errorf("the record: %d pods lost, ended %v, %d of %d intervals complete", series.Lost(), series.Ended(),
			series.Complete(), series.Len())
	}
	if off := series.Start.Sub(test.Status.StartTime.Time).Abs(); off > time.Millisecond {
		n.Errorf("the record begins %s off status.startTime", off)
	}
	if test.Spec.Abort { // the pods end one after the other
		length = series.End() - abortTakes
	}
	// A request that is in flight when the load ends may have its outcome in an interval beyond.
	if end := series.End(); end < length || end > length+30*time.Second {
		n.Errorf("the record is %s long, want %s", end, length)
	}
	for i := range series.Len() {
		if iv := series.At(i); iv.Pods != series.Pods && time.Duration(i)*series.Step < length {
			n.Errorf("interval %d has the record of %d of %d pods", i, iv.Pods, series.Pods)
		}
	}
	scheduled := float64(*load.Rate) * length.Seconds()
	if load.RampUp != nil {
		scheduled -= float64(*load.Rate) * load.RampUp.Duration.Seconds() / 2
	}
	all, _ := total(series, 0)
	if due := float64(all.Due); !test.Spec.Abort && (due < 0.99*scheduled || due > 1.01*scheduled) {
		n.Errorf("%.0f requests were due, the schedule has %.0f", due, scheduled)
	}
	inFlight := uint64(0) // what an abort cuts off has no outcome
	if test.Spec.Abort {
		inFlight = max(v1alpha1.DefaultConnections, uint64(test.Spec.Client.Connections)) * uint64(series.Pods)
	}
	if outcomes := all.OK + all.Fail + all.Unknown + all.Dropped; outcomes > all.Due || all.Due-outcomes > inFlight {
		n.Errorf("%d requests were due, %d have an outcome", all.Due, outcomes)
	}
	if all.Sent > all.Due || all.Sent < all.OK+all.Unknown {
		n.Errorf("%d requests were sent, %d due, %d of them answered well or unknown", all.Sent, all.Due, all.OK+all.Unknown)
	}
	n.Logf("record: %d intervals of %s, scheduled %.0f, due %d, sent %d, ok %d, fail %d, unknown %d, dropped %d",
		series.Len(), series.Step, scheduled, all.Due, all.Sent, all.OK, all.Fail, all.Unknown, all.Dropped)
}
