// Package figures puts what a load has measured into the status of its test: the figures, the
// verdict, and what reading the acknowledged writes back has shown.
package figures

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/target/podstate"
)

// trendWidth is the number of characters of the throughput graph.
const trendWidth = 20

// SetFigures sets everything that is computed from the record.
func SetFigures(s *scope.Test, now time.Time, final bool) {
	status := &s.Test.Status
	if s.Plan == nil || s.Seen.StartedAt.IsZero() {
		return
	}
	in := result.LoadInput{
		Outcome:        result.Interrupted,
		Faults:         FaultWindows(s, now),
		ServerCPULimit: s.ServerCPULimit,
		Search:         searchResult(s),
	}
	if final && s.Session.Finished {
		in.Outcome = result.Finished
	}
	for i := range status.Exits {
		e := &status.Exits[i]
		in.Exits = append(in.Exits, result.Exit{
			Times:       int(e.Times),
			OutOfMemory: e.Reason == podstate.OOMKilled,
			Message:     e.Message,
		})
	}
	for i := range s.Session.Pods {
		for _, note := range s.Session.Pods[i].Notes {
			if !slices.Contains(in.Notes, note) {
				in.Notes = append(in.Notes, note)
			}
		}
	}
	trend := ""
	read := s.Run.Read(func(series *merged.Series) {
		if final {
			s.Result = result.NewLoad(s.Plan, series, in)
		} else {
			s.Result = result.LoadSoFar(s.Plan, series, in)
		}
		status.Progress = progress(s, series, now, final)
		trend = throughput.Trend(series, trendWidth)
		s.Holes = series.Holes()
	})
	setFaults(s)
	if !read {
		return
	}
	status.Summary = digest.Summary(s.Result)
	status.Redis = digest.Redis(s.Result.Redis)
	status.Display = display(s, trend)
	if final {
		status.Anomalies = anomalies(s)
		status.Warnings = nil
		for _, w := range s.Result.Warnings {
			status.Warnings = append(status.Warnings, digest.Truncate(w, 512))
		}
	}
	if b := s.Result.Bottleneck; b != nil {
		status.Bottleneck = &v1alpha1.Bottleneck{
			Component: v1alpha1.BottleneckComponent(b.Component),
			Pods:      b.Pods,
			Evidence:  digest.Truncate(b.Evidence, 512),
		}
	}
}

// searchResult returns the result of the search so far; nil for a load without one.
func searchResult(s *scope.Test) *result.Search {
	if s.Searching == nil {
		return nil
	}
	return &result.Search{
		Rate:    s.Searching.Next.Found,
		Done:    s.Searching.Next.Done,
		Message: s.Searching.Message(),
		Tried:   s.Searching.Trials,
	}
}

// progress returns the completed part of the run, in percent.
func progress(s *scope.Test, series *merged.Series, now time.Time, final bool) int32 {
	if final && s.Session.Finished && !s.Seen.Abort {
		return 100
	}
	share := 0.0
	length := s.Plan.Shape.Length() - s.Seen.Extension
	if length > 0 {
		share = float64(now.Sub(s.Seen.StartedAt)) / float64(length)
	}
	if n := s.Plan.Shape.Requests; n > 0 {
		share = max(share, float64(series.Requests())/float64(n))
	}
	return int32(100 * min(max(share, 0), 1))
}

// display returns the main figures as text.
func display(s *scope.Test, trend string) *v1alpha1.LoadTestDisplay {
	r := s.Result
	d := &v1alpha1.LoadTestDisplay{Progress: fmt.Sprintf("%d%%", s.Test.Status.Progress), Trend: trend}
	if r.Total.Requests > 0 { // nothing was measured in a ramp-up
		d.TPS = format.Rate(r.Total.Throughput)
		d.Errors = format.Share(r.Total.ErrorRate)
	}
	if r.Total.Latency != nil {
		d.P99 = format.Duration(time.Duration(r.Total.Latency.P99))
	}
	var faults []string
	for _, f := range s.Test.Status.Faults {
		faults = append(faults, strings.TrimSpace(f.Name+" "+string(f.Verdict)))
	}
	d.Faults = digest.Truncate(strings.Join(faults, ", "), 256)
	return d
}

// FaultWindows returns the windows that faults explain, from the start of the load: from each
// injection to its recovery or its deadline, and at least until its revert if it lasts. The
// recovery from a lasting fault begins with its revert, and so does its deadline.
func FaultWindows(s *scope.Test, now time.Time) []summary.Window {
	var windows []summary.Window
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Status.InjectedAt == nil {
			continue
		}
		from := state.InjectedAfter(&f.Status, s.Seen.StartedAt)
		stay := stayOf(f, now)
		length := stay + f.Spec.RecoveryDeadline.Duration
		i := f.Status.Impact
		if i != nil && i.Recovered && i.RecoveryTime != nil {
			length = max(stay, i.RecoveryTime.Value.Duration)
		}
		// The interval before t0 belongs to the fault as well, and so does the last second of its
		// recovery: windows are 1 s long.
		windows = append(windows, summary.Window{
			From: from - s.Plan.Interval,
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
	at := f.Status.RevertedAt
	if at != nil && !slices.ContainsFunc(f.Status.Targets, abandoned) {
		now = at.Time
	}
	return now.Sub(f.Status.InjectedAt.Time)
}

// maxAnomalies is the number of anomalies that a status can list.
const maxAnomalies = 32

func anomalies(s *scope.Test) []v1alpha1.Anomaly {
	var out []v1alpha1.Anomaly
	found := s.Result.Anomalies
	for _, a := range found[:min(len(found), maxAnomalies)] {
		at := metav1.NewMicroTime(s.Seen.StartedAt.Add(time.Duration(a.At)))
		out = append(out, v1alpha1.Anomaly{
			At:     &at,
			Length: v1alpha1.DurationOf(time.Duration(a.Length)),
			Dip:    v1alpha1.DecimalOf(a.Dip),
		})
	}
	return out
}

// maxFaults is the number of faults that a status can list.
const maxFaults = 64

// setFaults lists the faults that were injected during the load.
func setFaults(s *scope.Test) {
	slices.SortFunc(s.Faults, func(a, b v1alpha1.RedisFault) int {
		return strings.Compare(a.Name,
			b.Name)
	})
	var out []v1alpha1.FaultSummary
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Status.InjectedAt == nil || len(out) == maxFaults {
			continue
		}
		out = append(out, digest.FaultSummary(f))
	}
	s.Test.Status.Faults = out
}
