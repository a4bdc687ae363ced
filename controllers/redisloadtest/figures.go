package redisloadtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
)

// trendWidth is the number of characters of the throughput graph.
const trendWidth = 20

// setFigures sets everything that is computed from the record.
func (s *scope) setFigures(now time.Time, final bool) {
	status := &s.test.Status
	if s.plan == nil || s.seen.StartedAt.IsZero() {
		return
	}
	in := result.LoadInput{
		Outcome:        result.Interrupted,
		Faults:         s.faultWindows(now),
		ServerCPULimit: s.serverCPULimit,
		Search:         s.searchResult(),
	}
	if final && s.session.Finished {
		in.Outcome = result.Finished
	}
	for i := range status.Exits {
		e := &status.Exits[i]
		in.Exits = append(in.Exits, result.Exit{
			Times:       int(e.Times),
			OutOfMemory: e.Reason == "OOMKilled",
			Message:     e.Message,
		})
	}
	trend := ""
	read := s.run.Read(func(series *merged.Series) {
		if final {
			s.result = result.NewLoad(s.plan, series, in)
		} else {
			s.result = result.LoadSoFar(s.plan, series, in)
		}
		status.Progress = s.progress(series, now, final)
		trend = throughput.Trend(series, trendWidth)
		s.holes = series.Holes()
	})
	s.setFaults()
	if !read {
		return
	}
	status.Summary = digest.Summary(s.result)
	status.Redis = digest.Redis(s.result.Redis)
	status.Display = s.display(trend)
	if final {
		status.Anomalies = s.anomalies()
		status.Warnings = nil
		for _, w := range s.result.Warnings {
			status.Warnings = append(status.Warnings, digest.Truncate(w, 512))
		}
	}
	if b := s.result.Bottleneck; b != nil {
		status.Bottleneck = &v1alpha1.Bottleneck{
			Component: v1alpha1.BottleneckComponent(b.Component),
			Pods:      b.Pods,
			Evidence:  digest.Truncate(b.Evidence, 512),
		}
	}
}

// searchResult returns the result of the search so far; nil for a load without one.
func (s *scope) searchResult() *result.Search {
	if s.searching == nil {
		return nil
	}
	return &result.Search{
		Rate:    s.searching.next.Found,
		Done:    s.searching.next.Done,
		Message: s.searching.message(),
		Tried:   s.searching.trials,
	}
}

// progress returns the completed part of the run, in percent.
func (s *scope) progress(series *merged.Series, now time.Time, final bool) int32 {
	if final && s.session.Finished && !s.seen.Abort {
		return 100
	}
	share := 0.0
	if length := s.plan.Shape.Length() - s.seen.Extension; length > 0 {
		share = float64(now.Sub(s.seen.StartedAt)) / float64(length)
	}
	if n := s.plan.Shape.Requests; n > 0 {
		share = max(share, float64(series.Requests())/float64(n))
	}
	return int32(100 * min(max(share, 0), 1))
}

// display returns the main figures as text.
func (s *scope) display(trend string) *v1alpha1.LoadTestDisplay {
	r := s.result
	d := &v1alpha1.LoadTestDisplay{Progress: fmt.Sprintf("%d%%", s.test.Status.Progress), Trend: trend}
	if r.Total.Requests > 0 { // nothing was measured in a ramp-up
		d.TPS = format.Rate(r.Total.Throughput)
		d.Errors = format.Share(r.Total.ErrorRate)
	}
	if r.Total.Latency != nil {
		d.P99 = format.Duration(time.Duration(r.Total.Latency.P99))
	}
	var faults []string
	for _, f := range s.test.Status.Faults {
		faults = append(faults, strings.TrimSpace(f.Name+" "+string(f.Verdict)))
	}
	d.Faults = digest.Truncate(strings.Join(faults, ", "), 256)
	return d
}

// faultWindows returns the windows that faults explain, from the start of the load: from each
// injection to its recovery or its deadline, and at least until its revert if it lasts. The
// recovery from a lasting fault begins with its revert, and so does its deadline.
func (s *scope) faultWindows(now time.Time) []summary.Window {
	var windows []summary.Window
	for i := range s.faults {
		f := &s.faults[i]
		if f.Status.InjectedAt == nil {
			continue
		}
		from := state.InjectedAfter(&f.Status, s.seen.StartedAt)
		stay := stayOf(f, now)
		length := stay + f.Spec.RecoveryDeadline.Duration
		if i := f.Status.Impact; i != nil && i.Recovered && i.RecoveryTime != nil {
			length = max(stay, i.RecoveryTime.Value.Duration())
		}
		// The interval before t0 belongs to the fault as well, and so does the last second of its
		// recovery: windows are 1 s long.
		windows = append(windows, summary.Window{
			From: from - s.plan.Interval,
			To:   from + length + time.Second,
		})
	}
	return windows
}

// stayOf returns the time from the injection of a lasting fault to its revert, or to now if it is
// not reverted; 0 for other faults.
func stayOf(f *v1alpha1.RedisFault, now time.Time) time.Duration {
	if !fault.TraitsOf(&f.Spec).Stays() {
		return 0
	}
	abandoned := func(t v1alpha1.FaultTarget) bool { return t.RevertAbandoned }
	if at := f.Status.RevertedAt; at != nil && !slices.ContainsFunc(f.Status.Targets, abandoned) {
		now = at.Time
	}
	return now.Sub(f.Status.InjectedAt.Time)
}

// maxAnomalies is the number of anomalies that a status can list.
const maxAnomalies = 32

func (s *scope) anomalies() []v1alpha1.Anomaly {
	var out []v1alpha1.Anomaly
	found := s.result.Anomalies
	for _, a := range found[:min(len(found), maxAnomalies)] {
		at := metav1.NewMicroTime(s.seen.StartedAt.Add(time.Duration(a.At)))
		out = append(out, v1alpha1.Anomaly{
			At:     &at,
			Length: v1alpha1.MicrosecondsOf(time.Duration(a.Length)),
			Dip:    v1alpha1.DecimalOf(a.Dip),
		})
	}
	return out
}

// maxFaults is the number of faults that a status can list.
const maxFaults = 64

// setFaults lists the faults that were injected during the load.
func (s *scope) setFaults() {
	slices.SortFunc(s.faults, func(a, b v1alpha1.RedisFault) int {
		return strings.Compare(a.Name,
			b.Name)
	})
	var out []v1alpha1.FaultSummary
	for i := range s.faults {
		f := &s.faults[i]
		if f.Status.InjectedAt == nil || len(out) == maxFaults {
			continue
		}
		out = append(out, digest.FaultSummary(f))
	}
	s.test.Status.Faults = out
}
