package matrix

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/study"
)

// What limited the runs of a cell, and what they used: the highest of its runs, the threads of the busiest server,
// nothing where there was no reading.
func TestWhatLimitedIt(t *testing.T) {
	t.Parallel()
	e := simulated(t, fsyncSpec, fsync, nil)
	statuses := []string{`
bottleneck: {component: Application, pods: api}
redis: {maxCPU: 900, maxMainThreadCPU: 700}
servers:
- {address: "a:6379", cpu: {mean: 100, max: 200}, ioThreadedReads: "0.5", slowCommands: 2}
- {address: "b:6379", cpu: {mean: 800, max: 900}, ioThreadedReads: "0.13", ioThreadedWrites: "0.22", slowCommands: 1}
pods:
- {name: api, count: 2, cpu: {mean: 200, max: 310}}
- {name: mariadb, count: 1, message: no reading}
`, `
bottleneck: {component: None}
redis: {maxCPU: 950, maxMainThreadCPU: 650}
servers: [{address: "b:6379", cpu: {mean: 800, max: 950}, ioThreadedReads: "0.11", ioThreadedWrites: "0"}]
pods: [{name: mariadb, count: 1, cpu: {mean: 50, max: 60}}]
`, `{}`}
	of := map[int]int{}
	for i := range e.Record.Runs {
		run := &e.Record.Runs[i]
		test := &v1alpha1.RedisLoadTest{}
		if run.Cell == 0 && of[0] < len(statuses) {
			if err := yaml.UnmarshalStrict([]byte(statuses[of[0]]), &test.Status); err != nil {
				t.Fatal(err)
			}
			of[0]++
		}
		e.Details[run.LoadTest] = study.DetailOf(study.WindowOf(e.Record), test, nil, nil, nil)
	}
	d, err := New(e.Study(""))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := report.WriteMarkdown(&b, d); err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(b.String(), "What limited it")
	section, _, _ = strings.Cut(section, "</details>")
	for _, want := range []string{
		"Application: api in 1\u00a0run, None in 1\u00a0run.",
		"| Cell | Bottleneck | CPU of Redis | Main thread | I/O threads, reads | I/O threads, writes | Slow commands | CPU " +
			"of api | CPU of mariadb |",
		"| Application: api, None | " + report.Cores(950) + " | " + report.Cores(700) + " | " + report.Share(0.13) + " | " +
			report.Share(0.22) + " | 3 | " + report.Cores(310) + " | " + report.Cores(60) + " |",
	} {
		if !found || !strings.Contains(section, want) {
			t.Errorf("want %q in:\n%s", want, section)
		}
	}
}
