package bottleneck

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/workload"
)

func TestOf(t *testing.T) {
	p := &load.Plan{Shape: load.Shape{RampUp: time.Second, WarmUp: 2 * time.Second}, Client: load.Client{AddedLatency: time.Millisecond}}
	if in := Of(p, nil); in.MeasuredFrom != 3*time.Second || in.AddedLatency != time.Millisecond || in.Backend != "" {
		t.Errorf("%+v", in)
	}
	for want, w := range map[string]load.Workload{
		"MySQL":                   {CacheAside: &workload.CacheAside{Database: workload.Database{Driver: "mysql"}}},
		"PostgreSQL":              {CacheAside: &workload.CacheAside{Database: workload.Database{Driver: "postgres"}}},
		"the API at shop.example": {HTTP: &workload.HTTP{URL: "https://user:secret@shop.example/cart?token=secret"}},
		"the API at [::1]:8080":   {HTTP: &workload.HTTP{URL: "http://[::1]:8080"}},
	} {
		p.Workload = w
		if got := Of(p, nil).Backend; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
