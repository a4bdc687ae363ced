package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

func condition(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: message}
}

// States of a run that the objects of the golden files do not have.
func TestStates(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*subject.Input)
		state   report.State
		verdict report.Verdict
		has     []string // in Markdown
		lacks   []string
	}{
		"pending": {
			func(in *subject.Input) {
				in.Series, in.Faults = nil, nil
				in.Test.Status = v1alpha1.RedisLoadTestStatus{
					Conditions: []metav1.Condition{condition("Complete", metav1.ConditionFalse, "1 of 2 load pods connected")},
				}
			},
			report.Pending,
			"",
			[]string{"The load has not begun: 1 of 2 load pods connected."},
			[]string{"Errors", "outage", "curves"},
		},
		"never began": {
			func(in *subject.Input) {
				in.Series, in.Faults = nil, nil
				in.Test.Status = v1alpha1.RedisLoadTestStatus{
					Conditions: []metav1.Condition{
						condition("Failed", metav1.ConditionTrue, "redis:6379 is not ready: connection refused"),
					},
				}
			},
			report.Failed,
			"",
			[]string{"The load never began: redis:6379 is not ready: connection refused.", "kind: RedisLoadTest"},
			[]string{"Errors", "outage", "curves", "Throughput"},
		},
		"ended before it began": {
			func(in *subject.Input) {
				in.Series, in.Faults = nil, nil
				in.Test.Status = v1alpha1.RedisLoadTestStatus{
					Conditions: []metav1.Condition{
						condition("Complete", metav1.ConditionTrue, "spec.abort was set before the load began"),
					},
				}
			},
			report.Complete,
			"",
			[]string{"The load never began: spec.abort was set before the load began."},
			[]string{"Errors", "outage", "curves", "Throughput", "were served"},
		},
		"running": {func(in *subject.Input) {
			in.Faults[0].Status.SettledTime, in.Faults[0].Status.Verdict = nil, ""
			in.Faults[0].Status.Impact.Recovered, in.Faults[0].Status.Impact.RecoveryTime, in.Faults[0].Status.Impact.Phases = false,
				nil, nil
			in.Test.Status.Verdict, in.Test.Status.Conditions = "", []metav1.Condition{
				condition("Complete", metav1.ConditionFalse, "running"),
			}
		}, report.Running, "", []string{"are served so far", "so far."}, []string{"was not back"}},
		"failed": {func(in *subject.Input) {
			in.Test.Status.Verdict, in.Test.Status.Conditions = "", []metav1.Condition{
				condition("Failed", metav1.ConditionTrue, "load pod 1 was lost"),
			}
		}, report.Failed, "", []string{"The load did not run to its end: load pod 1 was lost."}, nil},
		"no record": {
			func(in *subject.Input) { in.Series = nil },
			report.Complete,
			report.Pass,
			[]string{"Without the record of the load there are no curves.", "left the clients"},
			nil,
		},
		"no ledger": {func(in *subject.Input) {
			in.Test.Spec.Verify, in.Test.Status.Verification, in.Test.Status.Summary.LostWrites,
				in.Faults[0].Status.Impact.LostWrites = nil, nil, nil, nil
		}, report.Complete, report.Pass, []string{"Lost writes | not measured"}, []string{"read back"}},
		"losses in bounds": {func(in *subject.Input) {
			v := in.Test.Status.Verification
			v.LostWrites, v.LostWritesAtLeast, v.LostWritesAtMost = nil, new(int64(3)), new(int64(7))
		}, report.Complete, report.Pass, []string{"| 3–7 |"}, nil},
		"a cluster": {
			func(in *subject.Input) {
				in.Faults[0].Status.Impact.Outage = &v1alpha1.Outage{
					BoundedDuration: v1alpha1.BoundedDuration{
						Value:   v1alpha1.DurationOf(9 * time.Second),
						AtLeast: v1alpha1.DurationOf(9 * time.Second),
						AtMost:  v1alpha1.DurationOf(9_010 * time.Millisecond),
					},
					Of:    v1alpha1.OutageOfShard,
					Shard: new(int32(2)),
				}
				in.Test.Status.Summary.Shards = []v1alpha1.ShardSummary{
					{Shard: 0, Throughput: "200"},
					{Shard: 2, Throughput: "150", LongestGap: new(v1alpha1.DurationOf(9 * time.Second))},
				}
			},
			report.Complete,
			report.Pass,
			[]string{"left the clients of shard 2 without a single answer", "Shard 2 had the longest outage, 9 s"},
			nil,
		},
		"no faults": {
			func(in *subject.Input) { in.Faults = nil },
			report.Complete,
			report.Pass,
			[]string{"were served"},
			[]string{"kill-primary:", "left the clients"},
		},
		"a fault of another test": {
			func(in *subject.Input) { in.Faults[0].Status.LoadTest = "other" },
			report.Complete,
			report.Pass,
			[]string{"were served"},
			[]string{"left the clients"},
		},
		"a setting": {
			func(in *subject.Input) { in.Faults[0].Spec.Setting = true },
			report.Complete,
			report.Pass,
			[]string{"were served", "kind: RedisFault"},
			[]string{"left the clients"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := saved(t, "pass")
			tc.change(&in)
			d := LoadTest(in)
			if d.State != tc.state || d.Verdict != tc.verdict {
				t.Errorf("%s, %q; want %s, %q", d.State, d.Verdict, tc.state, tc.verdict)
			}
			text := strings.ReplaceAll(written(t, "md", d), "\u00a0", " ")
			for _, want := range tc.has {
				if !strings.Contains(text, want) {
					t.Errorf("lacks %q:\n%s", want, text)
				}
			}
			for _, no := range tc.lacks {
				if strings.Contains(text, no) {
					t.Errorf("has %q:\n%s", no, text)
				}
			}
			written(t, "html", d)
		})
	}
}

