package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// writeLoads writes results of loads with a throughput and a p99 around what is typical of the setting, in turns with
// other settings.
func writeLoads(t *testing.T, dir, name string, slot, n int, throughput, p99 float64) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(slot), 5))
	around := func(v, cv float64) float64 { return v * math.Exp(cv*random.NormFloat64()) }
	for i := range n {
		l := result.Load{
			Version: result.LoadVersion,
			Outcome: result.Finished,
			Latency: result.ServiceTime,
			Start:   clitest.Start.Add(time.Duration(10*i+slot) * time.Minute),
			Total: result.Operation{
				Name:       "all",
				Throughput: around(throughput, 0.01),
				Latency:    &result.Quantiles{P99: result.Seconds(around(p99, 0.05) * float64(time.Second))},
			},
		}
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.json", name, i)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCompareFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeLoads(t, dir, "no", 0, 6, 3000, 0.002)
	writeLoads(t, dir, "everysec", 1, 6, 3000, 0.002)
	writeLoads(t, dir, "always", 2, 6, 800, 0.009)
	args := []string{
		"redquake", "compare", "no=" + filepath.Join(dir, "no-*.json"),
		"everysec=" + filepath.Join(dir, "everysec-*.json"), "always=" + filepath.Join(dir, "always-*.json"),
	}

	code, out, stderr := called(args...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{
		"Compared with no\n", "throughput 73", "lower than no (", "throughput same within 5%",
		"latencyP99 4.", "times that of no", "latencyP99 same within 25%",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the text lacks %q:\n%s", want, out)
		}
	}
	for require, want := range map[string]int{"None": 0, "NotWorse": 1, "Same": 1} {
		if code, _, stderr := called(append(args, "--require", require)...); code != want {
			t.Errorf("--require %s: exit code %d, want %d: %s", require, code, want, stderr)
		}
	}
	equal := args[:4:4]
	for _, require := range []string{"NotWorse", "Same"} {
		if code, out, stderr := called(append(equal, "--require", require)...); code != 0 {
			t.Errorf("--require %s of equal settings: exit code %d: %s\n%s", require, code, stderr, out)
		}
	}
	if code, _, stderr := called(append(equal, "--margin", "throughput=0.1%", "--require", "Same")...); code != 2 ||
		!strings.Contains(stderr, "inconclusive") {
		t.Errorf("a margin that is too narrow: exit code %d, %s", code, stderr)
	}

	code, out, _ = called(append(args, "-o", "json", "--figure", "throughput")...)
	var table comparisons.Comparisons
	if err := json.Unmarshal([]byte(out), &table); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	verdicts := map[string]string{}
	for _, c := range table.Comparisons {
		verdicts[c.Cell+" "+c.Figure] = c.Verdict
		if c.Cell == "always" && c.Figure == "throughput" &&
			(c.Change == nil || *c.Change > -0.7 || *c.AtLeast > *c.Change || *c.AtMost < *c.Change || c.Repeats != 6) {
			t.Errorf("%+v", c)
		}
	}
	if verdicts["always throughput"] != "Worse" || verdicts["everysec throughput"] != "Same" ||
		verdicts["always latencyP99"] != "" {
		t.Errorf("verdicts %v", verdicts)
	}
	if _, out, _ := called(append(args, "-o", "markdown")...); !strings.HasPrefix(out,
		"### Compared with no\n\n| Figure | Cell |") {
		t.Errorf("Markdown:\n%s", out)
	}
}

// Cells that ran one after the other are compared, and it is said what that means.
func TestCompareFolders(t *testing.T) {
	t.Parallel()
	old, candidate := t.TempDir(), t.TempDir()
	writeLoads(t, old, "run", 0, 6, 1000, 0.001)
	writeLoads(t, candidate, "run", 600, 6, 1000, 0.001)
	code, out, stderr := called("redquake", "compare", "old="+old, "new="+candidate)
	if code != 0 || !strings.Contains(out, "the runs of new were all before or after those of old") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, out)
	}
}

