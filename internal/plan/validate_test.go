package plan_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/builders"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		field  string // how the message begins; "" = valid
		change func(*plan.Plan)
	}{
		{"", func(*plan.Plan) {}},
		{"", func(p *plan.Plan) { p.Shape = plan.Shape{Rate: 10, Users: 5, Requests: 7} }},
		{"", func(p *plan.Plan) {
			p.Shape = plan.Shape{Stages: []plan.Stage{{Duration: time.Second, Rate: 7}}, Duration: time.Second}
		}},
		{"", func(p *plan.Plan) {
			p.Shape = plan.Shape{Users: 9, Stages: []plan.Stage{{Duration: time.Second, Rate: 7}}}
		}},
		{"pods", func(p *plan.Plan) { p.Pods = 0 }},
		{"interval", func(p *plan.Plan) { p.Interval = time.Millisecond }},
		{"interval", func(p *plan.Plan) { p.Shape.Duration = 100000 * time.Hour }},
		{"info", func(p *plan.Plan) { p.Info = -1 }},
		{"target.addresses", func(p *plan.Plan) { p.Target.Addresses = nil }},
		{"target.addresses[1]", func(p *plan.Plan) { p.Target.Addresses = []string{"a:1", "b"} }},
		{"target.database", func(p *plan.Plan) { p.Target.Database = -1 }},
		{"target.tls", func(p *plan.Plan) { p.Target.TLS = &plan.TLS{CertFile: "x"} }},
		{"client.connections", func(p *plan.Plan) { p.Client.Connections = 0 }},
		{"client.pipeline", func(p *plan.Plan) { p.Client.Pipeline = 0 }},
		{"client.dialTimeout", func(p *plan.Plan) { p.Client.DialTimeout = 0 }},
		{"client.requestTimeout", func(p *plan.Plan) { p.Client.RequestTimeout = 0 }},
		{"client.protocol", func(p *plan.Plan) { p.Client.Protocol = 4 }},
		{"shape.users", func(p *plan.Plan) { p.Shape.Users = -1 }},
		{"shape.rate", func(p *plan.Plan) { p.Shape.Rate = math.NaN() }},
		{"shape.users", func(p *plan.Plan) { p.Shape = plan.Shape{Users: 1, Requests: 10} }},
		{"shape", func(p *plan.Plan) { p.Shape.Users = 0 }},
		{"shape", func(p *plan.Plan) { p.Shape.RampUp = -1 }},
		{"shape", func(p *plan.Plan) { p.Shape.Duration = 0 }},
		{"shape", func(p *plan.Plan) { p.Shape = plan.Shape{Rate: 5, Stages: []plan.Stage{{Duration: 1, Rate: 1}}} }},
		{"shape.thinkTime", func(p *plan.Plan) { p.Shape.Rate = 5; p.Shape.ThinkTime = 1 }},
		{"shape.stages[0]", func(p *plan.Plan) { p.Shape = plan.Shape{Stages: []plan.Stage{{Rate: 1}}} }},
		{"shape.stages", func(p *plan.Plan) {
			p.Shape = plan.Shape{Stages: []plan.Stage{{Duration: 1, Rate: 1}, {Duration: 1, Users: 1}}}
		}},
		{"shape.stages", func(p *plan.Plan) { p.Shape = plan.Shape{Stages: []plan.Stage{{Duration: 1}}} }},
		{"shape", func(p *plan.Plan) { p.Shape = plan.Shape{Users: 1, Stages: []plan.Stage{{Duration: 1, Users: 1}}} }},
		{"shape", func(p *plan.Plan) { p.Shape = plan.Shape{RampUp: 1, Stages: []plan.Stage{{Duration: 1, Users: 1}}} }},
		{"shape.duration", func(p *plan.Plan) { p.Shape = plan.Shape{Duration: 2, Stages: []plan.Stage{{Duration: 1, Users: 1}}} }},
		{"workload.commands", func(p *plan.Plan) { p.Workload.Commands = nil }},
		{"workload.commands[0].name", func(p *plan.Plan) { p.Workload.Commands[0].Name = "" }},
		{"workload.commands[1].name", func(p *plan.Plan) { p.Workload.Commands = append(p.Workload.Commands, p.Workload.Commands[0]) }},
		{"workload.commands[0].weight", func(p *plan.Plan) { p.Workload.Commands[0].Weight = 0 }},
		{"workload.commands[0].words", func(p *plan.Plan) { p.Workload.Commands[0].Words = nil }},
		{"workload.keyspace.keys", func(p *plan.Plan) { p.Workload.Keyspace.Keys = 0 }},
		{"workload.keyspace.distribution", func(p *plan.Plan) { p.Workload.Keyspace.Distribution = "Normal" }},
		{"workload.keyspace.ttl", func(p *plan.Plan) { p.Workload.Keyspace.TTL = 1 }},
		{"workload.values", func(p *plan.Plan) { p.Workload.Values = plan.Values{MinBytes: 2, MaxBytes: 1} }},
		{"probe.rate", func(p *plan.Plan) { p.Probe.Rate = -1 }},
		{"probe.words", func(p *plan.Plan) { p.Probe.Words = nil }},
	}
	for _, tt := range tests {
		p := builders.Plan()
		tt.change(p)
		err := p.Validate()
		if tt.field == "" {
			if err != nil {
				t.Errorf("%+v: %v", p.Shape, err)
			}
			continue
		}
		e, ok := errors.AsType[*plan.Error](err)
		if !ok || e.Reason != plan.PlanInvalid || !strings.HasPrefix(e.Message, tt.field+":") {
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

// What the operator knows of a run from its plan is what the pods record.
func TestNamesOfOperations(t *testing.T) {
	p := builders.Plan()
	p.Workload.Commands, p.Workload.Ranking = nil, &plan.Ranking{Members: 10, ScoreSpread: 10, FindCount: 1, Weights: plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1}}
	p.Verify = &plan.Verify{Share: 0.1}
	if got := p.Operations(); !slices.Equal(got, []string{"set", "get", "find", "findByOrder", plan.LedgerOperation}) || p.Tallies() != nil {
		t.Errorf("operations %v, tallies %v", got, p.Tallies())
	}
	p = &plan.Plan{Workload: plan.Workload{HTTP: &plan.HTTP{URL: "http://x"}}}
	if got := p.Operations(); !slices.Equal(got, []string{"get"}) || len(p.Tallies()) != 9 || plan.TallyBodyMicros != 8 || plan.TallyConnects != 5 {
		t.Errorf("operations %v, tallies %v", got, p.Tallies())
	}
	if p = (&plan.Plan{}); p.Operations() != nil || p.Tallies() != nil {
		t.Error("a plan of nothing has operations or tallies")
	}
}
