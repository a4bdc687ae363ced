package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
	reports "github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/document"
)

// arrangement is a fault of whose parts each has another outage and another dip.
type arrangement struct {
	outages impact.Outages
	dip     impact.Dip
	dips    impact.Dips
	longest impact.Outage // as it must be everywhere
}

// arrangements are the outages of 1, 2 and 3 s in every order: of the load, a shard and the probe, and of the load, its
// reads and its writes.
func arrangements() map[string]arrangement {
	list := map[string]arrangement{}
	none := durations.Exactly(-1)
	for _, s := range [][3]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		around := func(i int) durations.Bounded {
			d := time.Duration(s[i]) * time.Second
			return durations.Bounded{Value: d, AtLeast: d - 20_400*time.Microsecond, AtMost: d + 10*time.Millisecond}
		}
		longest := func(names ...string) impact.Outage {
			for i := range s {
				if s[i] == 3 {
					return impact.Outage{Bounded: around(i), Of: names[i]}
				}
			}
			return impact.Outage{}
		}
		share := func(i int) float64 { return float64(s[i]) / 4 }
		sharded := arrangement{
			outages: impact.Outages{
				Load:   around(0),
				Shard:  impact.ShardOutage{Bounded: around(1), Shard: 4},
				Probe:  around(2),
				Reads:  none,
				Writes: none,
			},
			dip:     impact.Dip{Value: share(0), Of: impact.All},
			dips:    impact.Dips{All: share(0), Reads: math.NaN(), Writes: math.NaN()},
			longest: longest(impact.Load, impact.Shard, impact.Probe),
		}
		if sharded.longest.Of == impact.Shard {
			sharded.longest.Shard = 4
		}
		list[fmt.Sprintf("load %d s, shard %d s, probe %d s", s[0], s[1], s[2])] = sharded
		mixed := arrangement{
			outages: impact.Outages{
				Load:   around(0),
				Reads:  around(1),
				Writes: around(2),
				Shard:  impact.ShardOutage{Bounded: none},
				Probe:  none,
			},
			dips:    impact.Dips{All: share(0), Reads: share(1), Writes: share(2)},
			longest: longest(impact.Load, impact.Reads, impact.Writes),
		}
		mixed.dip = impact.Dip{Value: .75, Of: strings.Replace(mixed.longest.Of, impact.Load, impact.All, 1)}
		list[fmt.Sprintf("load %d s, reads %d s, writes %d s", s[0], s[1], s[2])] = mixed
	}
	return list
}

// shown is a fault of an arrangement on the run of clitest.Record, as the operator and everything that reads its status
// has it.
type shown struct {
	arrangement
	measured *result.Fault
	test     v1alpha1.RedisLoadTest
	fault    v1alpha1.RedisFault
	stored   *corev1.ConfigMap // the record alone
	kept     *corev1.ConfigMap // with the result of the fault
}

const tookToRecover = 3500 * time.Millisecond

