package plan_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/builders"
)

func TestValidate(t *testing.T) {
	sentinels := func(p *plan.Plan) {
		p.Target = plan.Target{
			Topology: plan.TopologySentinel,
			Sentinel: &plan.Sentinel{Addresses: []string{"s:26379"}, MasterName: "m"},
		}
	}
	http := func(p *plan.Plan) {
		p.Workload.Commands, p.Workload.HTTP = nil, &plan.HTTP{URL: "http://shop/api/{int}"}
	}
	searched := func(p *plan.Plan) {
		p.Shape = plan.Shape{
			Rate:     10,
			Duration: time.Minute,
			Search:   &plan.Search{From: 10, To: 20, Trial: 10 * time.Second, Settle: 2 * time.Second},
		}
	}
	noTarget := func(p *plan.Plan) { p.Target, p.Probe, p.Info = plan.Target{}, plan.Probe{}, 0 }
	cacheAside := func(mode plan.CacheAsideMode) func(*plan.Plan) {
		return func(p *plan.Plan) {
			p.Workload.Commands = nil
			p.Workload.CacheAside = &plan.CacheAside{
				Mode:     mode,
				Database: plan.Database{Driver: plan.DriverMySQL, Query: "SELECT ?"},
			}
		}
	}
	tests := []struct {
		field   string // prefix of the message; "" = valid
		changes []func(*plan.Plan)
	}{
		{"", nil},
		{"", []func(*plan.Plan){sentinels}},
		{"", []func(*plan.Plan){http}},
		{"", []func(*plan.Plan){searched}},
		{"", []func(*plan.Plan){func(p *plan.Plan) { p.Shape = plan.Shape{Rate: 10, Users: 5, Requests: 7} }}},
		{"", []func(*plan.Plan){func(p *plan.Plan) {
			p.Shape = plan.Shape{Users: 9, Stages: []plan.Stage{{Duration: time.Second, Rate: 7}}}
		}}},

		{"pods.count", []func(*plan.Plan){func(p *plan.Plan) { p.Pods = 0 }}},
		{"observe.interval", []func(*plan.Plan){func(p *plan.Plan) { p.Interval = 0 }}},
		{"observe.interval", []func(*plan.Plan){func(p *plan.Plan) { p.Shape.Duration = 100000 * time.Hour }}},
		{"client.connections", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Connections = 0 }}},
		{"client.pipeline", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Pipeline = 0 }}},
		{"client.dialTimeout", []func(*plan.Plan){func(p *plan.Plan) { p.Client.DialTimeout = 0 }}},
		{"client.requestTimeout", []func(*plan.Plan){func(p *plan.Plan) { p.Client.RequestTimeout = 0 }}},
		{"load", []func(*plan.Plan){func(p *plan.Plan) { p.Shape.Users = 0 }}},
		{"load.duration", []func(*plan.Plan){func(p *plan.Plan) { p.Shape.Duration = 0 }}},
		{"workload.keyspace.keys", []func(*plan.Plan){func(p *plan.Plan) { p.Workload.Keyspace.Keys = 0 }}},
		{"probe", []func(*plan.Plan){func(p *plan.Plan) { p.Probe.Words = nil }}},

		{"target.topology", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Topology = "Ring" }}},
		{"client.protocol", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Protocol = 4 }}},
		{"client.readFrom", []func(*plan.Plan){func(p *plan.Plan) { p.Client.ReadFrom = "Moon" }}},
		{"client.mode", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Mode = "Moon" }}},
		{"client.driver", []func(*plan.Plan){func(p *plan.Plan) { p.Client.Driver = "Moon" }}},
		{
			"workload.keyspace.distribution",
			[]func(*plan.Plan){func(p *plan.Plan) { p.Workload.Keyspace.Distribution = "Normal" }},
		},

		{"target", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Addresses = nil }}},
		{"target", []func(*plan.Plan){noTarget}},
		{"", []func(*plan.Plan){noTarget, http}},
		{"target", []func(*plan.Plan){noTarget, http, func(p *plan.Plan) {
			p.Probe = plan.Probe{
				Rate:  1,
				Words: []string{"PING"},
			}
		}}},
		{"target", []func(*plan.Plan){noTarget, http, func(p *plan.Plan) { p.Info = time.Second }}},
		{"", []func(*plan.Plan){noTarget, cacheAside(plan.DatabaseOnly)}},
		{"target", []func(*plan.Plan){noTarget, cacheAside(plan.ThroughCache)}},
		{"target.addresses[1]", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Addresses = []string{"a:1", "b"} }}},
		{"target.addresses", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Addresses = []string{"unix:///r", "a:1"} }}},
		{"", []func(*plan.Plan){func(p *plan.Plan) { p.Target.Addresses = []string{"unix:///r"} }}},
		{"target.tls", []func(*plan.Plan){func(p *plan.Plan) {
			p.Target.Addresses, p.Target.TLS = []string{"unix:///r"}, &plan.TLS{}
		}}},
		{"target.topology", []func(*plan.Plan){func(p *plan.Plan) {
			p.Target.Addresses, p.Target.Topology = []string{"unix:///r"}, plan.TopologyCluster
		}}},
		{"target.sentinel", []func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Sentinel.Addresses = nil }}},
		{
			"target.sentinel.addresses[0]",
			[]func(*plan.Plan){sentinels, func(p *plan.Plan) { p.Target.Sentinel.Addresses = []string{"s"} }},
		},

		{"load.stages", []func(*plan.Plan){func(p *plan.Plan) { p.Shape = plan.Shape{Stages: []plan.Stage{{Duration: 1}}} }}},
		{"load.duration", []func(*plan.Plan){searched, func(p *plan.Plan) { p.Shape.Duration = 11 * time.Second }}},
		{"client.driver", []func(*plan.Plan){http, func(p *plan.Plan) { p.Client.Driver = plan.GoRedisDriver }}},
		{"verify", []func(*plan.Plan){http, func(p *plan.Plan) { p.Verify = &plan.Verify{Share: 0.1} }}},
		{"workload.commands", []func(*plan.Plan){func(p *plan.Plan) { p.Workload.Commands = nil }}},
		{"workload.commands[0].command", []func(*plan.Plan){func(p *plan.Plan) {
			p.Workload.Commands[0].Words = []string{
				"",
			}
		}}},
	}
	for _, tt := range tests {
		p := builders.Plan()
		for _, change := range tt.changes {
			change(p)
		}
		err := p.Validate()
		if tt.field == "" {
			if err != nil {
				t.Errorf("%+v: %v", p, err)
			}
			continue
		}
		e, ok := errors.AsType[*plan.Error](err)
		if !ok || e.Reason != plan.PlanInvalid || !strings.HasPrefix(e.Message, "spec."+tt.field+": ") {
			t.Errorf("want PlanInvalid about %s, have %v", tt.field, err)
		}
	}
}