// Saved objects with faults: the outage and the recovery are compared; a run that has not recovered counts as one that
// takes longer.
func TestCompareObjects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cells := map[string]time.Duration{"fast": time.Second, "slow": 20 * time.Second}
	for name, recovery := range cells {
		for i := range 6 {
			writeObjects(t, filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", name, i)),
				recovery+time.Duration(i)*10*time.Millisecond, i, name == "slow" && i == 0)
		}
	}
	code, out, stderr := called("redquake", "compare", "fast="+filepath.Join(dir, "fast-*"),
		"slow="+filepath.Join(dir, "slow-*"))
	if code != 0 || !strings.Contains(out, "recoveryTime") || !strings.Contains(out, "times that of fast") ||
		!strings.Contains(out, "worse") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, out)
	}
}

func writeObjects(t *testing.T, file string, recovery time.Duration, turn int, lost bool) {
	t.Helper()
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "shop"}}
	test.APIVersion, test.Kind = v1alpha1.GroupVersion.String(), "RedisLoadTest"
	test.Status.StartTime = new(metav1.NewMicroTime(clitest.Start.Add(time.Duration(turn) * time.Minute)))
	test.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	test.Status.Summary = &v1alpha1.LoadSummary{Throughput: "2000", ErrorRate: "0.01"}
	fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "kill", Namespace: "shop"}}
	fault.APIVersion, fault.Kind = v1alpha1.GroupVersion.String(), "RedisFault"
	fault.Spec.RecoveryDeadline.Duration = 2 * time.Minute
	exactly := v1alpha1.DurationOf(recovery)
	fault.Status.LoadTest, fault.Status.InjectedAt = "cache", test.Status.StartTime
	fault.Status.Impact = &v1alpha1.Impact{
		Recovered: !lost, RecoveryTime: &v1alpha1.BoundedDuration{Value: exactly, AtLeast: exactly, AtMost: exactly},
		Outage: &v1alpha1.Outage{
			BoundedDuration: v1alpha1.BoundedDuration{Value: exactly, AtLeast: exactly, AtMost: exactly},
		},
	}
	var text []byte
	for _, object := range []any{test, fault} {
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), data...)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeLoads(t, dir, "a", 0, 1, 1000, 0.001)
	file := filepath.Join(dir, "a-0.json")
	empty := filepath.Join(dir, "empty.json")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.json")
	if err := os.WriteFile(other, []byte(`{"version":1,"comparisons":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`argument "a-1.json" must be NAME=RUNS`:           {"a-1.json", "b=" + file},
		"there is a cell a already":                       {"a=" + file, "a=" + file},
		"name two cells at least":                         {"a=" + file},
		"there is no file nowhere/b.json":                 {"a=" + file, "b=nowhere/b.json"},
		"no file matches":                                 {"a=" + file, "b=" + filepath.Join(dir, "*.yaml")},
		"is empty: the load was refused":                  {"a=" + file, "b=" + empty},
		"is neither a result of load -o json nor a saved": {"a=" + file, "b=" + other},
		"are the same run":                                {"a=" + file + "," + file, "b=" + file},
		"there is no file and no name":                    {"a=" + file, "b=" + file + ","},
		"there is no file nothing; as the name of": {
			"a=" + file, "b=nothing", "--kubeconfig",
			filepath.Join(dir, "none"),
		},
		"up to 1000%":                                     {"a=" + file, "b=" + file, "--margin", "throughput=nan%"},
		`--figure: "tps" is none of throughput`:           {"a=" + file, "b=" + file, "--figure", "tps"},
		`--margin: "throughput=5" must be a figure`:       {"a=" + file, "b=" + file, "--margin", "throughput=5"},
		"--margin: lostWrites has none":                   {"a=" + file, "b=" + file, "--margin", "lostWrites=5%"},
		`--require: "Better" is none of None`:             {"a=" + file, "b=" + file, "--require", "Better"},
		`--output: "yaml" is none of text`:                {"a=" + file, "b=" + file, "-o", "yaml"},
		"--require NotWorse: these runs are inconclusive": {"a=" + file, "b=" + file, "--require", "NotWorse"},
	} {
		wanted := cli.ExitError
		if strings.HasSuffix(want, "inconclusive") {
			wanted = cli.ExitInconclusive
		}
		if code, _, stderr := called(append([]string{"redquake", "compare"}, args...)...); code != wanted ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
}
