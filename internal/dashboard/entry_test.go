package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
)

// The list has a schedule with its times and with what kubectl shows in the column STATUS.
func TestEntryOfASchedule(t *testing.T) {
	t.Parallel()
	o := OfSchedule(&v1alpha1.RedisExperimentSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop"},
		Spec:       v1alpha1.RedisExperimentScheduleSpec{Schedule: "0 3 * * *"},
		Status: v1alpha1.RedisExperimentScheduleStatus{
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRefused},
			},
			Verdict: v1alpha1.VerdictPass,
			Display: &v1alpha1.ScheduleDisplay{Last: "2026-11-24T03:00Z", Next: "2026-11-25T03:00Z"},
		},
	})
	if o.Key != (Key{Schedules, "shop", "nightly"}) || o.Type != "0 3 * * *" || o.Status != "Refused" ||
		o.Verdict != report.Pass {
		t.Errorf("%+v", o)
	}
	if want := []report.Fact{
		{Name: "last", Value: "2026-11-24T03:00Z"},
		{Name: "next", Value: "2026-11-25T03:00Z"},
	}; !slices.Equal(o.Figures, want) {
		t.Errorf("%v, want %v", o.Figures, want)
	}
}

// The figures of the list are written as those of reports are; there is no progress of what is over, and what failed
// says why.
func TestEntryOfALoadTest(t *testing.T) {
	t.Parallel()
	test := &v1alpha1.RedisLoadTest{Status: v1alpha1.RedisLoadTestStatus{
		Display: &v1alpha1.LoadTestDisplay{Progress: "42%", TPS: "1414.7", P99: "950us", Errors: "0.1%", LostWrites: "3-7"},
	}}
	values := func() (text string) {
		for _, f := range OfLoadTest(test).Figures {
			text += f.Name + " " + f.Value + "; "
		}
		return strings.ReplaceAll(text, "\u00a0", "_")
	}
	if got := values(); got != "progress 42_%; throughput 1,414.7/s; p99 950_µs; errors 0.1_%; lost writes 3-7; " {
		t.Error(got)
	}
	test.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionFalse, Reason: "TargetUnreachable", Message: "no reply"},
		{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "TargetUnreachable", Message: "no reply"},
	}
	if o := OfLoadTest(test); !o.Failed || o.Message != "no reply" || strings.Contains(values(), "progress") {
		t.Errorf("%+v, %s", o, values())
	}
	for text, want := range map[string]string{
		"1.28s-7.58s":                  "1.28_s-7.58_s",
		"throughput -12.5%, p99 +340%": "throughput -12.5_%, p99 +340%",
		"1m30s":                        "1m30s",
		"2026-11-24T03:00Z":            "2026-11-24T03:00Z",
	} {
		if got := strings.ReplaceAll(typeset(text), "\u00a0", "_"); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}

// A list shows what its address asks for, in that order.
func TestViews(t *testing.T) {
	t.Parallel()
	all := []Object{
		{Key: Key{Name: "b"}, Verdict: report.Pass, Over: true},
		{Key: Key{Name: "d"}, Over: true, Failed: true},
		{Key: Key{Name: "a"}},
		{Key: Key{Name: "c"}, Verdict: report.Fail, Over: true},
		{Key: Key{Name: "e"}, Verdict: report.Inconclusive, Over: true},
	}
	for query, want := range map[string]string{
		"":                         "bdace",
		"show=failed":              "dc",
		"show=failed&sort=name":    "cd",
		"show=running":             "a",
		"show=passed":              "b",
		"show=inconclusive":        "e",
		"sort=verdict":             "dceab",
		"show=<script>&sort=taste": "bdace",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		l := &listing{Groups: []group{{Objects: slices.Clone(all)}}}
		l.show(viewOf(q))
		got := ""
		for _, o := range l.Groups[0].Objects {
			got += o.Name
		}
		if got != want || l.Groups[0].All != len(all) {
			t.Errorf("%q shows %s of %d, want %s", query, got, l.Groups[0].All, want)
		}
	}
}

// A browser gets errors as a page with a way back, a program as a sentence.
func TestFailurePages(t *testing.T) {
	t.Parallel()
	h := newStage().handler(Limits{})
	r := httptest.NewRequest(http.MethodGet, "/shop/redisloadtests/%3Ci%3E", nil)
	r.Header.Set("Authorization", "Bearer admin")
	r.Header.Set("Accept", "text/html,*/*")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body := w.Body.String()
	if w.Code != http.StatusNotFound || !strings.Contains(body, `<a href="/">`) || strings.Contains(body, "<i>") ||
		!strings.Contains(body, "There is no redisloadtest &lt;i&gt; in namespace shop.") ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("%d %v %s", w.Code, w.Header(), body)
	}
	if w := get(h, "admin", "/shop/redisloadtests/other"); strings.Contains(w.Body.String(), "<") {
		t.Errorf("a program gets %s", w.Body)
	}
	if w := get(h, "admin", "/nosuch/"); !strings.Contains(w.Body.String(), "is its name right?") {
		t.Errorf("a namespace without objects: %s", w.Body)
	}
}
