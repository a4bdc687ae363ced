package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/live"
	"github.com/redquake/redquake/internal/dashboard"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// numberAndUnit is a length or a share in a text.
const numberAndUnit = `(\d+(?:\.\d+)?)[ \x{a0}]?(ms|s|%)`

// inText are the figures of a text, each by an expression with numberAndUnit behind it.
func inText(t *testing.T, text, outage, dip, recovery string) figures {
	t.Helper()
	one := func(expression string) float64 {
		m := regexp.MustCompile(expression + numberAndUnit).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %q in\n%s", expression, text)
		}
		return map[string]float64{"ms": 1e-3, "s": 1, "%": 1e-2}[m[2]] * number(t, v1alpha1.Decimal(m[1]))
	}
	return figures{one(outage), one(dip), one(recovery)}
}

// form is the report of the fault in a form.
func (s *shown) form(t *testing.T, write func(io.Writer, *report.Document) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, s.document(t, true)); err != nil {
		t.Fatal(err)
	}
	return plain("", b.String())
}

// json are the figures and the objectives of the report as JSON, which say the same.
func (s *shown) json(t *testing.T) figures {
	t.Helper()
	var d report.Document
	if err := json.Unmarshal([]byte(s.form(t, report.WriteJSON)), &d); err != nil {
		t.Fatal(err)
	}
	values, judged := map[string]float64{}, map[string]float64{}
	for _, f := range d.Figures {
		if f.Value != nil {
			values[f.Name] = *f.Value
		}
	}
	for _, o := range d.Objectives {
		judged[o.Name] = *o.Actual
	}
	got := figures{values["outage"], values["dip"], values["recoveryTime"]}
	if objectives := (figures{
		judged["maxOutage"], judged["maxTPSDip"],
		judged["maxRecoveryTime"],
	}); !got.agrees(objectives) {
		t.Errorf("the figures are %+v, those of the objectives %+v", got, objectives)
	}
	return got
}

// csv are the rows of the report as CSV.
func (s *shown) csv(t *testing.T) figures {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(s.form(t, report.WriteCSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, row := range rows[1:] {
		if row[6] != "" {
			values[row[4]] = number(t, v1alpha1.Decimal(row[6]))
		}
	}
	return figures{values["outage"], values["dip"], values["recoveryTime"]}
}

// junit are the objectives of the report as JUnit: all of them are missed.
func (s *shown) junit(t *testing.T) figures {
	t.Helper()
	return inText(t, s.form(t, report.WriteJUnit), "maxOutage is ", "maxTPSDip is ", "maxRecoveryTime is ")
}

func (s *shown) markdown(t *testing.T) figures {
	t.Helper()
	return inText(t, strings.ReplaceAll(s.form(t, report.WriteMarkdown), "**", ""), `\n\| Outage[^|]* \| `,
		`\n\| Dip[^|]* \| `, `\n\| Recovery[^|]* \| `)
}

// tiles are the figures at the top of a page of the fault: of its report, or of the dashboard's page.
func (s *shown) tiles(t *testing.T, write func(io.Writer, *report.Document) error) figures {
	t.Helper()
	tile := func(label string) string { return `<dt>` + label + `[^<]*</dt><dd><div class="v">` }
	return inText(t, html.UnescapeString(s.form(t, write)), tile("Outage"), tile("Dip"), tile("Recovery"))
}

func livePage(w io.Writer, d *report.Document) error {
	return page.WriteLive(w, d, page.Live{Revision: "1", Home: "/", Save: "?form=html"})
}

// moving is what `redquake run` and `redquake watch` show of the fault on a terminal, ended is what they print at its
// end.
func (s *shown) moving(t *testing.T) figures {
	t.Helper()
	state := &live.State{Now: clitest.Start.Add(time.Minute), Objects: []*kube.Object{{Kind: kube.Fault, Fault: &s.fault}}}
	return inText(t, live.Page(state, 200, 40), "  outage ", "dip ", "  recovery ")
}

func (s *shown) ended(t *testing.T) figures {
	t.Helper()
	text := s.form(t, func(w io.Writer, d *report.Document) error { return report.WriteText(w, run.Short(d)) })
	got := inText(t, text, `\nOutage.*?  +`, `\nDip.*?  +`, `\nRecovery.*?  +`)
	if objectives := inText(t, text, `\nmaxOutage +`, `\nmaxTPSDip +`, `\nmaxRecoveryTime +`); !got.agrees(objectives) {
		t.Errorf("the figures are %+v, those of the objectives %+v", got, objectives)
	}
	return got
}

// readable is a cluster with these objects, all of which its only reader may see.
type readable struct {
	dashboard.Source
	objects []dashboard.Object
}

func (l readable) Objects(_ context.Context, resource, _ string, _ int) (list []dashboard.Object, more int, err error) {
	for _, o := range l.objects {
		if o.Resource == resource {
			list = append(list, o)
		}
	}
	return list, 0, nil
}

func (l readable) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: "reader"}}, true, nil
}

