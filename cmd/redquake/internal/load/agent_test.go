package load

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
)

// mounted writes the files that are mounted into a load pod and returns the flags for them.
func mounted(t *testing.T, plan any) (agentFlags, agent.Credentials) {
	t.Helper()
	dir, credentials := clitest.Mounted(t, plan)
	return agentFlags{
		plan:        filepath.Join(dir, "plan.json"),
		credentials: dir,
		listen:      "127.0.0.1:0",
		index:       -1,
	}, credentials
}

func TestAgentConfig(t *testing.T) {
	flags, credentials := mounted(t, clitest.AgentPlan("127.0.0.1:1"))
	t.Setenv(indexVariable, "1")
	config, err := flags.config(slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	if config.Pod != 1 || config.Plan.Pods != 2 || config.Token != credentials.Token || config.Listen != "127.0.0.1:0" ||
		config.Runner == nil {
		t.Errorf("the config is %+v", config)
	}
	flags.index = 0
	if config, err = flags.config(slog.Default()); err != nil || config.Pod != 0 {
		t.Errorf("with --index 0 pod %d, %v", config.Pod, err)
	}
}

func TestAgentConfigRefuses(t *testing.T) {
	tests := []struct {
		name, index string
		change      func(*agentFlags)
		want        string
	}{
		{"no index", "", nil, "set --index or $JOB_COMPLETION_INDEX"},
		{"bad index", "first", nil, `$JOB_COMPLETION_INDEX: "first" is not a number`},
		{"index of another plan", "2", nil, "$JOB_COMPLETION_INDEX: 2 must be between 0 and 1: the plan has 2 pods"},
		{"index flag", "0", func(f *agentFlags) { f.index = 7 }, "--index: 7 must be between 0 and 1"},
		{"no plan", "0", func(f *agentFlags) { f.plan += "x" }, "--plan: open "},
		{"no credentials", "0", func(f *agentFlags) { f.credentials += "x" }, "--credentials: open "},
		{"no key pair", "0", func(f *agentFlags) {
			_ = os.WriteFile(filepath.Join(f.credentials, agent.KeyPrivateKey), []byte("x"), 0o600)
		}, "the run's certificate: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			flags, _ := mounted(t, clitest.AgentPlan("127.0.0.1:1"))
			t.Setenv(indexVariable, tt.index)
			if tt.change != nil {
				tt.change(&flags)
			}
			if _, err := flags.config(slog.Default()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want one that contains %q", err, tt.want)
			}
		})
	}
}

// An agent that ignored unknown fields of its plan would run a different load.
func TestAgentRefusesUnknownPlanFields(t *testing.T) {
	flags, _ := mounted(t, map[string]any{"run": "x", "pods": 1, "surprise": true})
	t.Setenv(indexVariable, "0")
	if _, err := flags.config(slog.Default()); err == nil || !strings.Contains(err.Error(), `unknown field "surprise"`) {
		t.Errorf("the error is %v, want the unknown field", err)
	}
	invalid := clitest.AgentPlan("127.0.0.1:1")
	invalid.Shape = plan.Shape{}
	flags, _ = mounted(t, invalid)
	if _, err := flags.config(slog.Default()); err == nil || !strings.Contains(err.Error(), "PlanInvalid: spec.load") {
		t.Errorf("the error is %v, want PlanInvalid", err)
	}
}
