package digest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/result"
)

// A status has the figures of a load, its longest outage with whose it was, and of a search the trials that have ended.
func TestLoadOf(t *testing.T) {
	t.Parallel()
	status := v1alpha1.RedisLoadTestStatus{}
	if err := yaml.UnmarshalStrict([]byte(`
summary:
  requests: 1000
  errors: 10
  failed: 7
  unknown: 3
  throughput: "99.5"
  errorRate: "0.01"
  outage: {value: 2s, atLeast: 1.9s, atMost: 2.1s, of: Shard, shard: 2}
search:
  rate: 500
  trials:
  - {rate: 500, met: true, throughput: "499", latencyP99: 3ms}
  - {rate: 1000}
`), &status); err != nil {
		t.Fatal(err)
	}
	l := LoadOf(&status, plan.Shape{})
	if l.Total.OK != 990 || l.Total.Failed != 7 || l.Total.Unknown != 3 || l.Total.Throughput != 99.5 ||
		l.Latency != result.ServiceTime {
		t.Errorf("%+v", l.Total)
	}
	want := &result.ShardGap{
		Shard: 2,
		Gap: result.Gap{
			Length:  result.Seconds(2 * time.Second),
			AtLeast: result.Seconds(1900 * time.Millisecond),
			AtMost:  result.Seconds(2100 * time.Millisecond),
		},
	}
	if diff := cmp.Diff(want, l.LongestShardGap); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	trials := []result.Trial{
		{Rate: 500, Met: true, Throughput: 499, Latency: &result.Quantiles{P99: result.Seconds(3 * time.Millisecond)}},
	}
	if diff := cmp.Diff(trials, l.Search.Trials); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
