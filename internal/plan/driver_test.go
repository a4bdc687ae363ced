package plan_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/builders"
)

// Options keep whole numbers, at every depth: libraries tell 5 from 5.0.
func TestOptionsKeepNumbers(t *testing.T) {
	var got plan.Options
	if err := json.Unmarshal([]byte(`{"a": 5, "b": 0.5, "c": {"d": [1, 1e3, null, true, "x"]}, "e": 9223372036854775807}`), &got); err != nil {
		t.Fatal(err)
	}
	want := plan.Options{
		"a": int64(5), "b": 0.5, "c": map[string]any{"d": []any{int64(1), 1000.0, nil, true, "x"}},
		"e": int64(9223372036854775807),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
}

// What a library does not do is refused, with the field.
func TestPlansOfLibraries(t *testing.T) {
	for _, row := range []struct {
		change func(p *plan.Plan)
		want   string
	}{
		{func(*plan.Plan) {}, ""},
		{func(p *plan.Plan) { p.Client.Driver = plan.JedisDriver }, "spec.client.driver: Jedis needs its adapter"},
		{func(p *plan.Plan) { p.Client.Driver = "" }, "spec.client.options: driver Native has none"},
		{func(p *plan.Plan) { p.Client.Options["x"] = strings.Repeat("x", 16<<10) }, "spec.client.options: 16"},
		{func(p *plan.Plan) { p.Workload.Values.MaxBytes = 16 << 20 }, "spec.workload.values: driver GoRedis sends"},
		{func(p *plan.Plan) { p.Target.Addresses = []string{"unix:///a"} }, "spec.target.addresses: driver GoRedis connects by TCP"},
		{func(p *plan.Plan) { p.Client.ReadFrom = plan.ReadAny }, "spec.client.readFrom: driver GoRedis decides"},
		{func(p *plan.Plan) {
			p.Target.Sentinel = &plan.Sentinel{Addresses: []string{"a:1"}, TLS: &plan.TLS{}}
		}, "spec.target.sentinel.tls: driver GoRedis"},
	} {
		p := builders.Plan()
		p.Client.Driver, p.Client.Options = plan.GoRedisDriver, plan.Options{"PoolSize": int64(5)}
		row.change(p)
		err := p.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, without %q", err, row.want)
		}
	}
}
