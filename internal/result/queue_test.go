package result

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// Users beyond the connections are a doubt where they waited: always if they do not think, otherwise if the connections
// were busy.
func TestDoubtOfUsersThatQueue(t *testing.T) {
	shape := func(users int, think time.Duration) plan.Shape {
		return plan.Shape{Users: users, ThinkTime: think, Duration: time.Second}
	}
	client := plan.Client{Connections: 50, Pipeline: 1}
	for name, tt := range map[string]struct {
		pods       int
		client     plan.Client
		shape      plan.Shape
		throughput float64
		mean       time.Duration
		shards     int
		want       bool
	}{
		"as many as connections": {2, client, shape(100, 0), 1000, time.Millisecond, 0, false},
		"more":                   {2, client, shape(101, 0), 1000, time.Millisecond, 0, true},
		"as many, in batches": {
			2,
			plan.Client{Connections: 50, Pipeline: 16},
			shape(100, 0),
			1000,
			time.Millisecond,
			0,
			false,
		},
		"more, in batches": {
			2,
			plan.Client{Connections: 50, Pipeline: 16},
			shape(101, 0),
			1000,
			time.Millisecond,
			0,
			true,
		},
		"connections for each shard": {1, client, shape(150, 0), 1000, time.Millisecond, 3, false},
		"more in every shard":        {1, client, shape(151, 0), 1000, time.Millisecond, 3, true},
		"in one stage": {
			1,
			client,
			plan.Shape{Stages: []plan.Stage{{Users: 10, Duration: 1}, {Users: 60, Duration: 1}}},
			1000,
			time.Millisecond,
			0,
			true,
		},
		"an open loop": {
			1,
			client,
			plan.Shape{Rate: 10, Users: 100, Duration: time.Second},
			10,
			time.Millisecond,
			0,
			false,
		},
		"multiplexed": {
			1,
			plan.Client{Connections: 1, Pipeline: 1, Mode: plan.Multiplexed},
			shape(100, 0),
			1000,
			time.Millisecond,
			0,
			false,
		},
		"thinking, idle connections": {1, client, shape(1000, time.Second), 1000, 39 * time.Millisecond, 0, false},
		"thinking, busy connections": {1, client, shape(1000, time.Second), 1000, 41 * time.Millisecond, 0, true},
		"thinking, in batches": {
			1,
			plan.Client{Connections: 50, Pipeline: 10},
			shape(1000, time.Second),
			1000,
			41 * time.Millisecond,
			0,
			false,
		},
		"thinking, without any success": {1, client, shape(1000, time.Second), 0, 0, 0, false},
	} {
		r := &Load{Total: Operation{Requests: 100, Throughput: tt.throughput}, Shards: make([]Shard, tt.shards)}
		if tt.mean > 0 {
			r.Total.Latency = &Quantiles{Mean: Seconds(tt.mean)}
		}
		r.doubtQueue(&plan.Plan{Pods: tt.pods, Client: tt.client, Shape: tt.shape})
		if got := len(r.Doubts) == 1 && r.Doubts[0].Reason == "UsersQueue"; got != tt.want {
			t.Errorf("%s: doubts %v", name, r.Doubts)
		}
	}
	r := &Load{Total: Operation{Requests: 100}}
	r.doubtQueue(&plan.Plan{Pods: 2, Client: client, Shape: shape(1000, 0)})
	if want := "1000 users shared 100 connections: requests waited for a connection, which no latency contains; set " +
		"client.connections to 500 per load pod"; !strings.HasPrefix(r.Doubts[0].Message, want) {
		t.Error(r.Doubts[0].Message)
	}
}