func show(t *testing.T, a arrangement) *shown {
	t.Helper()
	s := &shown{arrangement: a, measured: result.NewFault(&impact.Impact{
		BaselineRate: 100, MinRate: 25, Outages: a.outages, Outage: a.outages.Longest(), Dip: a.dip, Dips: a.dips,
		Recovered: true, RecoveryTime: durations.Exactly(tookToRecover), RecoveredThroughput: 1,
		TimeToImpact: durations.Exactly(-1),
	}, result.FaultInput{
		Name:       "kill",
		Type:       string(v1alpha1.FaultPodKill),
		Start:      clitest.Start,
		At:         12 * time.Second,
		InjectedAt: clitest.Start.Add(12 * time.Second),
		Deadline:   time.Minute,
	})}
	s.test.APIVersion, s.test.Kind, s.test.Name, s.test.Namespace = v1alpha1.GroupVersion.String(), "RedisLoadTest",
		"checkout", "shop"
	at := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(clitest.Start.Add(d))) }
	s.test.Status = v1alpha1.RedisLoadTestStatus{
		StartTime: at(0), Verdict: v1alpha1.VerdictPass, Summary: &v1alpha1.LoadSummary{Requests: 300, Throughput: "10"},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}},
	}
	s.fault.APIVersion, s.fault.Kind, s.fault.Name, s.fault.Namespace = v1alpha1.GroupVersion.String(), "RedisFault",
		"kill", "shop"
	s.fault.Spec.Action.Type, s.fault.Spec.RecoveryDeadline = v1alpha1.FaultPodKill, metav1.Duration{Duration: time.Minute}
	s.fault.Spec.Objectives = &v1alpha1.FaultObjectives{
		MaxOutage:       &metav1.Duration{Duration: 2500 * time.Millisecond},
		MaxTPSDip:       new("10%"),
		MaxRecoveryTime: &metav1.Duration{Duration: time.Second},
	}
	display := &v1alpha1.FaultDisplay{}
	digest.Columns(display, s.measured)
	s.fault.Status = v1alpha1.RedisFaultStatus{
		LoadTest: "checkout", InjectedAt: at(12 * time.Second), SettledTime: at(20 * time.Second),
		Verdict: v1alpha1.VerdictFail, Effect: v1alpha1.EffectConfirmed,
		Impact: digest.Impact(s.measured), Display: display, Objectives: verdict.Fault(s.fault.Spec.Objectives, s.measured),
	}
	s.stored = children.ResultsConfigMap(&s.test, clitest.Record(t))
	s.measured.Conclude(nil, nil, string(v1alpha1.VerdictFail), "")
	s.measured.Observed = result.Seconds(8 * time.Second)
	s.kept = s.stored.DeepCopy()
	kept, err := document.KeepFault(nil, s.measured, children.MaxResultsFaults)
	if err != nil {
		t.Fatal(err)
	}
	s.kept.BinaryData[children.ResultsFaultsKey] = kept
	return s
}

// figures are the outage, the dip and the time to recovery, in seconds and as a share; -1 = not shown.
type figures struct{ outage, dip, recovery float64 }

// Whatever shows the outage, the dip or the recovery of a fault shows the same, however its parts differ.
func TestOneFigureEverywhere(t *testing.T) {
	for name, a := range arrangements() {
		t.Run(name, func(t *testing.T) {
			s := show(t, a)
			if got := s.measured.Outage(); got != a.longest {
				t.Fatalf("the outage is %+v, want %+v", got, a.longest)
			}
			want := figures{3, a.dip.Value, tookToRecover.Seconds()}
			everywhere := map[string]figures{
				"status":                 s.status(),
				"columns":                s.columns(t),
				"objectives":             s.objectives(t),
				"the load test's faults": s.summary(),
				"metrics":                s.metrics(t),
				"report":                 s.report(t),
				"results":                s.results(t),
				"compare of objects":     compared(t, clitest.AsYAML(t, s.stored, s.test, s.fault)),
				"compare of a record":    compared(t, clitest.AsYAML(t, s.stored, s.fault)),
				"result": {
					s.measured.LongestOutage.Value.Seconds(), s.measured.DeepestDip.Share,
					s.measured.RecoveryTime.Value.Seconds(),
				},
				"compare of a record alone": compared(t, clitest.AsYAML(t, s.kept)),
				"results of a record alone": marked(t, clitest.AsYAML(t, s.kept)),
				"report of a record alone":  reported(t, clitest.AsYAML(t, s.kept)),
			}
			maps.Copy(everywhere, s.forms(t))
			for surface, got := range everywhere {
				if !got.agrees(want) {
					t.Errorf("%s: %+v, want %+v", surface, got, want)
				}
			}
			s.texts(t)
		})
	}
}

