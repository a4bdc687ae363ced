package clitest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
)

// AgentPlan is a plan of two pods for a Redis at address.
func AgentPlan(address string) *plan.Plan {
	return &plan.Plan{
		Run:      "run",
		Pods:     2,
		Interval: 100 * time.Millisecond,
		Target:   plan.Target{Addresses: []string{address}},
		Client: plan.Client{
			Connections:    2,
			Pipeline:       1,
			DialTimeout:    time.Second,
			RequestTimeout: 10 * time.Second,
			Protocol:       3,
		},
		Shape: plan.Shape{Rate: 400, Duration: time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{{
				Name:   "set",
				Weight: 1,
				Words:  []string{"SET", "{key}", "{value}"},
			}},
			Keyspace: plan.Keyspace{
				Prefix:       "rq:",
				Keys:         10,
				Distribution: plan.Uniform,
			},
			Values: plan.Values{MinBytes: 8, MaxBytes: 8},
		},
	}
}

// Mounted writes the files that are mounted into a load pod: credentials into a directory, and a
// plan as plan.json beside them.
func Mounted(t *testing.T, plan any) (directory string, credentials agent.Credentials) {
	t.Helper()
	credentials, err := agent.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	directory = t.TempDir()
	for name, data := range map[string][]byte{
		"plan.json":          text,
		agent.KeyCertificate: credentials.CertificatePEM,
		agent.KeyPrivateKey:  credentials.PrivateKeyPEM,
		agent.KeyToken:       []byte(credentials.Token + "\n"),
	} {
		err := os.WriteFile(filepath.Join(directory, name), data, 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	return directory, credentials
}

// Output runs a command without the program around it, and returns what it writes to standard
// output. An error, or a word on standard error, fails the test.
func Output(
	t *testing.T, command func(name string, io cli.Streams) *cobra.Command, args ...string,
) string {
	t.Helper()
	var out, said bytes.Buffer
	cmd := command("redquake", cli.Streams{
		In:  strings.NewReader(""),
		Out: &out,
		Err: &said,
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	if err != nil || said.Len() > 0 {
		t.Fatalf("%s %q: %v\n%s", cmd.Name(), args, err, said.String())
	}
	return out.String()
}

// Saved reads a run of this name of the reports' tests.
func Saved(t *testing.T, name string) *archive.Run {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, err := os.Stat(filepath.Join(root, "go.mod"))
		if err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("the test does not run inside the module")
		}
		root = filepath.Dir(root)
	}
	text, err := os.ReadFile(filepath.Join(root, "internal/report/run/testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := archive.ReadRun(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return saved
}
