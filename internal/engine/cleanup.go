package engine

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// cleanedPerSecond is how many keys all pods remove in a second: some hundredths of what a server
// can do.
const cleanedPerSecond = 50_000

// CleanUp removes this pod's part of the keys that the run can have created, if the plan says so,
// and returns how many there were. Other pods must have ended their load as well: it would create
// them again. progress is called with human-readable messages; it may be nil. It must be called
// once, after Run and Verify; it stops following the topology.
func (r *Runner) CleanUp(ctx context.Context, progress func(string)) (removed int64, err error) {
	defer r.stopFollowing()
	if !r.cleansUp() {
		return 0, nil
	}
	if progress == nil {
		progress = func(string) {}
	}
	keys, _ := r.run.Plan.Workload.Creates()
	if r.run.Pod < r.run.Plan.ProbePods() && r.run.Plan.Probe.Words[0] == "SET" {
		for _, p := range r.probes {
			keys = append(keys, plan.Keys{Before: p.Key()})
		}
	}
	var sum atomic.Int64
	for _, of := range keys {
		err := r.patiently(ctx, progress, func(ctx context.Context) error {
			return r.writeData(ctx, func(f *workload.Filler) error {
				f.Progress = func(_ string, done, total int64) {
					progress(fmt.Sprintf("removing keys: %s of %s, %s were there", grouped(done), grouped(total),
						grouped(sum.Load())))
				}
				return r.unlink(ctx, f, of, &sum)
			})
		})
		if err != nil {
			return sum.Load(), err
		}
	}
	return sum.Load(), nil
}

// cleansUp reports whether CleanUp has something to do.
func (r *Runner) cleansUp() bool {
	return r.run.Plan.Workload.Keyspace.Cleanup && r.run.Plan.Target.IsSet()
}

// unlink removes this pod's part of the keys; of a probe's key, which is its own, all.
func (r *Runner) unlink(
	ctx context.Context, f *workload.Filler, keys plan.Keys, removed *atomic.Int64,
) error {
	perSecond := cleanedPerSecond / float64(f.Pods)
	if keys.Count == 0 {
		f.Pod, f.Pods = 0, 1
	}
	return f.Write(ctx, workload.Data{
		Step:      "cleanup",
		What:      "keys",
		Items:     keys.Total(),
		Command:   "UNLINK",
		PerSecond: perSecond,
		Integers:  removed,
		Encoder: func(int64) func([]byte, int64, int64) ([]byte, int64, uint16) {
			var key []byte
			return func(dst []byte, item, _ int64) ([]byte, int64, uint16) {
				key = append(key[:0], keys.Before...)
				if keys.Count > 0 {
					key = append(strconv.AppendInt(key, item, 10), keys.After...)
				}
				return resp.AppendCommand(dst, "UNLINK", string(key)), 1, topology.SlotOf(key)
			}
		},
	})
}
