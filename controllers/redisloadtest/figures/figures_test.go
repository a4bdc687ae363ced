package figures

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/apitest"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

// Figures of every size fit the CRD: none, and the largest that a week of load can give.
func TestFiguresFitTheCRD(t *testing.T) {
	loads := apitest.StatusSchema(t, "redquake.dev_redisloadtests.yaml")
	for _, r := range []*result.Load{largest(168 * time.Hour), {}} {
		for name, value := range map[string]any{
			"summary": digest.Summary(r),
			"redis":   digest.Redis(&result.Redis{MaxCPU: 1e12, MaxMainThreadCPU: 1e12, MaxMemory: math.MaxInt64}),
		} {
			schema := loads.Properties[name]
			apitest.Fits(t, name, &schema, value)
		}
	}
	if digest.Redis(nil) != nil {
		t.Error("facts of a server that was never queried")
	}
}

// largest is the figures of the largest load that there can be.
func largest(week time.Duration) *result.Load {
	long := result.Seconds(week)
	o := result.Operation{
		Name:       strings.Repeat("n", 63),
		Requests:   1 << 60,
		OK:         1 << 59,
		Failed:     1 << 58,
		Unknown:    1 << 58,
		Dropped:    1 << 58,
		ErrorRate:  1 - 1e-11,
		Throughput: 1e8 / 3,
		Latency:    &result.Quantiles{P50: long, P90: long, P95: long, P99: long, P999: long, P9999: long, Max: long},
	}
	r := &result.Load{
		Total:  o,
		MaxLag: long,
		Workload: []result.Figure{
			{Name: "a", Share: new(1.0 / 3)},
			{Name: "b", Seconds: &long},
			{Name: "c", Count: new(uint64(1 << 60))},
		},
	}
	for class := range record.NumClasses {
		r.Errors = append(r.Errors, result.ErrorCount{Class: record.Class(class).String(), Count: math.MaxUint64})
	}
	for i := range 32 {
		r.Operations = append(r.Operations, o)
		r.Shards = append(r.Shards, result.Shard{Shard: i, Errors: 1 << 60, Throughput: 1e8 / 3, LongestGap: long})
	}
	return r
}

// Of a load without a request, such as one in its warm-up, no column and no share says 0.
func TestFiguresWithoutARequest(t *testing.T) {
	s := &scope.Test{Test: &v1alpha1.RedisLoadTest{}, Result: &result.Load{}}
	if d := display(s, ""); d.TPS != "" || d.Errors != "" || d.P99 != "" || d.Progress != "0%" {
		t.Errorf("the columns are %+v", d)
	}
	if sum := digest.Summary(s.Result); sum.ErrorRate != "" || sum.Throughput != "" {
		t.Errorf("the summary is %+v", sum)
	}
	s.Result.Total = result.Operation{Requests: 1, Failed: 1, ErrorRate: 1}
	if d, sum := display(s, ""),
		digest.Summary(s.Result); d.TPS != "0" || d.Errors != "100%" || sum.ErrorRate != "1" || sum.Throughput != "0" {
		t.Errorf("of a request that failed: %+v, %+v", d, sum)
	}
}
