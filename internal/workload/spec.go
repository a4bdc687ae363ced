package workload

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Spec says what to send: exactly one workload, as a part of the plan. It is JSON with durations in nanoseconds.
type Spec struct {
	Commands    []Command    `json:"commands,omitempty"` // at least one where this is the workload
	Benchmark   *Benchmark   `json:"benchmark,omitempty"`
	Ranking     *Ranking     `json:"ranking,omitempty"`
	RateLimiter *RateLimiter `json:"rateLimiter,omitempty"`
	CacheAside  *CacheAside  `json:"cacheAside,omitempty"`
	HTTP        *HTTP        `json:"http,omitempty"`

	Keyspace Keyspace `json:"keyspace"`
	Values   Values   `json:"values"`
}

// Distribution is how keys are drawn.
type Distribution string

// The distributions.
const (
	Uniform    Distribution = "Uniform"
	Zipf       Distribution = "Zipf"       // exponent 1.1 over the key numbers: 0 is the hottest
	Gaussian   Distribution = "Gaussian"   // mean keys/2, standard deviation keys/6, cut at the ends
	Sequential Distribution = "Sequential" // 0, 1, 2, ... per source, each source beginning at its share
)

// Keyspace is the set of keys {prefix}0 .. {prefix}{Keys-1}.
type Keyspace struct {
	Prefix       string        `json:"prefix"`
	Keys         int64         `json:"keys"`
	Distribution Distribution  `json:"distribution"`
	Prefill      bool          `json:"prefill,omitempty"` // SET every key before the start, at pipeline speed, split over the pods
	TTL          time.Duration `json:"ttl,omitempty"`     // of prefilled keys, and of {key} in plain SET commands (PX is appended); 0 = none
}

// Values is the size of {value}: fixed where MinBytes == MaxBytes, else drawn uniformly.
type Values struct {
	MinBytes int `json:"minBytes"`
	MaxBytes int `json:"maxBytes"`
}

// maxValue bounds a value, in bytes.
const maxValue = 64 << 20

// definition is what each workload's file says of its spec, without making it.
type definition interface {
	check(s *Spec) string // what is wrong, beginning with the field below the workload's own; "" = nothing
	mix() mix             // of a spec that is right
}

// named is a workload that the spec sets.
type named struct {
	name string // the JSON name
	definition
}

// set are the workloads that the spec sets: one, where it is right.
func (s *Spec) set() []named {
	var found []named
	if len(s.Commands) > 0 {
		found = append(found, named{"commands", commandList(s.Commands)})
	}
	if s.Benchmark != nil {
		found = append(found, named{"benchmark", s.Benchmark})
	}
	if s.Ranking != nil {
		found = append(found, named{"ranking", s.Ranking})
	}
	if s.RateLimiter != nil {
		found = append(found, named{"rateLimiter", s.RateLimiter})
	}
	if s.CacheAside != nil {
		found = append(found, named{"cacheAside", s.CacheAside})
	}
	if s.HTTP != nil {
		found = append(found, named{"http", s.HTTP})
	}
	return found
}

// Problem says what is wrong with the spec, beginning with the field's JSON path below the spec; "" = nothing.
func (s *Spec) Problem() string {
	set := s.set()
	switch len(set) {
	case 0:
		return "commands: is empty, and no other workload is set"
	case 1:
	default:
		return fmt.Sprintf("%s: %s is set, too; set one workload", set[1].name, set[0].name)
	}
	if problem := s.checkKeyspace(); problem != "" {
		return problem
	}
	if problem := set[0].check(s); problem != "" {
		if problem[0] == '[' {
			return set[0].name + problem
		}
		return set[0].name + "." + problem
	}
	return ""
}

func (s *Spec) checkKeyspace() string {
	k, v := s.Keyspace, s.Values
	known := []Distribution{Uniform, Zipf, Gaussian, Sequential}
	switch {
	case k.Keys < 1:
		return fmt.Sprintf("keyspace.keys: is %d, must be at least 1", k.Keys)
	case !slices.Contains(known, k.Distribution):
		return fmt.Sprintf("keyspace.distribution: %q is none of %v", k.Distribution, known)
	case k.TTL < 0 || k.TTL > 0 && k.TTL < time.Millisecond:
		return "keyspace.ttl: must be 0 or at least 1ms"
	case v.MinBytes < 0 || v.MaxBytes < v.MinBytes || v.MaxBytes > maxValue:
		return fmt.Sprintf("values: minBytes %d and maxBytes %d must satisfy 0 <= minBytes <= maxBytes <= %d", v.MinBytes, v.MaxBytes, maxValue)
	}
	return ""
}

// Operations are the names of the spec's operations, in the order of every record; nil for a spec with a Problem that leaves none.
func (s *Spec) Operations() []string {
	set := s.set()
	if len(set) == 0 {
		return nil
	}
	m := set[0].mix()
	names := make([]string, len(m.operations))
	for i, o := range m.operations {
		names[i] = o.Name
	}
	return names
}

// Tallies are the names of the spec's further counters, in the order of every record.
func (s *Spec) Tallies() []string {
	set := s.set()
	if len(set) == 0 {
		return nil
	}
	m := set[0].mix()
	return m.tallies
}

// IsRemote says whether the workload is made by NewRemote, not by New.
func (s *Spec) IsRemote() bool { return s.CacheAside != nil || s.HTTP != nil }

// New makes the spec's workload over Redis connections. The spec must have no Problem.
func New(s *Spec) (Redis, error) {
	if problem := s.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	switch {
	case len(s.Commands) > 0:
		return newCommands(s)
	case s.Benchmark != nil:
		return newBenchmark(s)
	case s.Ranking != nil:
		return newRanking(s), nil
	case s.RateLimiter != nil:
		return newRateLimiter(s)
	}
	return nil, errors.New("the workload does not go over connections to Redis: NewRemote makes it")
}

// NewRemote makes the spec's workload where it does not go over the engine's connections. The spec must have no Problem.
func NewRemote(s *Spec, o RemoteOptions) (Remote, error) {
	if problem := s.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	switch {
	case s.CacheAside != nil:
		return newCacheAside(s, o)
	case s.HTTP != nil:
		return newHTTP(s, o), nil
	}
	return nil, errors.New("the workload goes over connections to Redis: New makes it")
}

// Described is the spec's workload as far as it can be told without making it: no caller, no requests. The spec must have no Problem.
func Described(s *Spec) (Workload, error) {
	if problem := s.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	m := s.set()[0].mix()
	return &m, nil
}
