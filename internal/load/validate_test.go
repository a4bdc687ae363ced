package load

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func validPlan() *Plan {
	return &Plan{
		Run: "r", Pods: 2, Interval: 100 * time.Millisecond,
		Target: Target{Addresses: []string{"redis:6379"}},
		Client: Client{Connections: 50, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: time.Second, Protocol: 3},
		Shape:  Shape{Users: 100, Duration: time.Minute},
		Workload: Workload{
			Commands: []Command{{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}}},
			Keyspace: Keyspace{Prefix: "rq:", Keys: 10, Distribution: Uniform}, Values: Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: Probe{Rate: 100, Words: []string{"PING"}},
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		field  string // how the message begins; "" = valid
		change func(*Plan)
	}{
		{"", func(*Plan) {}},
		{"", func(p *Plan) { p.Shape = Shape{Rate: 10, Users: 5, Requests: 7} }},
		{"", func(p *Plan) {
			p.Shape = Shape{Stages: []Stage{{Duration: time.Second, Rate: 7}}, Duration: time.Second}
		}},
		{"", func(p *Plan) { p.Shape = Shape{Users: 9, Stages: []Stage{{Duration: time.Second, Rate: 7}}} }},
		{"pods", func(p *Plan) { p.Pods = 0 }},
		{"interval", func(p *Plan) { p.Interval = time.Millisecond }},
		{"interval", func(p *Plan) { p.Shape.Duration = 100000 * time.Hour }},
		{"info", func(p *Plan) { p.Info = -1 }},
		{"target.addresses", func(p *Plan) { p.Target.Addresses = nil }},
		{"target.addresses[1]", func(p *Plan) { p.Target.Addresses = []string{"a:1", "b"} }},
		{"target.database", func(p *Plan) { p.Target.Database = -1 }},
		{"target.tls", func(p *Plan) { p.Target.TLS = &TLS{CertFile: "x"} }},
		{"client.connections", func(p *Plan) { p.Client.Connections = 0 }},
		{"client.pipeline", func(p *Plan) { p.Client.Pipeline = 0 }},
		{"client.dialTimeout", func(p *Plan) { p.Client.DialTimeout = 0 }},
		{"client.requestTimeout", func(p *Plan) { p.Client.RequestTimeout = 0 }},
		{"client.protocol", func(p *Plan) { p.Client.Protocol = 4 }},
		{"shape.users", func(p *Plan) { p.Shape.Users = -1 }},
		{"shape.rate", func(p *Plan) { p.Shape.Rate = math.NaN() }},
		{"shape.users", func(p *Plan) { p.Shape = Shape{Users: 1, Requests: 10} }},
		{"shape", func(p *Plan) { p.Shape.Users = 0 }},
		{"shape", func(p *Plan) { p.Shape.RampUp = -1 }},
		{"shape", func(p *Plan) { p.Shape.Duration = 0 }},
		{"shape", func(p *Plan) { p.Shape = Shape{Rate: 5, Stages: []Stage{{Duration: 1, Rate: 1}}} }},
		{"shape.thinkTime", func(p *Plan) { p.Shape.Rate = 5; p.Shape.ThinkTime = 1 }},
		{"shape.stages[0]", func(p *Plan) { p.Shape = Shape{Stages: []Stage{{Rate: 1}}} }},
		{"shape.stages", func(p *Plan) { p.Shape = Shape{Stages: []Stage{{Duration: 1, Rate: 1}, {Duration: 1, Users: 1}}} }},
		{"shape.stages", func(p *Plan) { p.Shape = Shape{Stages: []Stage{{Duration: 1}}} }},
		{"shape", func(p *Plan) { p.Shape = Shape{Users: 1, Stages: []Stage{{Duration: 1, Users: 1}}} }},
		{"shape", func(p *Plan) { p.Shape = Shape{RampUp: 1, Stages: []Stage{{Duration: 1, Users: 1}}} }},
		{"shape.duration", func(p *Plan) { p.Shape = Shape{Duration: 2, Stages: []Stage{{Duration: 1, Users: 1}}} }},
		{"workload.commands", func(p *Plan) { p.Workload.Commands = nil }},
		{"workload.commands[0].name", func(p *Plan) { p.Workload.Commands[0].Name = "" }},
		{"workload.commands[1].name", func(p *Plan) { p.Workload.Commands = append(p.Workload.Commands, p.Workload.Commands[0]) }},
		{"workload.commands[0].weight", func(p *Plan) { p.Workload.Commands[0].Weight = 0 }},
		{"workload.commands[0].words", func(p *Plan) { p.Workload.Commands[0].Words = nil }},
		{"workload.keyspace.keys", func(p *Plan) { p.Workload.Keyspace.Keys = 0 }},
		{"workload.keyspace.distribution", func(p *Plan) { p.Workload.Keyspace.Distribution = "Normal" }},
		{"workload.keyspace.ttl", func(p *Plan) { p.Workload.Keyspace.TTL = 1 }},
		{"workload.values", func(p *Plan) { p.Workload.Values = Values{MinBytes: 2, MaxBytes: 1} }},
		{"probe.rate", func(p *Plan) { p.Probe.Rate = -1 }},
		{"probe.words", func(p *Plan) { p.Probe.Words = nil }},
	}
	for _, tt := range tests {
		p := validPlan()
		tt.change(p)
		_, err := New(p, 0)
		if tt.field == "" {
			if err != nil {
				t.Errorf("%+v: %v", p.Shape, err)
			}
			continue
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Reason != PlanInvalid || !strings.HasPrefix(e.Message, tt.field+":") {
			t.Errorf("want PlanInvalid about %s, have %v", tt.field, err)
		}
	}
	for _, pod := range []int{-1, 2} {
		if _, err := New(validPlan(), pod); err == nil {
			t.Errorf("pod %d of 2 was taken", pod)
		}
	}
}

func TestPlanSurvivesJSON(t *testing.T) {
	p := validPlan()
	p.Target.TLS = &TLS{CAFile: "/ca", ServerName: "redis"}
	p.Shape.Stages = []Stage{{Duration: time.Second, Rate: 1.5}}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Plan
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, &back); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
}