func (l readable) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// list is the row of the fault in the dashboard's list.
func (s *shown) list(t *testing.T) figures {
	t.Helper()
	l := readable{objects: []dashboard.Object{dashboard.OfLoadTest(&s.test), dashboard.OfFault(&s.fault)}}
	h := dashboard.NewHandler(dashboard.Config{
		Source:        l,
		Authenticator: l,
		Authorizer:    authorizer.AuthorizerFunc(l.Authorize),
		Log:           logr.Discard(),
	})
	defer h.Close()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer reader")
	h.ServeHTTP(w, r)
	return inText(t, plain("", w.Body.String()), "<span>outage <b>", "<span>dip <b>", "<span>recovery <b>")
}

// compares are the medians of two equal runs in the table of `redquake compare`, as text and as Markdown. It does not
// compare the dip.
func (s *shown) compares(t *testing.T, form string) figures {
	t.Helper()
	t.Chdir(t.TempDir()) // as the test's name has commas, which separate files
	args := []string{"redquake", "compare", "-o", form}
	for i, cell := range []string{"old", "new"} {
		test, fault, later := s.test.DeepCopy(), s.fault.DeepCopy(), time.Duration(i)*time.Hour
		test.Status.StartTime = new(metav1.NewMicroTime(test.Status.StartTime.Add(later)))
		fault.Status.InjectedAt = new(metav1.NewMicroTime(fault.Status.InjectedAt.Add(later)))
		file := cell + ".yaml"
		if err := os.WriteFile(file, []byte(clitest.AsYAML(t, test, fault)), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, cell+"="+file)
	}
	code, out, stderr := called(args...)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var shown [2]float64
	for i, figure := range []string{"outage", "recoveryTime"} {
		m := regexp.MustCompile(figure + `[ |]+new[ |]+` + numberAndUnit + `[ |]+` + numberAndUnit).
			FindStringSubmatch(plain("", out))
		if m == nil || m[1] != m[3] || m[2] != "s" || m[4] != "s" {
			t.Fatalf("%s: %q in\n%s", figure, m, out)
		}
		shown[i] = number(t, v1alpha1.Decimal(m[1]))
	}
	return figures{shown[0], -1, shown[1]}
}

// forms are the figures of the fault in each form in which people and programs get them.
func (s *shown) forms(t *testing.T) map[string]figures {
	t.Helper()
	return map[string]figures{
		"report as JSON": s.json(t), "report as CSV": s.csv(t), "report as JUnit": s.junit(t),
		"report as Markdown":   s.markdown(t),
		"report as a page":     s.tiles(t, page.Write),
		"the dashboard's page": s.tiles(t, livePage), "the dashboard's list": s.list(t), "run while it moves": s.moving(t),
		"run at its end":  s.ended(t),
		"compare as text": s.compares(t, "text"), "compare as Markdown": s.compares(t, "markdown"),
	}
}

// The longest outage of a load has the same length and the same uncertainty in the text that `redquake load` prints, in
// its report, and in the report of its record.
func TestOneGapEverywhere(t *testing.T) {
	t.Parallel()
	saved := clitest.Saved(t, "pass")
	var l result.Load
	l.SetGaps(saved.Series, 0, saved.Series.End())
	reported := func(w io.Writer) error { return report.WriteMarkdown(w, run.LoadTest(subject.Input{Load: &l})) }
	ofRecord := func(w io.Writer) error {
		return report.WriteMarkdown(w, run.LoadTest(subject.Input{Series: saved.Series}))
	}
	printed := func(w io.Writer) error { return report.WriteText(w, run.Short(run.LoadTest(subject.Input{Load: &l}))) }
	shown := map[string][]string{}
	for name, one := range map[string]struct {
		write func(io.Writer) error
		after string
	}{
		"load":                 {printed, `\nLongest outage +`},
		"report of the load":   {reported, `\n\| Longest outage \| `},
		"report of the record": {ofRecord, `\n\| Longest outage \| `},
	} {
		var b bytes.Buffer
		if err := one.write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := regexp.MustCompile(one.after + `([\d.]+) ?(ms|s) ([±−+]) ?([\d.]+) ?(ms|s)`).FindStringSubmatch(
			strings.ReplaceAll(plain("Markdown", b.String()), "  ", " "))
		if m == nil {
			t.Fatalf("%s has no gap with its uncertainty:\n%.3000s", name, b.String())
		}
		shown[name] = m[1:]
	}
	for name, one := range shown {
		if !slices.Equal(one, shown["load"]) {
			t.Errorf("%s: %q, load: %q", name, one, shown["load"])
		}
	}
}
