package bottleneck

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

func TestInputOfPlan(t *testing.T) {
	p := &plan.Plan{Shape: plan.Shape{RampUp: time.Second, WarmUp: 2 * time.Second}, Client: plan.Client{AddedLatency: time.Millisecond}}
	if in := Of(p, nil); in.MeasuredFrom != 3*time.Second || in.AddedLatency != time.Millisecond || in.Backend != "" || in.Times != nil {
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
