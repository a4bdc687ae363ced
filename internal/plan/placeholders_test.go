package plan

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/redis/resp"
)

// What looks like a placeholder and is none is refused, with what to write instead: it would be one hot key.
func TestPlaceholderProblem(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"{key}:{value}{int}{user}":  "",
		"{{key}}:a":                 "",
		"{{{seq}}}":                 "",
		`\{tag}:{key}`:              "",
		`{"name": 1, "b": {}}`:      "",
		"return {KEYS[1], {1}, {}}": "",
		"a{b{key}":                  "",
		"{a b}":                     "",
		"{kee}":                     `{kee} is none of the placeholders {key} {value} {int} {user} {seq}: write \{kee} for the text itself`,
		"{{Key}}:a":                 `{Key} is none of`,
		"x{keys}":                   `{keys} is none of`,
		"{key}{a-b_1}":              `{a-b_1} is none of`,
		`\{tag}{tag}`:               `{tag} is none of`,
		"key:__rand_int__":          "__rand_int__ is a placeholder of redis-benchmark: write {int}",
		"__key__":                   "__key__ is a placeholder of memtier_benchmark: write {key}",
		"__data__":                  "__data__ is a placeholder of memtier_benchmark: write {value}",
		"k:__rand_3rd__":            "__rand_3rd__ is a placeholder of valkey-benchmark: write {int}",
	} {
		got := placeholderProblem(text, Placeholders)
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Each placeholder that is documented is one for the encoder, and the other way round: a word is encoded as it is, but
// for those.
func TestPlaceholdersAreThoseOfTheEncoder(t *testing.T) {
	args := resp.Args{Key: 1, Value: []byte("v"), Int: 2, User: 3, Seq: 4}
	for _, p := range Placeholders {
		template, err := resp.Compile([]string{p.Text}, "")
		if err != nil {
			t.Fatal(err)
		}
		if out := string(template.Append(nil, &args)); strings.Contains(out, p.Text) || p.Meaning == "" {
			t.Errorf("%s is encoded as %q", p.Text, out)
		}
	}
	template, err := resp.Compile([]string{`\{key}{key}\x\\{int}{}`}, "p:")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(template.Append(nil, &args)), "*1\r\n$18\r\n{key}p:1\\x\\{int}{}\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The commands and the texts of a plan are checked, and the message begins with the field.
func TestCommandsAndTextsAreChecked(t *testing.T) {
	for want, w := range map[string]Workload{
		"commands[1].command: multi": {Commands: []Command{{Words: []string{"GET", "{key}"}}, {Words: []string{"multi"}}}},
		"commands[0].command: CLIENT REPLY changes the connection": {
			Commands: []Command{{Words: []string{"client", "Reply", "OFF"}}},
		},
		"commands[0].command: {valeu} is none of": {
			Commands: []Command{{Words: []string{"SET", "{key}", "{valeu}"}}},
		},
		"http.url: {id} is none of":   {HTTP: &HTTP{URL: "http://a/{id}"}},
		"http.body: {value} is none":  {HTTP: &HTTP{URL: "http://a/", Body: `{"a": "{value}"}`}},
		"http.headers[0].value: {us}": {HTTP: &HTTP{URL: "http://a/", Headers: []Header{{Name: "a", Value: "{us}"}}}},
	} {
		if got := w.Problem(); !strings.HasPrefix(strings.ToLower(got), strings.ToLower(want)) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	fine := Workload{Commands: []Command{{Words: []string{"CLIENT", "LIST"}}, {Words: []string{"PUBLISH", "a", "{seq}"}}}}
	if got := fine.Problem(); got != "" {
		t.Error(got)
	}
}
