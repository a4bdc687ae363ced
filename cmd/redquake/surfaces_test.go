package main

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/live"
	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// surfaces are all that people see of a run: each report of its load and of its faults in each form, the dashboard's
// live page, the columns, the page and the lines of `watch`, its last words, and `results` of the record.
func surfaces(t *testing.T, saved *archive.Run) map[string]string {
	t.Helper()
	shown := map[string]string{}
	write := func(name string, write func(io.Writer) error) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		shown[name] = strings.NewReplacer("\u00a0", " ", "–", "-").Replace(b.String())
	}
	test := &saved.Tests[0]
	in := subject.Input{Name: test.Name, Test: test, Faults: saved.Faults, Series: saved.Series}
	documents := map[string]*report.Document{"load": run.LoadTest(in)}
	objects := []*kube.Object{{Kind: kube.LoadTest, Test: test}}
	for i := range saved.Faults {
		f := &saved.Faults[i]
		d, err := run.Fault(in, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		documents[f.Name] = d
		objects = append(objects, &kube.Object{Kind: kube.Fault, Fault: f})
	}
	for name, d := range documents {
		for form, as := range map[string]func(io.Writer, *report.Document) error{
			"Markdown": report.WriteMarkdown, "text": report.WriteText, "JUnit": report.WriteJUnit, "HTML": page.Write,
			"dashboard": func(w io.Writer, d *report.Document) error {
				return page.WriteLive(w, d, page.Live{Revision: "1", Home: "/", Save: "?form=html"})
			},
		} {
			write(form+" of "+name, func(w io.Writer) error { return as(w, d) })
		}
	}
	state := &live.State{Now: test.CreationTimestamp.Add(time.Hour), Objects: objects}
	write("page of watch", func(w io.Writer) error { _, err := io.WriteString(w, live.Page(state, 300, 60)); return err })
	write("lines of watch", func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(live.NewPlain().Next(state), "\n"))
		return err
	})
	for _, o := range objects {
		write("end of "+o.Ref(), func(w io.Writer) error {
			d, err := output.EndOf(o, objects)
			if err != nil {
				return err
			}
			return report.WriteText(w, run.Short(d))
		})
	}
	if d := test.Status.Display; d != nil {
		shown["columns"] = strings.Join([]string{d.TPS, d.P99, d.Errors}, " ")
	}
	if saved.Series != nil {
		write("results", func(w io.Writer) error {
			c, err := result.NewCourse(saved.Series, 10*time.Second, "", saved.Marks())
			if err != nil {
				return err
			}
			d, err := saved.Course(c)
			if err != nil {
				return err
			}
			return report.WriteParts(w, d)
		})
	}
	return shown
}

// measuredZero is a 0 of a figure: a share, a rate, or an outage.
var measuredZero = regexp.MustCompile(`(?i)(^|[^\d.,])0 ?(%|/s)|outage 0 ?s|>0 s<`)

// What a load that never began shows has no figure, least of all a 0.
func TestSurfacesOfALoadThatNeverBegan(t *testing.T) {
	saved := clitest.Saved(t, "pass")
	saved.Series, saved.Faults = nil, nil
	const why = "redis:6379 is not ready within 5s: no reply in time"
	saved.Tests[0].Status = v1alpha1.RedisLoadTestStatus{
		Conditions: append(clitest.Condition(v1alpha1.ConditionFailed, metav1.ConditionTrue, why),
			clitest.Condition(v1alpha1.ConditionComplete, metav1.ConditionFalse, why)...),
	}
	for name, text := range surfaces(t, saved) {
		body, _, _ := strings.Cut(text, "Specification")
		if i := strings.Index(body, "<body>"); i >= 0 {
			body = body[i:]
		}
		if !strings.Contains(body, why) {
			t.Errorf("%s does not say why", name)
		}
		for _, bad := range []string{"Errors", "Longest outage", "curves", "were served", "No reason"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q:\n%.2000s", name, bad, body)
			}
		}
		if m := measuredZero.FindString(body); m != "" {
			t.Errorf("%s has %q of what was not measured", name, m)
		}
	}
}

