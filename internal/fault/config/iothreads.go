package config

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/roll"
)

// ioThreads changes the number of I/O threads: by CONFIG SET where the server takes it, else by the
// pod template of the StatefulSet.
type ioThreads struct {
	contract.Deps
	count  int32
	reads  bool
	method v1alpha1.ApplyMethod
	allow  []v1alpha1.Allowance
	lasts  time.Duration
	// setting means that a load runs with the number, whether that makes the threads work or not.
	setting bool
}

// threadsRecord is the record of a target whose number of threads is changed.
type threadsRecord struct {
	Way      string          `json:"way"`
	Count    string          `json:"count"`              // the number of threads before
	Live     *settingsRecord `json:"live,omitempty"`     // of byLive
	Template *templateEdit   `json:"template,omitempty"` // of byRoll
	// just after the change; nil until then, and of a process that began with the new number
	Counters *counters `json:"counters,omitempty"`
	// somebody else has changed the template meanwhile: the revert leaves that
	Released bool `json:"released,omitempty"`
}

// counters are those of INFO that show the threads' work.
type counters struct {
	Reads    int64 `json:"reads"`    // io_threaded_reads_processed
	Writes   int64 `json:"writes"`   // io_threaded_writes_processed
	Commands int64 `json:"commands"` // total_commands_processed
}

// How a target is changed.
const (
	byNothing = "None" // it has as many threads as are wanted
	byLive    = "Live"
	byRoll    = "Roll"
)

func newIOThreads(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.IOThreads, v1alpha1.IOThreads{})
	return ioThreads{
		Deps:    deps,
		count:   given.Count,
		reads:   given.Reads,
		method:  cmp.Or(given.Method, v1alpha1.ApplyAuto),
		allow:   spec.Allow,
		lasts:   spec.Stays(),
		setting: spec.Setting,
	}
}

// Traits are needed before any server is queried: a fault that may roll pods has the trait.
func (t ioThreads) Traits() contract.Traits {
	if t.method == v1alpha1.ApplyLive {
		return contract.Traits{Lasts: t.lasts, Exact: true}
	}
	return contract.Traits{
		Lasts:     t.lasts,
		Step:      roll.Step,
		RollsPods: true,
		Whole:     true,
		Exact:     true,
	}
}

// threads are a server's settings; "" = it has none of the name.
type threads struct{ count, reads string }

func (t ioThreads) ask(ctx context.Context, address string) (threads, error) {
	var found [2]string
	// one by one: a server before Redis 7 takes no more
	for i, name := range []string{"io-threads", "io-threads-do-reads"} {
		value, err := t.Settings(ctx, address, name)
		if err != nil {
			return threads{}, err
		}
		found[i] = value[name]
	}
	return threads{count: found[0], reads: found[1]}, nil
}

// satisfied reports whether a server has the settings of the spec. Without
// spec.action.ioThreads.reads, io-threads-do-reads is not changed.
func (t ioThreads) satisfied(now threads) bool {
	return now.count == strconv.Itoa(int(t.count)) && (!t.reads || now.reads != "no")
}

// recordedLive are the settings of a target that was recorded.
func (t ioThreads) recordedLive(record settingsRecord) settings {
	_, knowsReads := record.Old["io-threads-do-reads"]
	return t.live(knowsReads)
}

// live are the settings that CONFIG SET changes.
func (t ioThreads) live(knowsReads bool) settings {
	values := map[string]string{"io-threads": strconv.Itoa(int(t.count))}
	if t.reads && knowsReads {
		values["io-threads-do-reads"] = "yes"
	}
	return settings{
		Deps:   t.Deps,
		values: values,
		field: func(name string) string {
			if name == "io-threads" {
				return "spec.action.ioThreads.count"
			}
			return "spec.action.ioThreads.reads"
		},
	}
}
