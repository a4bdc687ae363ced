package children

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// operationName is the pattern of a command's name in the CRD.
var operationName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// maxWeight is the CRD's.
const maxWeight = 1_000_000

func (p *problems) workload(path *field.Path, w *v1alpha1.Workload) {
	p.oneWorkload(path, w)
	p.commands(path.Child("commands"), w.Commands)
	if w.Benchmark != nil {
		p.benchmark(path.Child("benchmark", "tests"), w.Benchmark.Tests)
	}
	if w.Ranking != nil {
		p.ranking(path.Child("ranking"), w.Ranking)
	}
	if l := w.RateLimiter; l != nil {
		between(p, path.Child("rateLimiter", "limit"), l.Limit, 1, 1_000_000_000)
		between(p, path.Child("rateLimiter", "window"), l.Window.Duration, time.Millisecond, 24*time.Hour)
	}
	if w.CacheAside != nil {
		p.cacheAside(path.Child("cacheAside"), w.CacheAside)
	}
	if w.HTTP != nil {
		p.http(path.Child("http"), w.HTTP)
	}
	keyspace, at := &w.Keyspace, path.Child("keyspace")
	between(p, at.Child("keys"), keyspace.Keys, 1, 1_000_000_000)
	oneOf(p, at.Child("distribution"), keyspace.Distribution, "Uniform", "Zipf", "Gaussian", "Sequential")
	if keyspace.TTL != nil {
		between(p, at.Child("ttl"), keyspace.TTL.Duration, time.Second, 8760*time.Hour)
	}
	p.values(path.Child("values"), &w.Values)
}

// oneWorkload wants exactly one.
func (p *problems) oneWorkload(path *field.Path, w *v1alpha1.Workload) {
	first := ""
	for _, is := range []struct {
		name string
		set  bool
	}{
		{"commands", len(w.Commands) > 0}, {"benchmark", w.Benchmark != nil}, {"ranking", w.Ranking != nil},
		{"rateLimiter", w.RateLimiter != nil}, {"cacheAside", w.CacheAside != nil}, {"http", w.HTTP != nil},
	} {
		switch {
		case is.set && first != "":
			p.conflict(path.Child(is.name), first+" is set, too: set exactly one workload")
		case is.set:
			first = is.name
		}
	}
	if first == "" {
		p.missing(path.Child("commands"), "set commands, benchmark, ranking, rateLimiter, cacheAside or http: without one of them there is no load")
	}
}

func (p *problems) commands(path *field.Path, commands []v1alpha1.WorkloadCommand) {
	between(p, path, len(commands), 0, 32)
	seen := map[string]bool{}
	for i, c := range commands {
		at := path.Index(i)
		switch {
		case seen[c.Name]:
			p.list = append(p.list, field.Duplicate(at.Child("name"), c.Name))
		case len(c.Name) > 63 || !operationName.MatchString(c.Name):
			p.add(at.Child("name"), c.Name, "must be letters, digits, '-', '_' and '.', at most 63, and begin and end with a letter or digit")
		}
		seen[c.Name] = true
		between(p, at.Child("weight"), c.Weight, 1, maxWeight)
		between(p, at.Child("command"), len(c.Command), 1, 64)
	}
}

func (p *problems) benchmark(path *field.Path, tests []v1alpha1.BenchmarkTest) {
	if len(tests) == 0 {
		p.missing(path, "name at least one test")
	}
	seen := map[v1alpha1.BenchmarkTest]bool{}
	for i, test := range tests {
		if seen[test] {
			p.list = append(p.list, field.Duplicate(path.Index(i), test))
		}
		seen[test] = true
		oneOf(p, path.Index(i), string(test), plan.BenchmarkTests()...)
	}
}

func (p *problems) ranking(path *field.Path, r *v1alpha1.RankingWorkload) {
	between(p, path.Child("members"), r.Members, 1, 1_000_000_000)
	between(p, path.Child("scoreSpread"), r.ScoreSpread, 1, 1_000_000_000_000_000)
	between(p, path.Child("findCount"), r.FindCount, 1, 1000)
	if int64(r.FindCount) > r.Members && r.Members > 0 {
		p.add(path.Child("findCount"), r.FindCount, "must not be above members")
	}
	w, at := r.Weights, path.Child("weights")
	if w == nil {
		return
	}
	between(p, at.Child("set"), w.Set, 0, maxWeight)
	between(p, at.Child("get"), w.Get, 0, maxWeight)
	between(p, at.Child("find"), w.Find, 0, maxWeight)
	between(p, at.Child("findByOrder"), w.FindByOrder, 0, maxWeight)
	if *w == (v1alpha1.RankingWeights{}) {
		p.missing(at, "at least one weight must be above 0")
	}
}

func (p *problems) cacheAside(path *field.Path, c *v1alpha1.CacheAsideWorkload) {
	oneOf(p, path.Child("mode"), c.Mode, v1alpha1.CacheAsideThroughCache, v1alpha1.CacheAsideDatabaseOnly)
	if c.HitRatio != "" {
		if ratio, err := percentage(c.HitRatio); err != nil || !(ratio > 0 && ratio <= 1) {
			p.add(path.Child("hitRatio"), c.HitRatio, "must be a percentage such as 90%, above 0% and at most 100%")
		}
	}
	database, at := &c.Database, path.Child("database")
	oneOf(p, at.Child("driver"), database.Driver, v1alpha1.DatabaseMySQL, v1alpha1.DatabasePostgres)
	if database.DSNSecretRef.Name == "" || database.DSNSecretRef.Key == "" {
		p.missing(at.Child("dsnSecretRef"), "set name and key of the Secret")
	}
	if database.Query == "" {
		p.missing(at.Child("query"), "a SELECT with one parameter, the key's number")
	}
}

// http leaves what a URL and a header are to the workload itself, whose words come with the plan's.
func (p *problems) http(path *field.Path, h *v1alpha1.HTTPWorkload) {
	if h.URL == "" {
		p.missing(path.Child("url"), "such as http://shop/api/departments")
	}
	oneOf(p, path.Child("method"), h.Method, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	between(p, path.Child("headers"), len(h.Headers), 0, 32)
}

func (p *problems) values(path *field.Path, values *v1alpha1.ValueSizes) {
	const most = 16 << 20
	for name, bytes := range map[string]*int32{"bytes": values.Bytes, "minBytes": values.MinBytes, "maxBytes": values.MaxBytes} {
		if bytes != nil {
			between(p, path.Child(name), *bytes, 1, most)
		}
	}
	lo, hi := values.MinBytes, values.MaxBytes
	switch {
	case (lo == nil) != (hi == nil):
		p.conflict(path, "set both minBytes and maxBytes, or bytes")
	case lo != nil && values.Bytes != nil:
		p.conflict(path, "set bytes, or minBytes and maxBytes")
	case lo != nil && *lo > *hi:
		p.add(path.Child("minBytes"), *lo, "must not be above maxBytes")
	}
}