// A load that runs shows the outage of its fault everywhere, and none of 0 s beside it.
func TestSurfacesOfARunningLoad(t *testing.T) {
	saved := clitest.Saved(t, "pass")
	s, f := &saved.Tests[0].Status, &saved.Faults[0].Status
	s.Verdict, s.Objectives, s.Summary.Outage, s.CompletionTime, s.Conditions = "", nil, nil, nil, clitest.Condition(
		v1alpha1.ConditionComplete, metav1.ConditionFalse, "running")
	f.Verdict = ""
	f.Objectives = nil
	f.SettledTime = nil
	f.Conditions = clitest.Condition(v1alpha1.ConditionComplete, metav1.ConditionFalse, "observing")
	f.Impact.Recovered, f.Impact.RecoveryTime, f.Impact.Phases, f.Display.Recovery = false, nil, nil, ""
	for name, text := range surfaces(t, saved) {
		if name == "columns" || strings.HasPrefix(name, "lines") || strings.HasPrefix(name, "JUnit") ||
			strings.HasPrefix(name, "end of redisloadtest") {
			continue // which have no outage
		}
		if !regexp.MustCompile(`\b2 ?s\b`).MatchString(text) {
			t.Errorf("%s lacks the outage of 2s:\n%.1500s", name, text)
		}
		if m := regexp.MustCompile(`(?i)outage</dt><dd><div class="v">0|outage \| 0 s|outage 0s|No stretch`).FindString(
			text); m != "" {
			t.Errorf("%s has %q", name, m)
		}
	}
}

// All that show the figures of a fault show the same.
func TestSurfacesNameTheSameFigures(t *testing.T) {
	for _, name := range []string{"pass", "several", "fail"} {
		saved := clitest.Saved(t, name)
		shown := surfaces(t, saved)
		for i := range saved.Faults {
			f := &saved.Faults[i]
			for _, figure := range []string{f.Status.Display.Outage, f.Status.Display.Recovery} {
				apart := regexp.MustCompile(`(\d)(ms|s|m)\b`).ReplaceAllString(figure, "$1 $2")
				for _, surface := range []string{
					"Markdown of " + f.Name, "text of " + f.Name, "HTML of " + f.Name,
					"dashboard of " + f.Name, "Markdown of load", "HTML of load", "results", "page of watch",
					"end of redisfault/" + f.Name,
				} {
					if text, there := shown[surface]; !there || !strings.Contains(text, figure) && !strings.Contains(text, apart) {
						t.Errorf("%s: %s lacks %s", name, surface, figure)
					}
				}
			}
		}
	}
}

// An inconclusive run with several doubts has a short head on every surface that has a head, and all of them where
// doubts are listed.
func TestSurfacesOfDoubts(t *testing.T) {
	saved := clitest.Saved(t, "pass")
	message := strings.Repeat("the load generator was the bottleneck: requests were sent late; ", 6)
	doubts := []v1alpha1.Doubt{
		{Reason: "LoadGeneratorSaturated", Message: message + "one"},
		{Reason: "RecordIncomplete", Message: message + "two"},
		{Reason: "StartSkew", Message: message + "three"},
	}
	s, f := &saved.Tests[0].Status, &saved.Faults[0].Status
	s.Verdict = v1alpha1.VerdictInconclusive
	s.Doubts = doubts
	s.Conditions = clitest.Condition(v1alpha1.ConditionObjectivesMet, metav1.ConditionUnknown, message)
	f.Verdict, f.Impact.Doubts, f.Conditions = v1alpha1.VerdictInconclusive, doubts, clitest.Condition(
		v1alpha1.ConditionObjectivesMet, metav1.ConditionUnknown, message)
	shown := surfaces(t, saved)
	heads := []*regexp.Regexp{
		regexp.MustCompile(`(?s)<h1>(.*?)</h1>`),
		regexp.MustCompile(`\n\*\*(Not conclusive.*?)\*\*\n`), regexp.MustCompile(`\n(Not conclusive.*?)\n`),
	}
	found := 0
	for name, text := range shown {
		for _, head := range heads {
			if m := head.FindStringSubmatch(text); m != nil {
				if found++; len(strings.Fields(m[1])) > 25 || !strings.Contains(m[1], "the load generator was too slow") {
					t.Errorf("the head of %s is %q", name, m[1])
				}
			}
		}
		if slices.ContainsFunc([]string{"HTML", "Markdown", "dashboard", "JUnit"}, func(form string) bool {
			return strings.HasPrefix(name, form)
		}) {
			for _, d := range doubts {
				if !strings.Contains(text, d.Message) {
					t.Errorf("%s lacks the doubt %s", name, d.Reason)
				}
			}
		}
	}
	if found != 10 { // HTML, dashboard, Markdown and text of load and fault, and their ends
		t.Errorf("%d heads were found", found)
	}
}
