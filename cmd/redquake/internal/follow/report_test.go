package follow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/internal/reports"
	"github.com/redquake/redquake/cmd/redquake/internal/written"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/output"
)

// The report of run is of what the file asks for: that of an experiment is the one of `redquake report`. A file that
// asks for several is refused before anything is created.
func TestRunReport(t *testing.T) {
	t.Parallel()
	const test, experiment = "{apiVersion: redquake.dev/v1alpha1, kind: RedisLoadTest, metadata: {name: l}}\n",
		"{apiVersion: redquake.dev/v1alpha1, kind: RedisExperiment, metadata: {name: e}}\n"
	const onIt, alone = "{apiVersion: redquake.dev/v1alpha1, kind: RedisFault, metadata: {name: f}, spec: {loadTestRef: " +
		"{name: l}}}\n", "{apiVersion: redquake.dev/v1alpha1, kind: RedisFault, metadata: {name: g}}\n"
	for name, c := range map[string]struct {
		objects []string
		refused string
	}{
		"a load test with a fault":     {[]string{test, onIt}, ""},
		"a load test and a fault":      {[]string{test, alone}, ""},
		"a fault with a load":          {[]string{alone}, ""},
		"an experiment":                {[]string{experiment}, ""},
		"a fault on another load":      {[]string{onIt}, "0 load tests, 0 such faults and 0 experiments"},
		"two load tests":               {[]string{test, test}, "2 load tests, 0 such faults and 0 experiments"},
		"an experiment and a load":     {[]string{experiment, test}, "1 load tests, 0 such faults and 1 experiments"},
		"two faults with a load each":  {[]string{alone, alone}, "0 load tests, 2 such faults and 0 experiments"},
		"an experiment and two faults": {[]string{experiment, alone, onIt}, "0 load tests, 1 such faults and 1 experiments"},
	} {
		all, err := written.Read([]string{"-"}, strings.NewReader(strings.Join(c.objects, "---\n")))
		if err != nil {
			t.Fatal(err)
		}
		file, err := openRunReport(filepath.Join(t.TempDir(), "report.html"), all)
		file.Discard()
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
	s := clitest.NewExperiment(t, nil)
	config := clitest.Cluster(t, map[string]any{
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisexperiments/fsync": s.Object,
		"/api/v1/namespaces/shop/configmaps/fsync-experiment":                s.ConfigMap(t),
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisloadtests": map[string]any{
			"kind":  "RedisLoadTestList",
			"items": []any{},
		},
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisfaults": map[string]any{
			"kind":  "RedisFaultList",
			"items": []any{},
		},
	})
	path := filepath.Join(t.TempDir(), "report.md")
	file, err := output.Open("--report", path)
	if err != nil {
		t.Fatal(err)
	}
	var flags cluster.Flags
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.Register(set)
	if err := set.Set("kubeconfig", config); err != nil {
		t.Fatal(err)
	}
	if err := writeReport(t.Context(), &flags, file, []*kube.Object{
		{Kind: kube.Experiment, Experiment: s.Object},
	}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := clitest.Output(t, reports.NewReport, "redisexperiment/fsync", "--kubeconfig",
		config); string(written) != want || want == "" {
		t.Errorf("run wrote\n%s\nand report\n%s", written, want)
	}
}