func TestPlanSurvivesJSON(t *testing.T) {
	p := builders.Plan()
	p.Target.TLS = &plan.TLS{CAFile: "/ca", ServerName: "redis"}
	p.Shape.Stages = []plan.Stage{{Duration: time.Second, Rate: 1.5}}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back plan.Plan
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, &back); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
}

func TestShapeLength(t *testing.T) {
	stages := []plan.Stage{{Duration: 2 * time.Second, Users: 1}, {Duration: 3 * time.Second, Users: 2}}
	tests := []struct {
		shape plan.Shape
		want  time.Duration
	}{
		{plan.Shape{Users: 1, Requests: 5, RampUp: time.Second}, 0},
		{plan.Shape{Users: 1, RampUp: time.Second, WarmUp: 2 * time.Second, Duration: 4 * time.Second}, 7 * time.Second},
		{plan.Shape{Stages: stages}, 5 * time.Second},
		{plan.Shape{Stages: stages, Duration: 5 * time.Second}, 5 * time.Second},
	}
	for _, tt := range tests {
		if got := tt.shape.Length(); got != tt.want {
			t.Errorf("%+v lasts %s, want %s", tt.shape, got, tt.want)
		}
	}
}

// The operations that the operator derives from a plan are those that the pods record.
func TestNamesOfOperations(t *testing.T) {
	p := builders.Plan()
	p.Workload.Commands, p.Workload.Ranking = nil, &plan.Ranking{
		Members:     10,
		ScoreSpread: 10,
		FindCount:   1,
		Weights:     plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1},
	}
	p.Verify = &plan.Verify{Share: 0.1}
	if got := p.Operations(); !slices.Equal(got, []string{"set", "get", "find", "findByOrder", plan.LedgerOperation}) ||
		p.Tallies() != nil {
		t.Errorf("operations %v, tallies %v", got, p.Tallies())
	}
	p = &plan.Plan{Workload: plan.Workload{HTTP: &plan.HTTP{URL: "http://x"}}}
	if got := p.Operations(); !slices.Equal(got, []string{"get"}) || len(p.Tallies()) != 9 || plan.TallyBodyMicros != 8 ||
		plan.TallyConnects != 5 {
		t.Errorf("operations %v, tallies %v", got, p.Tallies())
	}
	if p = (&plan.Plan{}); p.Operations() != nil || p.Tallies() != nil {
		t.Error("an empty plan has operations or tallies")
	}
}
