package children

import (
	"path"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

func planWorkload(w *v1alpha1.Workload) plan.Workload {
	spec := plan.Workload{
		Keyspace: plan.Keyspace{
			Prefix:       w.Keyspace.Prefix,
			Keys:         w.Keyspace.Keys,
			Distribution: plan.Distribution(w.Keyspace.Distribution),
			Prefill:      w.Keyspace.Prefill,
			TTL:          length(w.Keyspace.TTL),
		},
		Values: planValues(&w.Values),
	}
	for _, c := range w.Commands {
		spec.Commands = append(spec.Commands, plan.Command{Name: c.Name, Weight: int(c.Weight), Words: c.Command})
	}
	if b := w.Benchmark; b != nil {
		spec.Benchmark = &plan.Benchmark{}
		for _, test := range b.Tests {
			spec.Benchmark.Tests = append(spec.Benchmark.Tests, string(test))
		}
	}
	if r := w.Ranking; r != nil {
		spec.Ranking = &plan.Ranking{
			Members: r.Members, ScoreSpread: r.ScoreSpread, FindCount: int(r.FindCount), Weights: planRankingWeights(r.Weights),
		}
	}
	if l := w.RateLimiter; l != nil {
		spec.RateLimiter = &plan.RateLimiter{Limit: l.Limit, Window: l.Window.Duration}
	}
	if c := w.CacheAside; c != nil {
		spec.CacheAside = planCacheAside(c)
	}
	if h := w.HTTP; h != nil {
		spec.HTTP = planHTTP(h)
	}
	return spec
}

func planRankingWeights(w *v1alpha1.RankingWeights) plan.RankingWeights {
	if w == nil {
		return plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1}
	}
	return plan.RankingWeights{Set: int(w.Set), Get: int(w.Get), Find: int(w.Find), FindByOrder: int(w.FindByOrder)}
}

func planCacheAside(c *v1alpha1.CacheAsideWorkload) *plan.CacheAside {
	ratio, _ := percentage(c.HitRatio) // was checked before; 0 where absent
	return &plan.CacheAside{
		Mode:     plan.CacheAsideMode(c.Mode),
		HitRatio: ratio,
		Database: plan.Database{
			Driver: string(c.Database.Driver), DSNFile: path.Join(databaseDir, dsnFile), Query: c.Database.Query,
		},
	}
}

func planHTTP(h *v1alpha1.HTTPWorkload) *plan.HTTP {
	made := &plan.HTTP{URL: h.URL, Method: string(h.Method), Body: h.Body, KeepAlive: *h.KeepAlive}
	for _, header := range h.Headers {
		made.Headers = append(made.Headers, plan.Header{Name: header.Name, Value: header.Value})
	}
	return made
}

// defaultValueBytes is the size of a value where nothing is set. Not a marker of the CRD: with bytes set by default, minBytes could never be.
const defaultValueBytes = 32

func planValues(values *v1alpha1.ValueSizes) plan.Values {
	switch {
	case values.MinBytes != nil:
		return plan.Values{MinBytes: int(*values.MinBytes), MaxBytes: int(*values.MaxBytes)}
	case values.Bytes != nil:
		return plan.Values{MinBytes: int(*values.Bytes), MaxBytes: int(*values.Bytes)}
	}
	return plan.Values{MinBytes: defaultValueBytes, MaxBytes: defaultValueBytes}
}
