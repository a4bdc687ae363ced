package children

import (
	"path"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

func planWorkload(w *v1alpha1.Workload) plan.Workload {
	made := plan.Workload{
		Keyspace: plan.Keyspace{
			Prefix:       w.Keyspace.Prefix,
			Keys:         w.Keyspace.Keys,
			Distribution: plan.Distribution(w.Keyspace.Distribution),
			Prefill:      w.Keyspace.Prefill,
			TTL:          value(w.Keyspace.TTL).Duration,
		},
		Values: planValues(&w.Values),
	}
	for _, c := range w.Commands {
		made.Commands = append(made.Commands, plan.Command{Name: c.Name, Weight: int(c.Weight), Words: c.Command})
	}
	if b := w.Benchmark; b != nil {
		made.Benchmark = &plan.Benchmark{}
		for _, test := range b.Tests {
			made.Benchmark.Tests = append(made.Benchmark.Tests, string(test))
		}
	}
	if r := w.Ranking; r != nil {
		weights := value(r.Weights)
		made.Ranking = &plan.Ranking{
			Members: r.Members, ScoreSpread: r.ScoreSpread, FindCount: int(r.FindCount),
			Weights: plan.RankingWeights{
				Set: int(weights.Set), Get: int(weights.Get), Find: int(weights.Find), FindByOrder: int(weights.FindByOrder),
			},
		}
	}
	if l := w.RateLimiter; l != nil {
		made.RateLimiter = &plan.RateLimiter{Limit: l.Limit, Window: l.Window.Duration}
	}
	if c := w.CacheAside; c != nil {
		made.CacheAside = &plan.CacheAside{
			Mode:     plan.CacheAsideMode(c.Mode),
			HitRatio: share(c.HitRatio),
			Database: plan.Database{
				Driver: string(c.Database.Driver), DSNFile: path.Join(databaseDir, dsnFile), Query: c.Database.Query,
			},
		}
	}
	if h := w.HTTP; h != nil {
		made.HTTP = &plan.HTTP{URL: h.URL, Method: string(h.Method), Body: h.Body, KeepAlive: value(h.KeepAlive)}
		for _, header := range h.Headers {
			made.HTTP.Headers = append(made.HTTP.Headers, plan.Header{Name: header.Name, Value: header.Value})
		}
	}
	return made
}

func planValues(values *v1alpha1.ValueSizes) plan.Values {
	if values.MinBytes != nil {
		return plan.Values{MinBytes: int(*values.MinBytes), MaxBytes: int(value(values.MaxBytes))}
	}
	size := v1alpha1.DefaultValueBytes
	if values.Bytes != nil {
		size = int(*values.Bytes)
	}
	return plan.Values{MinBytes: size, MaxBytes: size}
}
