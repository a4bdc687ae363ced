package clitest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
)

// AgentPlan is a plan of two pods for a Redis at address.
func AgentPlan(address string) *plan.Plan {
	return &plan.Plan{
		Run: "run", Pods: 2, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{
			Connections:    2,
			Pipeline:       1,
			DialTimeout:    time.Second,
			RequestTimeout: 10 * time.Second,
			Protocol:       3,
		},
		Shape: plan.Shape{Rate: 400, Duration: time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}}},
			Keyspace: plan.Keyspace{Prefix: "rq:", Keys: 10, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 8, MaxBytes: 8},
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
		if err := os.WriteFile(filepath.Join(directory, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory, credentials
}
