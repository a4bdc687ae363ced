package plan

import (
	"fmt"
	"slices"
	"time"
)

// Workload defines the requests: exactly one of the workloads, over a keyspace. In JSON, durations
// are in nanoseconds.
type Workload struct {
	Commands    []Command    `json:"commands,omitempty"` // at least one for this workload
	Benchmark   *Benchmark   `json:"benchmark,omitempty"`
	Ranking     *Ranking     `json:"ranking,omitempty"`
	RateLimiter *RateLimiter `json:"rateLimiter,omitempty"`
	Lock        *Lock        `json:"lock,omitempty"`
	CacheAside  *CacheAside  `json:"cacheAside,omitempty"`
	HTTP        *HTTP        `json:"http,omitempty"`

	Keyspace Keyspace `json:"keyspace"`
	Values   Values   `json:"values"`

	// determines all random draws of the run; 0 = those of tests
	Seed uint64 `json:"seed,omitempty"`
}

// definition is implemented by each workload.
type definition interface {
	// an error that the CRD cannot detect, beginning with the field below the workload's own; "" =
	// none
	check(k *Keyspace) string
	operations() []Operation // of a valid workload
	tallies() []string       // names of further counters
}

// Problem returns what is invalid in the workload, beginning with the field's path below
// spec.workload; "" = nothing.
func (w *Workload) Problem() string {
	set := w.set()
	switch len(set) {
	case 0:
		return "commands: is missing, and no other workload is set"
	case 1:
	default:
		return fmt.Sprintf("%s: %s is set, too; set one workload", set[1].name, set[0].name)
	}
	if problem := set[0].check(&w.Keyspace); problem != "" {
		if problem[0] == '[' {
			return set[0].name + problem
		}
		return set[0].name + "." + problem
	}
	return ""
}

// Operations returns the operations in the order of every record; nil for an invalid workload
// without any.
func (w *Workload) Operations() []Operation {
	set := w.set()
	if len(set) == 0 {
		return nil
	}
	return set[0].operations()
}

// Tallies are the names of the workload's further counters, in the order of every record; nil for
// most workloads.
func (w *Workload) Tallies() []string {
	set := w.set()
	if len(set) == 0 {
		return nil
	}
	return set[0].tallies()
}

// named is a workload that is set.
type named struct {
	name string // the JSON name
	definition
}

// set returns the workloads that are set: one if the spec is valid.
func (w *Workload) set() []named {
	var found []named
	if len(w.Commands) > 0 {
		found = append(found, named{"commands", commandList(w.Commands)})
	}
	if w.Benchmark != nil {
		found = append(found, named{"benchmark", w.Benchmark})
	}
	if w.Ranking != nil {
		found = append(found, named{"ranking", w.Ranking})
	}
	if w.RateLimiter != nil {
		found = append(found, named{"rateLimiter", w.RateLimiter})
	}
	if w.Lock != nil {
		found = append(found, named{"lock", w.Lock})
	}
	if w.CacheAside != nil {
		found = append(found, named{"cacheAside", w.CacheAside})
	}
	if w.HTTP != nil {
		found = append(found, named{"http", w.HTTP})
	}
	return found
}

// OnlyReads reports whether no request of the workload changes anything in Redis. What an API does
// with a request is not known.
func (w *Workload) OnlyReads() bool {
	operations := w.Operations()
	return !w.IsRemote() && len(operations) > 0 && !slices.ContainsFunc(operations,
		func(o Operation) bool { return !o.ReadOnly })
}

// NeedsRedis reports whether the workload's requests go to the target.
func (w *Workload) NeedsRedis() bool {
	return w.HTTP == nil && (w.CacheAside == nil || w.CacheAside.Mode != DatabaseOnly)
}

// HasGuarantees reports whether the workload finds out how often was false what applications count
// on that do the same.
func (w *Workload) HasGuarantees() bool {
	return w.Lock != nil
}

