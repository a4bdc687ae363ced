//go:build integration

package operator

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/command"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// program builds the command line.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "redquake")
	source, err := cluster.Path("cmd", "redquake")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", file, source).CombinedOutput(); err != nil {
		t.Fatalf("build the command line: %v\n%s", err, out)
	}
	return file
}

// commandLine starts the command line on the place's cluster.
func commandLine(p *operatortest.Place, program string, args ...string) *command.Process {
	p.T.Helper()
	return command.Start(p.T, program, []string{"KUBECONFIG=" + command.Kubeconfig(p.T, p.Config, p.Namespace)}, args...)
}

// writeObjects writes objects as YAML, as users have them.
func writeObjects(p *operatortest.Place, objects ...client.Object) string {
	p.T.Helper()
	var all []string
	for _, o := range objects {
		kinds, _, err := p.Client.Scheme().ObjectKinds(o)
		if err != nil {
			p.T.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
		text, err := yaml.Marshal(o)
		if err != nil {
			p.T.Fatal(err)
		}
		all = append(all, string(text))
	}
	file := filepath.Join(p.T.TempDir(), "objects.yaml")
	p.MustChange(os.WriteFile(file, []byte(strings.Join(all, "---\n")), 0o600))
	return file
}

// The command line with the operator, on a real Redis: a plan changes nothing; Ctrl-C reverts what acts; a run ends
// with the verdict and its report.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	redquake, p := program(t), operatortest.Scenario{}.OnAPIServer(t)
	redis := p.Redis
	file := writeObjects(p, operatortest.HzFault(nil), operatortest.Lasting(time.Hour)(redis.Address()))

	process := commandLine(p, redquake, "plan", "-f", file)
	if code := process.Code(); code != 0 || !strings.Contains(process.Out.String(), "hz") ||
		!strings.Contains(process.Out.String(), "Revert") || redis.Hz("") != "10" {
		t.Errorf("plan: exit code %d, hz is %s", code, redis.Hz(""))
	}
	if left := p.Faults(); len(left) > 0 || loadTestExists(p, "run") {
		t.Errorf("the plan has left %d faults", len(left))
	}

	process = commandLine(p, redquake, "run", "-f", file)
	p.FaultHasReason("break", time.Minute, v1alpha1.ReasonActive)
	if got := redis.Hz(""); got != "50" {
		t.Fatalf("hz is %s while the fault is active", got)
	}
	p.MustChange(process.Process.Signal(os.Interrupt))
	if code := process.Code(); code != 130 || redis.Hz("") != "10" {
		t.Errorf("Ctrl-C: exit code %d, hz is %s", code, redis.Hz(""))
	}
	if !strings.Contains(process.Out.String(), ": fault "+p.Namespace+"/break\n") ||
		!strings.Contains(process.Err.String(), "redisfault/break  Aborted: ") {
		t.Error("the fault is not shown")
	}

	short := operatortest.NewLoadTest("short", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		operatortest.WithTolerance(test)
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(200)), Duration: operatortest.Length(3 * time.Second)}
		test.Spec.Objectives = &v1alpha1.Objectives{MinThroughput: new("100000")} // never met
	})
	report := filepath.Join(t.TempDir(), "report.md")
	process = commandLine(p, redquake, "run", "-f", writeObjects(p, short), "--report", report)
	code := process.Code()
	test := p.LoadTest("short")
	if want := map[v1alpha1.Verdict]int{
		v1alpha1.VerdictFail:         1,
		v1alpha1.VerdictInconclusive: 2,
	}[test.Status.Verdict]; code != want || want == 0 {
		t.Errorf("exit code %d, verdict %s", code, test.Status.Verdict)
	}
	if !strings.Contains(process.Out.String(), string(test.Status.Verdict)+": load test "+p.Namespace+"/short") ||
		!strings.Contains(process.Out.String(), "minThroughput") {
		t.Error("the results lack the verdict or the objective")
	}
	if text, err := os.ReadFile(report); err != nil || !bytes.Contains(text, []byte("short")) {
		t.Errorf("the report is %q, %v", text, err)
	}
}

func loadTestExists(p *operatortest.Place, name string) bool {
	test := &v1alpha1.RedisLoadTest{}
	test.Name = name
	return p.Read(test)
}
