package children

import (
	"cmp"
	"hash/fnv"
	"path"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// MaxSeed is the largest seed of a load: every reader of JSON keeps so many bits.
const MaxSeed = 1<<53 - 1

// seedOf returns the seed of a load test: that of its spec, or one of its UID, so that every plan
// of an object has the same one, and no two objects do.
func seedOf(test *v1alpha1.RedisLoadTest) uint64 {
	if seed := test.Spec.Workload.Seed; seed != nil {
		return uint64(*seed)
	}
	return seedOfUID(test.UID)
}

func seedOfUID(uid types.UID) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(uid))
	return cmp.Or(sum.Sum64()&MaxSeed, 1)
}

func planWorkload(spec *v1alpha1.RedisLoadTestSpec) plan.Workload {
	w := &spec.Workload
	made := plan.Workload{
		Keyspace: planKeyspace(&w.Keyspace),
		Values:   planValues(&w.Values),
	}
	for _, c := range w.Commands {
		made.Commands = append(made.Commands, plan.Command{
			Name:   c.Name,
			Weight: int(c.Weight),
			Words:  c.Command,
		})
	}
	if b := w.Benchmark; b != nil {
		made.Benchmark = &plan.Benchmark{Order: plan.BenchmarkOrder(b.Order)}
		for _, test := range b.Tests {
			made.Benchmark.Tests = append(made.Benchmark.Tests, string(test))
		}
		if b.Order == v1alpha1.BenchmarkSequential && spec.Load.Requests == nil {
			made.Benchmark.Each = measured(&spec.Load) / time.Duration(len(b.Tests))
		}
	}
	if r := w.Ranking; r != nil {
		weights := value(r.Weights)
		made.Ranking = &plan.Ranking{
			Members:     r.Members,
			ScoreSpread: r.ScoreSpread,
			FindCount:   int(r.FindCount),
			Weights: plan.RankingWeights{
				Set:         int(weights.Set),
				Get:         int(weights.Get),
				Find:        int(weights.Find),
				FindByOrder: int(weights.FindByOrder),
			},
		}
	}
	if l := w.RateLimiter; l != nil {
		made.RateLimiter = &plan.RateLimiter{Limit: l.Limit, Window: l.Window.Duration}
	}
	if l := w.Lock; l != nil {
		made.Lock = planLock(l, int(spec.Pods.Count), timeout(&spec.Client, v1alpha1.DefaultRequestTimeout))
	}
	if c := w.CacheAside; c != nil {
		made.CacheAside = &plan.CacheAside{
			Mode:     plan.CacheAsideMode(c.Mode),
			HitRatio: v1alpha1.Percentage(c.HitRatio).Share(),
			Database: plan.Database{
				Driver:  string(c.Database.Driver),
				DSNFile: path.Join(databaseDir, dsnFile),
				Query:   c.Database.Query,
			},
		}
	}
	if h := w.HTTP; h != nil {
		made.HTTP = &plan.HTTP{
			URL:       h.URL,
			Method:    string(h.Method),
			Body:      h.Body,
			KeepAlive: value(h.KeepAlive),
		}
		for _, header := range h.Headers {
			made.HTTP.Headers = append(made.HTTP.Headers, plan.Header{
				Name:  header.Name,
				Value: header.Value,
			})
		}
	}
	return made
}

// planLock is the plan of locks; within is the time limit of a request.
func planLock(l *v1alpha1.LockWorkload, pods int, within time.Duration) *plan.Lock {
	made := &plan.Lock{
		Pods:         pods,
		Locks:        int(l.Locks),
		TTL:          l.TTL.Duration,
		Hold:         l.Hold.Duration,
		Renew:        l.TTL.Duration / 3,
		Retry:        l.RetryEvery.Duration,
		WaitReplicas: int(l.WaitReplicas),
		Fencing:      l.Fencing,
	}
	if l.WaitReplicas > 0 {
		made.Wait = min(l.TTL.Duration, within) / 2
	}
	if l.RenewEvery != nil {
		made.Renew = l.RenewEvery.Duration
	}
	return made
}

// measured is the length of the measured time, without an extension for faults; 0 if a number of
// requests ends it.
func measured(load *v1alpha1.LoadShape) time.Duration {
	length := value(load.Duration).Duration
	for _, stage := range load.Stages {
		length += stage.Duration.Duration
	}
	return length
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

func planKeyspace(k *v1alpha1.Keyspace) plan.Keyspace {
	made := plan.Keyspace{
		Prefix:       k.Prefix,
		Keys:         k.Keys,
		Distribution: plan.Distribution(k.Distribution),
		Prefill:      k.Prefill,
		TTL:          value(k.TTL).Duration,
		Scattered:    k.Scattered,
		Cleanup:      k.Cleanup == v1alpha1.CleanupDelete,
	}
	if z := k.Zipf; z != nil {
		made.ZipfExponent, _ = strconv.ParseFloat(z.Exponent, 64) // its pattern allows only numbers
	}
	if g := k.Gaussian; g != nil {
		if g.Centre != "" {
			made.Centre = new(v1alpha1.Percentage(g.Centre).Share())
		}
		made.Deviation = v1alpha1.Percentage(g.Deviation).Share()
	}
	return made
}