// IsRemote reports whether the workload does not use the engine's connections.
func (w *Workload) IsRemote() bool {
	return w.CacheAside != nil || w.HTTP != nil
}

// Ranking is a leaderboard: one sorted set {prefix}ranking of members member:0 to
// member:{Members-1}, the higher score the better. A member's rank is 1 + the number of members
// with a better score, so that equal scores share a rank, unlike ZREVRANK.
//
//   - set: ZADD of a random score
//   - get: ZSCORE of a member, then ZCOUNT of the better scores
//   - find: ZSCOREs of FindCount members at once, then their ZCOUNTs at once
//   - findByOrder: ZREVRANGE WITHSCORES of FindCount members from a random rank on, then ZCOUNT of
//     the scores that are better than the first one's
//
// Members are drawn by the keyspace's distribution. All members exist before the start, with random
// scores.
type Ranking struct {
	Members int64 `json:"members"` // 1 to 1e9
	// scores are integers in [0, ScoreSpread), drawn uniformly; 1 to 2^53
	ScoreSpread int64          `json:"scoreSpread"`
	FindCount   int            `json:"findCount"` // 1 to 1000, not above Members
	Weights     RankingWeights `json:"weights"`   // an operation of weight 0 is not used
}

// RankingWeights are the operations' weights.
type RankingWeights struct {
	Set         int `json:"set,omitempty"`
	Get         int `json:"get,omitempty"`
	Find        int `json:"find,omitempty"`
	FindByOrder int `json:"findByOrder,omitempty"`
}

func (k *Ranking) check(*Keyspace) string {
	if k.Members < 1 || k.ScoreSpread < 1 || k.FindCount < 1 || k.Weights == (RankingWeights{}) {
		return "members, scoreSpread, findCount and weights: must be above 0"
	}
	return ""
}

func (k *Ranking) operations() []Operation {
	_, operations := k.Kinds()
	return operations
}

// The kinds of operation, in the order of the records.
const (
	RankingSet = iota
	RankingGet
	RankingFind
	RankingFindByOrder
)

// Kinds returns the kinds of operation with a weight, and the operations in the same order.
func (k *Ranking) Kinds() ([]int, []Operation) {
	all := []Operation{
		RankingSet: {Name: "set", Weight: k.Weights.Set},
		RankingGet: {
			Name:     "get",
			Weight:   k.Weights.Get,
			ReadOnly: true,
		},
		RankingFind: {
			Name:     "find",
			Weight:   k.Weights.Find,
			ReadOnly: true,
		},
		RankingFindByOrder: {
			Name:     "findByOrder",
			Weight:   k.Weights.FindByOrder,
			ReadOnly: true,
		},
	}
	var kinds []int
	var operations []Operation
	for kind, o := range all {
		if o.Weight > 0 {
			kinds, operations = append(kinds, kind), append(operations, o)
		}
	}
	return kinds, operations
}

func (k *Ranking) tallies() []string {
	return nil
}

// RateLimiter is a fixed-window limiter as applications build it: INCR of the limited user's
// counter, and PEXPIRE of it when that was the first request of its window. The limited users are
// the keys of the keyspace, drawn by its distribution.
//
// The two commands are not atomic, which is the pattern's known weakness: where the second one is
// lost, as in a failover, that user's window never ends. Its counter has no TTL and the user is
// denied permanently. The tally denied shows it.
type RateLimiter struct {
	Limit  int64         `json:"limit"`  // requests per window and user that are allowed; at least 1
	Window time.Duration `json:"window"` // at least 1ms
}

// The tallies of a rate limiter.
const (
	TallyAllowed = iota
	TallyDenied
)

func (l *RateLimiter) check(*Keyspace) string {
	if l.Limit < 1 || l.Window <= 0 {
		return "limit and window: must be above 0"
	}
	return ""
}

func (l *RateLimiter) operations() []Operation {
	return []Operation{{Name: "check", Weight: 1}}
}

func (l *RateLimiter) tallies() []string {
	return []string{"allowed", "denied"}
}
