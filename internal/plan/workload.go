package plan

import (
	"fmt"
)

// Workload defines the requests: exactly one of the workloads, over a keyspace. In JSON, durations
// are in nanoseconds.
type Workload struct {
	Commands    []Command    `json:"commands,omitempty"` // at least one for this workload
	Benchmark   *Benchmark   `json:"benchmark,omitempty"`
	Ranking     *Ranking     `json:"ranking,omitempty"`
	RateLimiter *RateLimiter `json:"rateLimiter,omitempty"`
	CacheAside  *CacheAside  `json:"cacheAside,omitempty"`
	HTTP        *HTTP        `json:"http,omitempty"`

	Keyspace Keyspace `json:"keyspace"`
	Values   Values   `json:"values"`
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
	if w.CacheAside != nil {
		found = append(found, named{"cacheAside", w.CacheAside})
	}
	if w.HTTP != nil {
		found = append(found, named{"http", w.HTTP})
	}
	return found
}

// NeedsRedis reports whether the workload's requests go to the target.
func (w *Workload) NeedsRedis() bool {
	return w.HTTP == nil && (w.CacheAside == nil || w.CacheAside.Mode != DatabaseOnly)
}

// IsRemote reports whether the workload does not use the engine's connections.
func (w *Workload) IsRemote() bool {
	return w.CacheAside != nil || w.HTTP != nil
}