// agrees reports whether the figures that are shown are those.
func (f figures) agrees(want figures) bool {
	same := func(a, b float64) bool { return a == -1 || math.Abs(a-b) < 1e-9 }
	return same(f.outage, want.outage) && same(f.dip, want.dip) && same(f.recovery, want.recovery)
}

func number(t *testing.T, d v1alpha1.Decimal) float64 {
	t.Helper()
	n, ok := d.Number()
	if !ok {
		t.Fatalf("%q is not a number", d)
	}
	return n
}

func (s *shown) status() figures {
	i := s.fault.Status.Impact
	dip, _ := i.Dip.Value.Number()
	return figures{i.Outage.Value.Duration.Seconds(), dip, i.RecoveryTime.Value.Duration.Seconds()}
}

func (s *shown) columns(t *testing.T) (f figures) {
	t.Helper()
	d := s.fault.Status.Display
	if _, err := fmt.Sscanf(d.Outage+" "+d.Dip+" "+d.Recovery, "%fs %f%% %fs", &f.outage, &f.dip,
		&f.recovery); err != nil {
		t.Fatalf("%+v: %v", d, err)
	}
	f.dip /= 100
	return f
}

func (s *shown) objectives(t *testing.T) figures {
	t.Helper()
	actual := map[string]float64{}
	for _, o := range s.fault.Status.Objectives {
		actual[o.Name] = number(t, o.Actual)
	}
	return figures{actual["maxOutage"], actual["maxTPSDip"], actual["maxRecoveryTime"]}
}

func (s *shown) summary() figures {
	f := digest.FaultSummary(&s.fault)
	return figures{f.Outage.Duration.Seconds(), -1, f.RecoveryTime.Duration.Seconds()}
}

func (s *shown) metrics(t *testing.T) figures {
	t.Helper()
	registry := prometheus.NewRegistry()
	m := metrics.New(time.Now, func() metrics.Sessions { return metrics.Sessions{} })
	registry.MustRegister(m)
	defer m.Lead(metrics.Leader{Objects: func(context.Context) (*metrics.Objects, error) {
		return &metrics.Objects{LoadTests: []v1alpha1.RedisLoadTest{s.test}, Faults: []v1alpha1.RedisFault{s.fault}}, nil
	}})()
	one := func(name string) float64 {
		families, err := testutil.GatherAndCount(registry, name)
		if err != nil || families != 1 {
			t.Fatalf("%d series of %s, %v", families, name, err)
		}
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if f.GetName() == name {
				return f.Metric[0].GetGauge().GetValue()
			}
		}
		return math.NaN()
	}
	return figures{
		one("redquake_fault_outage_seconds"), one("redquake_fault_dip_ratio"),
		one("redquake_fault_recovery_seconds"),
	}
}

// document is the report of the fault, or of its load test, whose figures of the fault name it.
func (s *shown) document(t *testing.T, ofFault bool) *report.Document {
	t.Helper()
	in := subject.Input{Test: &s.test, Faults: []v1alpha1.RedisFault{s.fault}}
	if !ofFault {
		return reports.LoadTest(in)
	}
	d, err := reports.Fault(in, "kill")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *shown) report(t *testing.T) (f figures) {
	t.Helper()
	for ofFault, name := range map[bool]string{true: "", false: "kill"} {
		if f = figuresOf(t, s.document(t, ofFault), name); !f.agrees(s.status()) {
			return f
		}
	}
	return f
}

// figuresOf are the figures of a report of a fault; name is that of the fault in the report of its load.
func figuresOf(t *testing.T, d *report.Document, name string) figures {
	t.Helper()
	shown := map[string]float64{}
	for _, one := range d.Figures {
		if one.Of == name && one.Value != nil {
			shown[one.Name] = *one.Value
			if one.Counted != nil {
				t.Errorf("the objective counts another %s: %v", one.Name, *one.Counted)
			}
		}
	}
	return figures{shown["outage"], shown["dip"], shown["recoveryTime"]}
}

