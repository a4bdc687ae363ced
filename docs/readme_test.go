package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// statusOf is the status that the last YAML block of a page shows.
func statusOf(t *testing.T, page string, status any) {
	t.Helper()
	text := read(t, page)
	_, text, found := strings.Cut(text, "```yaml\nstatus:\n")
	if !found {
		t.Fatalf("%s shows no status", page)
	}
	text, _, _ = strings.Cut(text, "\n```")
	if err := yaml.Unmarshal([]byte("status:\n"+text), &struct {
		Status any `json:"status"`
	}{status}); err != nil {
		t.Fatalf("%s: %v", page, err)
	}
}

// The first screen of the README is one run, from its figures in the table to those in the sentences: the one whose
// statuses the reference shows, and whose table the first steps explain.
func TestReadmeShowsOneRun(t *testing.T) {
	var load v1alpha1.RedisLoadTestStatus
	var fault v1alpha1.RedisFaultStatus
	statusOf(t, "docs/redisloadtest.md", &load)
	statusOf(t, "docs/redisfault.md", &fault)
	readme := read(t, "README.md")
	first, _, _ := strings.Cut(readme, "\nThere are four kinds:")
	_, table, _ := strings.Cut(first, "```console\n")
	table, prose, _ := strings.Cut(table, "```\n")
	for command, page := range map[string]string{
		"kubectl get":        "README.md",
		"kubectl -n try get": "docs/getting-started.md",
	} {
		if _, rows, _ := strings.Cut(table,
			"\n"); !strings.Contains(read(t, page), command+" redisloadtests,redisfaults\n"+rows) {
			t.Errorf("%s does not show the run of the README", page)
		}
	}
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		if kind, _, is := strings.Cut(line, ".redquake.dev/"); is {
			rows[kind] = strings.Fields(line)
		}
	}
	l, f := load.Display, fault.Display
	for kind, want := range map[string][]string{
		"redisloadtest": {l.Progress, l.TPS, l.P99, l.Errors, l.Trend, string(load.Verdict)},
		"redisfault":    {f.Target, string(fault.Effect), f.Dip, f.Outage, f.Recovery, string(fault.Verdict)},
	} {
		for _, text := range want {
			if !strings.Contains(" "+strings.Join(rows[kind], " ")+" ", " "+text+" ") {
				t.Errorf("the row of the %s lacks %s: %q", kind, text, rows[kind])
			}
		}
	}
	for _, m := range regexp.MustCompile(`([\d.]+) (ms|s|min)\b`).FindAllStringSubmatch(prose, -1) {
		if text := m[1] + m[2]; text != f.Outage && text != f.Recovery {
			t.Errorf("%s on the first screen is not of its run, which has an outage of %s and a recovery of %s", m[0], f.Outage,
				f.Recovery)
		}
	}
	if strings.Count(first, "](docs/gallery/") > 0 {
		t.Error("the first screen shows a run of the gallery")
	}
	summary := load.Summary
	for page, want := range map[string]string{
		"docs/measuring.md": fmt.Sprintf("in the run of the\nREADME %d requests failed, and %d did not succeed in time",
			summary.Errors, fault.Impact.LostRequests),
		"docs/getting-started.md": fmt.Sprintf("%d of %d requests failed", summary.Errors, summary.Requests),
	} {
		if !strings.Contains(read(t, page), want) {
			t.Errorf("%s lacks %q", page, want)
		}
	}
}

// The number of kinds of faults is that of the API, without External, which breaks nothing, in tens.
func TestNumberOfFaults(t *testing.T) {
	if want := fmt.Sprintf("some [%d kinds](redisfault.md#kinds)",
		(len(v1alpha1.FaultTypes)-1)/10*10); !strings.Contains(read(t, "docs/comparison.md"), want) {
		t.Errorf("docs/comparison.md lacks %s", want)
	}
}
