//go:build integration

package controllers

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/cluster"
)

// program builds the command line.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "redquake")
	source, err := cluster.Path("cmd", "redquake")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-o", file, source).CombinedOutput(); err != nil {
		t.Fatalf("build the command line: %v\n%s", err, out)
	}
	return file
}

// commandLine starts the command line on the place's cluster.
func (p *place) commandLine(file string, args ...string) (command *exec.Cmd, out, stderr *bytes.Buffer) {
	p.t.Helper()
	command = exec.Command(file, append(args, "-n", p.namespace)...)
	out, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigOf(p.t, p.config))
	command.Stdout, command.Stderr = out, stderr
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if command.ProcessState == nil {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
		if p.t.Failed() {
			p.t.Logf("redquake %s\n%s%s", strings.Join(args, " "), stderr, out)
		}
	})
	return command, out, stderr
}

func kubeconfigOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	content := clientcmdapi.NewConfig()
	server := config.Host
	if !strings.HasPrefix(server, "https://") {
		server = "https://" + server
	}
	content.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}
	content.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	content.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	content.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*content, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// codeOf waits for a process, and returns its exit code.
func codeOf(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	err := command.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// writeObjects writes objects as YAML, as users have them.
func (p *place) writeObjects(objects ...client.Object) string {
	p.t.Helper()
	var all []string
	for _, o := range objects {
		kinds, _, err := p.client.Scheme().ObjectKinds(o)
		if err != nil {
			p.t.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
		text, err := yaml.Marshal(o)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, string(text))
	}
	file := filepath.Join(p.t.TempDir(), "objects.yaml")
	p.mustChange(os.WriteFile(file, []byte(strings.Join(all, "---\n")), 0o600))
	return file
}

// The command line with the operator, on a real Redis: a plan changes nothing; Ctrl-C reverts what acts; a run ends with the verdict and its report.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	redquake, p := program(t), newPlace(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	startOperator(p, spy{})
	load := newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Load.Duration = length(time.Hour) })
	file := p.writeObjects(hzFault(nil), load)

	command, out, _ := p.commandLine(redquake, "plan", "-f", file)
	if code := codeOf(t, command); code != 0 || !strings.Contains(out.String(), "hz") || !strings.Contains(out.String(), "Revert") || redis.hz("") != "10" {
		t.Errorf("plan: exit code %d, hz is %s", code, redis.hz(""))
	}
	if left := p.faults(); len(left) > 0 || p.loadTestExists("run") {
		t.Errorf("the plan has left %d faults", len(left))
	}

	command, out, stderr := p.commandLine(redquake, "run", "-f", file)
	p.faultHasReason("break", time.Minute, v1alpha1.ReasonActive)
	if got := redis.hz(""); got != "50" {
		t.Fatalf("hz is %s while the fault is active", got)
	}
	p.mustChange(command.Process.Signal(os.Interrupt))
	if code := codeOf(t, command); code != 130 || redis.hz("") != "10" {
		t.Errorf("Ctrl-C: exit code %d, hz is %s", code, redis.hz(""))
	}
	if !strings.Contains(out.String(), "redisfault/break  Aborted") || !strings.Contains(stderr.String(), "redisfault/break  Active") {
		t.Error("the fault is not shown")
	}

	short := newLoadTest("short", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		withTolerance(test)
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(200)), Duration: length(3 * time.Second)}
		test.Spec.Objectives = &v1alpha1.Objectives{MinThroughput: new("100000")} // never met
	})
	report := filepath.Join(t.TempDir(), "report.md")
	command, out, _ = p.commandLine(redquake, "run", "-f", p.writeObjects(short), "--report", report)
	code := codeOf(t, command)
	test := p.loadTest("short")
	if want := map[v1alpha1.Verdict]int{v1alpha1.VerdictFail: 1, v1alpha1.VerdictInconclusive: 2}[test.Status.Verdict]; code != want || want == 0 {
		t.Errorf("exit code %d, verdict %s", code, test.Status.Verdict)
	}
	if !strings.Contains(out.String(), "redisloadtest/short  Succeeded  "+string(test.Status.Verdict)) || !strings.Contains(out.String(), "minThroughput") {
		t.Error("the results lack the verdict or the objective")
	}
	if text, err := os.ReadFile(report); err != nil || !bytes.Contains(text, []byte("short")) {
		t.Errorf("the report is %q, %v", text, err)
	}
}

func (p *place) loadTestExists(name string) bool {
	test := &v1alpha1.RedisLoadTest{}
	test.Name = name
	return p.read(test)
}
