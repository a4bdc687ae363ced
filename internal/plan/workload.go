package plan

import (
	"fmt"
)

// Workload is what to send: exactly one of the workloads, over a keyspace. It is JSON with durations in nanoseconds.
type Workload struct {
	Commands    []Command    `json:"commands,omitempty"` // at least one where this is the workload
	Benchmark   *Benchmark   `json:"benchmark,omitempty"`
	Ranking     *Ranking     `json:"ranking,omitempty"`
	RateLimiter *RateLimiter `json:"rateLimiter,omitempty"`
	CacheAside  *CacheAside  `json:"cacheAside,omitempty"`
	HTTP        *HTTP        `json:"http,omitempty"`

	Keyspace Keyspace `json:"keyspace"`
	Values   Values   `json:"values"`
}

// definition is what each workload's file says of it.
type definition interface {
	check(k *Keyspace) string // what is wrong that the CRD cannot know, beginning with the field below the workload's own; "" = nothing
	operations() []Operation  // of a workload that is right
	tallies() []string        // names of further counters
}

// Problem says what is wrong with the workload, beginning with the field's path below spec.workload; "" = nothing.
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

// Operations are in the order of every record; nil for a workload with a Problem that leaves none.
func (w *Workload) Operations() []Operation {
	set := w.set()
	if len(set) == 0 {
		return nil
	}
	return set[0].operations()
}

// Tallies are the names of the workload's further counters, in the order of every record; nil for most workloads.
func (w *Workload) Tallies() []string {
	set := w.set()
	if len(set) == 0 {
		return nil
	}
	return set[0].tallies()
}

// named is a workload that the spec sets.
type named struct {
	name string // the JSON name
	definition
}

// set are the workloads that the spec sets: one, where it is right.
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

// IsRemote says whether the workload does not speak RESP on the engine's connections.
func (w *Workload) IsRemote() bool { return w.CacheAside != nil || w.HTTP != nil }
