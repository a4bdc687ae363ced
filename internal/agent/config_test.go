package agent_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

func TestServeRefusesBadConfig(t *testing.T) {
	pair := tls.Certificate{Certificate: [][]byte{{1}}}
	good := agent.Config{
		Plan:        &plan.Plan{Pods: 2},
		Pod:         1,
		Runner:      &agenttest.Runner{},
		Token:       "t",
		Certificate: pair,
		Listen:      "256.0.0.1:1",
	}
	for name, change := range map[string]func(*agent.Config){
		"no plan":        func(c *agent.Config) { c.Plan = nil },
		"no runner":      func(c *agent.Config) { c.Runner = nil },
		"pod too high":   func(c *agent.Config) { c.Pod = 2 },
		"pod negative":   func(c *agent.Config) { c.Pod = -1 },
		"no token":       func(c *agent.Config) { c.Token = "" },
		"no certificate": func(c *agent.Config) { c.Certificate = tls.Certificate{} },
		"no listener":    func(*agent.Config) {},
	} {
		config := good
		change(&config)
		if err := agent.Serve(t.Context(), config); err == nil || !strings.HasPrefix(err.Error(), "agent: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
