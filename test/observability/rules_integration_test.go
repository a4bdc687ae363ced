//go:build integration

package observability_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/installed"
	"github.com/redquake/redquake/internal/testing/prometheustest"
)

// Promtool's tests of the rules pass, with Debian's Prometheus and with Prometheus 3: when each alert fires, and that
// it does not otherwise.
func TestRules(t *testing.T) {
	t.Parallel()
	cases, err := os.ReadFile(filepath.Join("testdata", "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, promtool := range []string{"promtool", "promtool3"} {
		t.Run(promtool, func(t *testing.T) {
			t.Parallel()
			rules := prometheustest.ReadRules(t, root)
			file := filepath.Join(filepath.Dir(rules.File), "rules_test.yaml")
			if err := os.WriteFile(file, cases, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, command := range [][]string{{"check", "rules", rules.File}, {"test", "rules", file}} {
				out, err := exec.Command(installed.Program(t, promtool), command...).CombinedOutput()
				if err != nil || !strings.Contains(string(out), "SUCCESS") {
					t.Errorf("%s %v: %v\n%s", promtool, command, err, out)
				}
			}
		})
	}
}
