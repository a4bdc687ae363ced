package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/builders"
)

func TestValidateTargetAndClient(t *testing.T) {
	sentinels := func(p *plan.Plan) {
		p.Target = plan.Target{Topology: plan.TopologySentinel, Sentinel: &plan.Sentinel{Addresses: []string{"s:26379"}, MasterName: "m"}}
	}
	goRedis := func(p *plan.Plan) {
		p.Client.Driver, p.Client.GoRedis = plan.GoRedisDriver, &plan.GoRedis{PoolSize: 5, MaxRetries: new(-1)}
	}
	for _, tc := range []struct {
		field  string // how the message begins; "" = valid
		change []func(*plan.Plan)
	}{
		{"", []func(*plan.Plan){sentinels}},
		{"", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Topology = plan.TopologyAuto }}},
		{"", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Topology = plan.TopologyCluster }}},
		{"", []func(*plan.Plan){func(p *plan.Plan) {
			p.Client.ReadFrom, p.Client.Mode, p.Client.MaxAge, p.Client.Retries, p.Client.AddedLatency = plan.ReadAny, plan.Multiplexed, time.Minute, 3, time.Millisecond
		}}},
		{"target.topology", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Topology = "Ring" }}},
		{"target.sentinel", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Sentinel = nil }}},
		{"target.sentinel", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Topology = plan.TopologyReplication }}},
		{"target.sentinel", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Topology = "" }}},
		{"target.sentinel.addresses", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Sentinel.Addresses = nil }}},
		{"target.sentinel.addresses[0]", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Sentinel.Addresses = []string{"s"} }}},
		{"target.sentinel.tls", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Sentinel.TLS = &plan.TLS{KeyFile: "k"} }}},
		{"target.database", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Topology, p.Target.Database = plan.TopologyCluster, 1 }}},
		{"client.readFrom", []func(*plan.Plan){func(p *plan.Plan) { p.Client.ReadFrom = "Moon" }}},
		{"client.mode", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Mode = "Moon" }}},
		{"client.driver", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Driver = "Moon" }}},
		{"client.maxAge", []func(*plan.Plan){func(p *plan.Plan) { p.Client.MaxAge = 1 }}},
		{"client.retries", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Retries = -1 }}},
		{"client.addedLatency", []func(*plan.Plan){func(p *plan.Plan) { p.Client.AddedLatency = -1 }}},
		{"client.goRedis", []func(*plan.Plan){goRedis, func(p *plan.Plan) { p.Client.Driver = plan.NativeDriver }}},
		{"client.mode", []func(*plan.Plan){goRedis, func(p *plan.Plan) { p.Client.Mode = plan.Multiplexed }}},
		{"client.retries", []func(*plan.Plan){goRedis, func(p *plan.Plan) { p.Client.Retries = 1 }}},
		{"client.goRedis.poolSize", []func(*plan.Plan){goRedis, func(p *plan.Plan) { p.Client.GoRedis.PoolSize = -1 }}},
		{"client.goRedis.maxRetries", []func(*plan.Plan){goRedis, func(p *plan.Plan) { p.Client.GoRedis.MaxRetries = new(-2) }}},
		{"client.goRedis.stateReloadInterval", []func(*plan.Plan){goRedis, func(p *plan.Plan) { p.Client.GoRedis.StateReloadInterval = -1 }}},
	} {
		p := builders.Plan()
		for _, change := range tc.change {
			change(p)
		}
		err := p.Validate()
		var problem *plan.Error
		if tc.field == "" {
			if err != nil {
				t.Errorf("%+v %+v: %v", p.Target, p.Client, err)
			}
			continue
		}
		if !errors.As(err, &problem) || problem.Reason != plan.PlanInvalid || !strings.HasPrefix(problem.Message, tc.field+": ") {
			t.Errorf("want a problem of %s, got %v", tc.field, err)
		}
	}
}
