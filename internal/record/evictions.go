package record

import "fmt"

// Evictions are the keys that one server process evicted during the run and that may have been
// ledger keys.
type Evictions struct {
	Keys uint64 `json:"keys,omitempty"`
	// it was read after the load. Otherwise it may have evicted more than Keys
	Final bool `json:"final,omitempty"`
}

// maxEvicting bounds the processes in Ledger.Evictions. If there are more, one entry without a
// run_id, which is not final, replaces them.
const maxEvicting = 64

// MergeEvictions merges what two pods read from the same servers, in any order.
func MergeEvictions(a, b map[string]Evictions) map[string]Evictions {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := make(map[string]Evictions, len(a)+len(b))
	for _, side := range []map[string]Evictions{a, b} {
		for id, e := range side {
			all[id] = Evictions{Keys: max(all[id].Keys, e.Keys), Final: all[id].Final || e.Final}
		}
	}
	if _, many := all[""]; many || len(all) > maxEvicting {
		return map[string]Evictions{"": {}}
	}
	return all
}

// LostAtLeast is the lower bound of the lost writes; Lost is the upper one. They differ if absent
// writes may have been evicted: each evicted key may be a write, or a bitmap with many.
func (r *Ledger) LostAtLeast() uint64 {
	evicted := uint64(0)
	for _, e := range r.Evictions {
		if !e.Final {
			return 0
		}
		evicted += e.Keys
	}
	switch {
	case evicted == 0:
		return r.Lost
	case !r.Unique:
		return 0
	}
	return r.Lost - min(r.Lost, evicted)
}

// EvictionNote explains why the number of lost writes is not known exactly; "" if it is.
func (r *Ledger) EvictionNote() string {
	atLeast := r.LostAtLeast()
	if atLeast == r.Lost {
		return ""
	}
	return fmt.Sprintf(
		"Between %d and %d writes were lost: %d acknowledged writes are absent, and Redis may have "+
			"evicted some of them, which is not a loss.", atLeast, r.Lost, r.Lost)
}