// results is what `redquake results` shows of the fault.
func (s *shown) results(t *testing.T) figures {
	t.Helper()
	return marked(t, clitest.AsYAML(t, s.stored, s.fault))
}

// reported is what the report of a saved run shows of the fault.
func reported(t *testing.T, text string) figures {
	t.Helper()
	saved, err := archive.ReadRun(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	in := subject.Input{Name: "run"}
	if err := saved.Fill(&in); err != nil {
		t.Fatal(err)
	}
	d, err := reports.Fault(in, "kill")
	if err != nil {
		t.Fatal(err)
	}
	return figuresOf(t, d, "")
}

// marked is what the course of a saved run shows of the fault.
func marked(t *testing.T, text string) figures {
	t.Helper()
	saved, err := archive.ReadRun(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	course, err := result.NewCourse(saved.Series, 10*time.Second, "", saved.Marks())
	if err != nil || len(course.Faults) != 1 {
		t.Fatalf("%+v, %v", course, err)
	}
	m := course.Faults[0]
	return figures{m.Outage.Value.Seconds(), -1, m.Took.Value.Seconds()}
}

// compared are the figures of a saved run that `redquake compare`, the cells of experiments, their reports and their
// history compare.
func compared(t *testing.T, saved string) figures {
	t.Helper()
	kept, err := archive.ReadRun(strings.NewReader(saved))
	if err != nil {
		t.Fatal(err)
	}
	run, err := kept.Figures()
	if err != nil {
		t.Fatal(err)
	}
	return ofRun(run)
}

func ofRun(run experiment.Run) figures {
	return figures{run.Values["outage"].Value, -1, run.Values["recoveryTime"].Value}
}

// plain is a report without its markup, and with plain spaces.
func plain(form, text string) string {
	text = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "&nbsp;", " ").Replace(text)
	switch form {
	case "HTML":
		return markup.ReplaceAllString(html.UnescapeString(text), "")
	case "Markdown":
		return strings.ReplaceAll(text, "**", "")
	}
	return text
}

var markup = regexp.MustCompile(`<[^>]*>`)

// texts checks that no report has the outage of a part for that of the fault, and that uncertainties are the same in
// reports and in results as a table.
func (s *shown) texts(t *testing.T) {
	t.Helper()
	forms := map[string]func(io.Writer, *report.Document) error{
		"Markdown": report.WriteMarkdown,
		"text":     report.WriteText,
		"HTML":     page.Write,
		"JSON":     report.WriteJSON,
		"JUnit":    report.WriteJUnit,
		"CSV":      report.WriteCSV,
	}
	for form, write := range forms {
		var written bytes.Buffer
		if err := write(&written, s.document(t, true)); err != nil {
			t.Fatal(err)
		}
		text := plain(form, written.String())
		for _, length := range []string{"1 s", "2 s"} {
			for _, claim := range []string{
				"without a single answer for " + length, "Outage | " + length,
				"nothing for " + length, "maxOutage is " + length,
			} {
				if strings.Contains(text, claim) {
					t.Errorf("%s: %q", form, claim)
				}
			}
		}
		if exact := "3 s ± 21 ms"; (form == "Markdown" || form == "text") && !strings.Contains(text, exact) {
			t.Errorf("%s: there is no %q", form, exact)
		}
		if want := "without a single answer for 3 s"; form != "CSV" && !strings.Contains(text, want) {
			t.Errorf("%s: there is no %q", form, want)
		}
	}
	saved, err := archive.ReadRun(strings.NewReader(clitest.AsYAML(t, s.stored, s.fault)))
	if err != nil {
		t.Fatal(err)
	}
	course, err := result.NewCourse(saved.Series, 10*time.Second, "", saved.Marks())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	d, err := saved.Course(course)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.WriteParts(&text, d); err != nil || !strings.Contains(text.String(), " 3 s ± 21 ms ") {
		t.Errorf("results: %v\n%s", err, text.String())
	}
}