// The CPU limit of a server's container is beside its use, and the share of it among what was looked at.
func TestCPULimitOfAServer(t *testing.T) {
	for limit, want := range map[*int64]bool{nil: false, new(int64(2500)): true} {
		in := saved(t, "demo")
		in.Test.Status.Servers[0].CPU.Limit = limit
		text := strings.ReplaceAll(written(t, "md", LoadTest(in)), "\u00a0", " ")
		for _, part := range []string{"container’s limit", strings.ReplaceAll(report.Cores(2500), "\u00a0", " ")} {
			if strings.Contains(text, part) != want {
				t.Errorf("%q in a report with the limit %v: %v, want %v\n%s", part, limit, !want, want, text)
			}
		}
	}
}

// A fault that was never injected, and one that is not there.
func TestFaultsWithoutFigures(t *testing.T) {
	in := saved(t, "pass")
	in.Faults[0].Status = v1alpha1.RedisFaultStatus{
		LoadTest:   in.Test.Name,
		Conditions: []metav1.Condition{condition("Failed", metav1.ConditionTrue, "the throughput was not steady")},
	}
	d, err := Fault(in, "kill-primary")
	if err != nil || d.State != report.Failed ||
		!strings.Contains(d.Finding.String(), "was not injected: the throughput was not steady.") {
		t.Errorf("%v, %+v", err, d)
	}
	if d, err = Fault(in, "other"); err == nil ||
		!strings.Contains(err.Error(), "there is no RedisFault other, but kill-primary") {
		t.Errorf("%v, %+v", err, d)
	}
}

// Records of all released versions have a report. Without the result of the run it is inconclusive, in JUnit an error
// that says why.
func TestRecordsAlone(t *testing.T) {
	files, err := filepath.Glob("../../record/merged/testdata/series-v*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d records, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		series, err := merged.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		d := LoadTest(subject.Input{Name: "earlier", Series: series})
		if d.Series == nil || len(d.Figures) < 5 || d.Figures[0].Value == nil || *d.Figures[0].Value == 0 {
			t.Errorf("%s: %+v", file, d.Figures)
		}
		if html := written(t, "html", d); !strings.Contains(html, `id="c-tps"`) {
			t.Errorf("%s: there is no curve", file)
		}
		if xml := written(t, "xml", d); d.Verdict != report.Inconclusive || !strings.Contains(xml, `errors="1"`) ||
			!strings.Contains(xml, `NoResult: the record has no result of its run`) {
			t.Errorf("%s: %s\n%s", file, d.Verdict, xml)
		}
	}
}

