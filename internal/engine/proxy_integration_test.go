//go:build integration

package engine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/installed"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A server that does not know HELLO, as Redis before 6.0: both drivers use RESP2, with a password and a database.
func TestARealServerWithoutHello(t *testing.T) { redistest.Each(t, testARealServerWithoutHello) }

func testARealServerWithoutHello(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{Password: "secret", Config: []string{`rename-command HELLO ""`}})
	for _, driver := range []plan.Driver{"", plan.GoRedisDriver} {
		p := realPlan(server.Address())
		p.Client.Driver, p.Client.Protocol, p.Target.Database = driver, 3, 2
		p.Target.Topology = plan.TopologyAuto
		p.Shape.Duration = 200 * time.Millisecond
		if o := runPlan(t, p, WithPassword("secret")); o.sum.OK == 0 || o.sum.Fail+o.sum.Unknown > 0 {
			t.Errorf("driver %q: %s", driver, describe(o))
		}
	}
}

// twemproxy closes connections on HELLO, INFO, ROLE and the like.
func TestTwemproxy(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	address := twemproxy(t, server.Address())
	planTo := func() *plan.Plan {
		p := realPlan(address)
		p.Client.Protocol, p.Target.Topology = 3, plan.TopologyAuto
		p.Shape.Duration = 200 * time.Millisecond
		return p
	}
	o, r := duringRun(t, planTo(), 0, func() {})
	if o.sum.OK == 0 || o.sum.Fail+o.sum.Unknown > 0 {
		t.Error(describe(o))
	}
	if text := strings.Join(r.Notes(), "\n"); !strings.Contains(text, "gives no reply to HELLO") ||
		!strings.Contains(text, "gives no reply to INFO") {
		t.Errorf("noted %q", text)
	}
	p := planTo()
	p.Client.Driver = plan.GoRedisDriver
	wantReason(t, p, plan.PlanInvalid, "set Native")
	p = planTo()
	p.Target.Topology = plan.TopologyCluster
	wantReason(t, p, plan.TargetUnreachable, "closes the connection on CLUSTER SLOTS", WithPatience(time.Second))
}

// twemproxy starts one in front of a server, and returns its address.
func twemproxy(t *testing.T, server string) string {
	t.Helper()
	program := installed.Program(t, "nutcracker")
	address := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	config := filepath.Join(t.TempDir(), "nutcracker.yml")
	text := fmt.Sprintf("alpha:\n  listen: %s\n  redis: true\n  servers:\n   - %s:1\n", address, server)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	words := filepath.Join(filepath.Dir(config), "log")
	cmd := exec.Command(program, "-c", config, "-o", words, "-a", "127.0.0.1", "-s", fmt.Sprint(redistest.FreePort(t)))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, _ := os.ReadFile(words); t.Failed() {
			t.Logf("the proxy wrote:\n%s", text)
		}
	})
	await.Until(t, "the proxy listens", func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	return address
}
