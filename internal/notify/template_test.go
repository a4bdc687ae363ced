package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
)

func message(why string) Message {
	return NewMessage("shop", "nightly", &State{Run: "nightly-1", Verdict: v1alpha1.VerdictPass},
		State{Run: "nightly-2", Verdict: v1alpha1.VerdictFail}, why, "2026-01-01T03:00:00Z")
}

// The default body is JSON with one text, in which nothing is a link or a mention.
func TestDefaultBody(t *testing.T) {
	t.Parallel()
	template, err := Parse("")
	if err != nil {
		t.Fatal(err)
	}
	body, err := template.Body(message(`p99 "5ms" > 3ms <!channel> & more`))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	const want = "shop/nightly: the verdict of run nightly-2 is Fail, after Pass.\n" +
		`p99 "5ms" &gt; 3ms &lt;!channel&gt; &amp; more` + "\nkubectl -n shop describe rexp nightly-2"
	if len(got) != 1 || got["text"] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each field can be used, and the functions.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{.Namespace}}/{{.Schedule}} {{.Run}} {{.Verdict}} {{.Before}} {{.Change}} {{.Regressed}} {{.Why}} " +
			"{{.Start}}": "shop/nightly nightly-2 Fail Pass Verdict false why? 2026-01-01T03:00:00Z",
		`{"a": {{json .Why}}, "b": {{json .Regressed}}}`:                          `{"a": "why?", "b": false}`,
		`{{if and (eq .Verdict "Fail") (not .Regressed)}}bad{{else}}good{{end}}`:  "bad",
		`{{with .Why}}{{.}}{{end}}{{/* nothing */}}{{$v := .Verdict}} {{len $v}}`: "why? 4",
		"{{.Text":                                             "line 1: unclosed action",
		"a\n{{.Texts}}":                                       "line 2:2: at <.Texts>: can't evaluate field Texts in type notify.Message",
		`{{define "x"}}{{end}}`:                               "define and block are not supported",
		`{{block "x" .}}{{end}}`:                              "define and block are not supported",
		`{{template "template" .}}`:                           "line 1: template is not supported",
		`{{range 1000000000}}{{end}}`:                         "line 1: range is not supported: no field is a list",
		`{{$n := 1000000000}}{{range $n}}{{end}}`:             "line 1: range is not supported: no field is a list",
		`{{printf "%1000000d" 1}}`:                            "line 1: function printf is not supported",
		`{{if (print .Text | js)}}{{end}}`:                    "line 1: function print is not supported",
		`{{(html .Text).Text}}`:                               "line 1: function html is not supported",
		`{{json .Text` + strings.Repeat(" | json", 40) + `}}`: "it is longer than 65536 bytes",
		`{"text": "{{.Text}}"}`: `it is no JSON if a value has quotes or line ends: write ` +
			`{{json .Text}} instead of "{{.Text}}"`,
		`{{index .Text 0}}`: "line 1: function index is not supported",
	} {
		got := body(text)
		if got != want {
			t.Errorf("%s\ngives %s\nwant  %s", text, got, want)
		}
	}
	if long := body(strings.Repeat("{{.Text}}", 5000)); !strings.Contains(long, "longer than") {
		t.Errorf("a long body: %.99s", long)
	}
}

// body is that of a template, or its error.
func body(text string) string {
	template, err := Parse(text)
	if err != nil {
		return err.Error()
	}
	got, err := template.Body(message("why?"))
	if err != nil {
		return err.Error()
	}
	return string(got)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		DefaultTemplate, "{{range .Text}}{{end}}", `{{$x := json .Text}}{{$x = json $x}}`,
		"{{if .Regressed}}{{break}}{{end}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 8192 {
			return
		}
		template, err := Parse(text)
		if err != nil {
			return
		}
		if got, err := template.Body(message("why?")); err == nil && len(got) > maxBody {
			t.Errorf("a body of %d bytes", len(got))
		}
	})
}