// Names and messages of a hostile cluster or server are text in every form.
func TestHostileText(t *testing.T) {
	const evil = "<script>alert(1)</script>|`*_[x](http://e.vil)@team\u202e</style>\n# head"
	in := saved(t, "pass")
	in.Test.Name, in.Test.Namespace = evil, evil
	in.Test.Status.Bottleneck = &v1alpha1.Bottleneck{Component: evil, Evidence: evil}
	in.Test.Status.Target.Version, in.Test.Status.Target.Message = evil, evil
	in.Test.Status.Summary.Operations[0].Name = evil
	in.Test.Status.Servers = []v1alpha1.ServerUse{
		{Address: evil, Pod: evil, Slowest: []v1alpha1.SlowCommand{{Command: evil}}},
	}
	in.Test.Spec.Workload.Commands[0].Command = []string{evil, "```\n</pre>"}
	f := &in.Faults[0]
	f.Namespace, f.Status.LoadTest, f.Status.EffectEvidence = evil, evil, evil
	f.Status.Targets[0].Pod = evil
	f.Status.Impact.Doubts = []v1alpha1.Doubt{{Reason: evil, Message: evil}}
	f.Status.Impact.Operations[0].Name = evil
	f.Status.Impact.Phases[0].Name = evil
	f.Status.Timeline[0].Message, f.Status.Timeline[0].Object, f.Status.Timeline[0].Event = evil, evil, evil
	f.Status.Objectives[0].Message = evil
	one, err := Fault(in, f.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*report.Document{LoadTest(in), one} {
		html := written(t, "html", d)
		if strings.Contains(html, "<script>alert") || strings.Count(html, "<script") != 3 ||
			strings.Count(html, "</style>") != 1 || strings.Count(html, "</pre>") != strings.Count(html, "<pre") {
			t.Error("the page has markup of somebody else")
		}
		text, _, _ := strings.Cut(written(t, "md", d), "### Specification")
		text = strings.ReplaceAll(text, `\]`, "")
		for _, bad := range []string{"<script", "](", "@team", "\n# head", "http://e", "`*"} {
			if strings.Contains(text, bad) {
				t.Errorf("Markdown has %q", bad)
			}
		}
		if _, spec, _ := strings.Cut(written(t, "md", d),
			"### Specification"); !strings.HasPrefix(strings.TrimSpace(spec), "````") {
			t.Errorf("the fence of the specification can be closed by it: %.80s", spec)
		}
		if !strings.Contains(written(t, "xml", d), "&lt;script&gt;") {
			t.Error("JUnit does not have the name")
		}
	}
}

// The result of a load from this machine, without and with its record.
func TestLoadFromThisMachine(t *testing.T) {
	in := saved(t, "pass")
	load := &result.Load{
		Version:  1,
		Outcome:  result.Finished,
		Verdict:  "Fail",
		Why:      "maxLatencyP99 is 3ms, limit 1ms",
		Start:    in.Series.Start,
		Elapsed:  result.Seconds(52 * time.Second),
		Measured: result.Seconds(50 * time.Second),
		Planned:  result.Seconds(52 * time.Second),
		Latency:  result.ResponseTime,
		Asked:    result.Asked{Shape: "open loop, 400 requests/s"},
		Total: result.Operation{
			Name:       "all",
			Requests:   100,
			OK:         98,
			Failed:     2,
			Throughput: 399.5,
			ErrorRate:  .02,
			Latency:    &result.Quantiles{P50: 1e6, P99: 3e6, Max: 4e6},
		},
		Errors: []result.ErrorCount{{Class: "oom", Count: 2, Sample: "OOM command not allowed <b>"}},
		Objectives: []result.Objective{
			{Name: "maxLatencyP99", Unit: result.UnitSeconds, Limit: .001, Actual: new(.003), Met: new(false)},
		},
	}
	for _, series := range []*merged.Series{nil, in.Series} {
		d := LoadTest(subject.Input{Name: "load", Load: load, Series: series})
		if d.Verdict != report.Fail || (d.Series != nil) != (series != nil) ||
			!strings.HasSuffix(d.Finding.String(), "maxLatencyP99 is 3\u00a0ms, limit 1\u00a0ms.") {
			t.Errorf("%s: %s, series %v", d.Verdict, d.Finding, d.Series)
		}
		for _, f := range d.Figures {
			if f.Name == "latencyP99" && f.Of == "" && (f.Judged != report.Missed || f.Limit == nil) {
				t.Errorf("%+v", f)
			}
		}
		if html := written(t, "html", d); !strings.Contains(html, "OOM command not allowed &lt;b&gt;") {
			t.Error("the server's message is missing")
		}
	}
}
