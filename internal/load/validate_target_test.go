package load

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestValidateTargetAndClient(t *testing.T) {
	sentinels := func(p *Plan) {
		p.Target = Target{Topology: TopologySentinel, Sentinel: &Sentinel{Addresses: []string{"s:26379"}, MasterName: "m"}}
	}
	goRedis := func(p *Plan) {
		p.Client.Driver, p.Client.GoRedis = GoRedisDriver, &GoRedis{PoolSize: 5, MaxRetries: new(-1)}
	}
	for _, tc := range []struct {
		field  string // how the message begins; "" = valid
		change []func(*Plan)
	}{
		{"", []func(*Plan){sentinels}},
		{"", []func(*Plan){sentinels, func(p *Plan) { p.Target.Topology = TopologyAuto }}},
		{"", []func(*Plan){func(p *Plan) { p.Target.Topology = TopologyCluster }}},
		{"", []func(*Plan){func(p *Plan) {
			p.Client.ReadFrom, p.Client.Mode, p.Client.MaxAge, p.Client.Retries, p.Client.AddedLatency = ReadAny, Multiplexed, time.Minute, 3, time.Millisecond
		}}},
		{"target.topology", []func(*Plan){func(p *Plan) { p.Target.Topology = "Ring" }}},
		{"target.sentinel", []func(*Plan){sentinels, func(p *Plan) { p.Target.Sentinel = nil }}},
		{"target.sentinel", []func(*Plan){sentinels, func(p *Plan) { p.Target.Topology = TopologyReplication }}},
		{"target.sentinel", []func(*Plan){sentinels, func(p *Plan) { p.Target.Topology = "" }}},
		{"target.sentinel.addresses", []func(*Plan){sentinels, func(p *Plan) { p.Target.Sentinel.Addresses = nil }}},
		{"target.sentinel.addresses[0]", []func(*Plan){sentinels, func(p *Plan) { p.Target.Sentinel.Addresses = []string{"s"} }}},
		{"target.sentinel.tls", []func(*Plan){sentinels, func(p *Plan) { p.Target.Sentinel.TLS = &TLS{KeyFile: "k"} }}},
		{"target.database", []func(*Plan){func(p *Plan) { p.Target.Topology, p.Target.Database = TopologyCluster, 1 }}},
		{"client.readFrom", []func(*Plan){func(p *Plan) { p.Client.ReadFrom = "Moon" }}},
		{"client.mode", []func(*Plan){func(p *Plan) { p.Client.Mode = "Moon" }}},
		{"client.driver", []func(*Plan){func(p *Plan) { p.Client.Driver = "Moon" }}},
		{"client.maxAge", []func(*Plan){func(p *Plan) { p.Client.MaxAge = 1 }}},
		{"client.retries", []func(*Plan){func(p *Plan) { p.Client.Retries = -1 }}},
		{"client.addedLatency", []func(*Plan){func(p *Plan) { p.Client.AddedLatency = -1 }}},
		{"client.goRedis", []func(*Plan){goRedis, func(p *Plan) { p.Client.Driver = NativeDriver }}},
		{"client.mode", []func(*Plan){goRedis, func(p *Plan) { p.Client.Mode = Multiplexed }}},
		{"client.retries", []func(*Plan){goRedis, func(p *Plan) { p.Client.Retries = 1 }}},
		{"client.goRedis.poolSize", []func(*Plan){goRedis, func(p *Plan) { p.Client.GoRedis.PoolSize = -1 }}},
		{"client.goRedis.maxRetries", []func(*Plan){goRedis, func(p *Plan) { p.Client.GoRedis.MaxRetries = new(-2) }}},
		{"client.goRedis.stateReloadInterval", []func(*Plan){goRedis, func(p *Plan) { p.Client.GoRedis.StateReloadInterval = -1 }}},
	} {
		p := validPlan()
		for _, change := range tc.change {
			change(p)
		}
		err := p.Validate()
		var problem *Error
		if tc.field == "" {
			if err != nil {
				t.Errorf("%+v %+v: %v", p.Target, p.Client, err)
			}
			continue
		}
		if !errors.As(err, &problem) || problem.Reason != PlanInvalid || !strings.HasPrefix(problem.Message, tc.field+": ") {
			t.Errorf("want a problem of %s, got %v", tc.field, err)
		}
	}
}

// A password is read when it is needed: a rotated Secret reaches the next dial. The sentinels have their own.
func TestDeploymentReadsPasswordsAnew(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	servers, sentinels := file("servers", "one\n"), file("sentinels", "guard")
	target := Target{Username: "app", PasswordFile: servers, Sentinel: &Sentinel{Addresses: []string{"s:1"}, Username: "watcher", PasswordFile: sentinels}}
	d := target.Deployment(time.Second, nil)
	want := func(password func() (string, error), want string) {
		t.Helper()
		if got, err := password(); err != nil || got != want {
			t.Errorf("the password is %q, %v, not %q", got, err, want)
		}
	}
	want(d.Login.Password, "one")
	want(d.SentinelLogin.Password, "guard")
	if err := os.WriteFile(servers, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(d.Login.Password, "two")
	given := "three"
	d = target.Deployment(time.Second, &given)
	want(d.Login.Password, "three")
	want(d.SentinelLogin.Password, "guard")
	if err := os.Remove(sentinels); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SentinelLogin.Password(); err == nil {
		t.Error("a file that is gone is no error")
	}
}