func TestShapeLength(t *testing.T) {
	stages := []Stage{{Duration: 2 * time.Second, Users: 1}, {Duration: 3 * time.Second, Users: 2}}
	tests := []struct {
		shape Shape
		want  time.Duration
	}{
		{Shape{Users: 1, Requests: 5, RampUp: time.Second}, 0},
		{Shape{Users: 1, RampUp: time.Second, WarmUp: 2 * time.Second, Duration: 4 * time.Second}, 7 * time.Second},
		{Shape{Stages: stages}, 5 * time.Second},
		{Shape{Stages: stages, Duration: 5 * time.Second}, 5 * time.Second},
	}
	for _, tt := range tests {
		if got := tt.shape.Length(); got != tt.want {
			t.Errorf("%+v lasts %s, want %s", tt.shape, got, tt.want)
		}
	}
}

func TestLayOut(t *testing.T) {
	tests := []struct {
		name        string
		shape       Shape
		connections int
		pipeline    int
		depths      []int // of pod 0's connections, of 2 pods
	}{
		{"one connection per user", Shape{Users: 5, Requests: 1}, 50, 1, []int{1, 1, 1}},
		{"users share connections", Shape{Users: 100, Requests: 1}, 2, 4, []int{4, 4}},
		{"open loop uses all", Shape{Rate: 1, Requests: 1}, 3, 4, []int{4, 4, 4}},
		{"users bound what is in flight", Shape{Rate: 1, Users: 14, Requests: 1}, 3, 4, []int{3, 2, 2}},
		{"users bound the connections", Shape{Rate: 1, Users: 3, Requests: 1}, 3, 4, []int{1, 1}},
		{"one at least", Shape{Rate: 1, Users: 1, Requests: 1}, 3, 4, []int{1}},
	}
	for _, tt := range tests {
		p := validPlan()
		p.Shape, p.Client.Connections, p.Client.Pipeline = tt.shape, tt.connections, tt.pipeline
		r, err := New(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		var depths []int
		for _, c := range r.run.loops[0].conns {
			depths = append(depths, c.depth)
		}
		if diff := cmp.Diff(tt.depths, depths); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
