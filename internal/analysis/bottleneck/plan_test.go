package bottleneck

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

func TestInputOfPlan(t *testing.T) {
	p := &plan.Plan{
		Shape:  plan.Shape{RampUp: time.Second, WarmUp: 2 * time.Second},
		Client: plan.Client{AddedLatency: time.Millisecond},
	}
	if in := Of(p, nil); in.MeasuredFrom != 3*time.Second || in.AddedLatency != time.Millisecond || in.Backend != "" ||
		in.Times != nil {
		t.Errorf("%+v", in)
	}
	for want, w := range map[string]plan.Workload{
		"MySQL or MariaDB":        {CacheAside: &plan.CacheAside{Database: plan.Database{Driver: "mysql"}}},
		"PostgreSQL":              {CacheAside: &plan.CacheAside{Database: plan.Database{Driver: "postgres"}}},
		"the API at shop.example": {HTTP: &plan.HTTP{URL: "https://user:secret@shop.example/cart?token=secret"}},
		"the API at [::1]:8080":   {HTTP: &plan.HTTP{URL: "http://[::1]:8080"}},
	} {
		p.Workload = w
		if got := Of(p, nil).Backend; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Where Redis stands on the way of the requests, and why it is not asked.
func TestRedisOfAPlan(t *testing.T) {
	t.Parallel()
	redis := plan.Target{Addresses: []string{"redis:6379"}}
	commands := plan.Workload{}
	http := plan.Workload{HTTP: &plan.HTTP{URL: "http://shop"}}
	cache := plan.Workload{CacheAside: &plan.CacheAside{Mode: plan.ThroughCache}}
	database := plan.Workload{CacheAside: &plan.CacheAside{Mode: plan.DatabaseOnly}}
	for _, c := range []struct {
		name     string
		plan     plan.Plan
		want     Place
		notAsked string
	}{
		{"commands", plan.Plan{Target: redis, Info: time.Second, Workload: commands}, Direct, ""},
		{"commands, without INFO", plan.Plan{Target: redis, Workload: commands}, Direct, "observe.redisInfo is 0s"},
		{"http", plan.Plan{Workload: http}, Apart, ""},
		{"http, with the Redis of the API", plan.Plan{Target: redis, Info: time.Second, Workload: http}, Behind, ""},
		{"cacheAside", plan.Plan{Target: redis, Info: time.Second, Workload: cache}, Direct, ""},
		{"the database only", plan.Plan{Workload: database}, Apart, ""},
		{"the database only, with a target", plan.Plan{Target: redis, Info: time.Second, Workload: database}, Apart, ""},
	} {
		if in := Of(&c.plan, nil); in.Redis != c.want || in.NotAsked != c.notAsked {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, in.Redis, in.NotAsked, c.want, c.notAsked)
		}
	}
}

// The servers without readings are named, if they are not the only one.
func TestNotObserved(t *testing.T) {
	t.Parallel()
	of := func(p plan.Plan, servers []record.Server, failed ...record.Unobserved) string {
		s := merged.New("run", time.Unix(0, 0), time.Second, nil, 1)
		iv := &record.Interval{
			Pods: 1, FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1, Servers: servers, Unobserved: failed,
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
		return NotObserved(&p, s)
	}
	asked := plan.Plan{Target: plan.Target{Addresses: []string{"a:1"}}, Info: time.Second}
	a, b := record.Unobserved{Address: "a:1", Reason: "NOPERM"}, record.Unobserved{Address: "b:1", Reason: "refused"}
	for got, want := range map[string]string{
		of(plan.Plan{}, nil):                            "",
		of(asked, []record.Server{{Address: "a:1"}}):    "",
		of(asked, nil, a):                               "NOPERM",
		of(asked, nil, a, b):                            "a:1: NOPERM; b:1: refused",
		of(asked, []record.Server{{Address: "a:1"}}, b): "b:1: refused",
		of(asked, nil, a, b, record.Unobserved{Address: "c:1", Reason: "x"}, record.Unobserved{
			Address: "d:1",
			Reason:  "x",
		}): "a:1: NOPERM; b:1: refused; c:1: x; 1 more",
		of(plan.Plan{Target: asked.Target}, nil): "observe.redisInfo is 0s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
