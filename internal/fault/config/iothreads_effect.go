package config

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
)

// traffic is how many commands a server must have processed for its counters to be significant:
// fewer may be probes and Redquake's own commands.
const traffic = 1000

// recordCounters records the counters of the process that was changed, once: their growth from then
// on is the effect.
func (t ioThreads) recordCounters(
	ctx context.Context, target *v1alpha1.FaultTarget, record *threadsRecord,
) error {
	if record.Counters != nil {
		return nil
	}
	pod, err := t.Pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != target.UID {
		return nil
	} else if err != nil {
		return err
	}
	info, err := t.Info(ctx, target.Address, "everything")
	if err != nil || info["run_id"] != target.RunID {
		return err
	}
	record.Counters = new(countersFrom(info))
	return nil
}

// Effect is confirmed where CONFIG GET shows the number and the counters show that the threads
// work, or that only the main thread does. For a setting, the number is enough: there is no load
// yet.
func (t ioThreads) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[threadsRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	pod, err := t.Pod(ctx, target.Pod)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case pod.Status.PodIP == "":
		return contract.Inconclusive("pod %s has no address yet", target.Pod)
	}
	now, err := t.ask(ctx, t.Address(pod))
	if err != nil {
		return contract.Unseen(err)
	}
	if !t.satisfied(now) {
		return contract.NotObserved("io-threads of %s is still %s%s instead of %d",
			target.Pod, now.count, readsInWords(now.reads), t.count)
	}
	info, err := t.Info(ctx, t.Address(pod), "everything")
	if err != nil {
		return contract.Unseen(err)
	}
	since := countersFrom(info) // of a process that began with the new number
	before := record.Counters
	if before != nil && info["run_id"] == target.RunID {
		since = counters{
			Reads:    since.Reads - before.Reads,
			Writes:   since.Writes - before.Writes,
			Commands: since.Commands - before.Commands,
		}
	}
	evidence := fmt.Sprintf(
		"io-threads of %s is %s%s; since then threads handled %d reads and %d writes, the server %d "+
			"commands", target.Pod, now.count, readsInWords(now.reads), since.Reads, since.Writes,
		since.Commands)
	return t.judge(since.Reads+since.Writes, since.Commands, evidence)
}

func countersFrom(info redis.Info) counters {
	return counters{
		Reads:    info.Int("io_threaded_reads_processed"),
		Writes:   info.Int("io_threaded_writes_processed"),
		Commands: info.Int("total_commands_processed"),
	}
}

// judge derives the effect from the growth of the counters.
func (t ioThreads) judge(threaded, commands int64, evidence string) (v1alpha1.Effect, string) {
	switch {
	case t.setting, t.count > 1 && threaded > 0:
		return v1alpha1.EffectConfirmed, evidence
	case commands < traffic:
		return v1alpha1.EffectInconclusive, evidence + ": too few to judge by"
	case t.count == 1 && threaded == 0:
		return v1alpha1.EffectConfirmed, evidence
	case t.count == 1:
		return v1alpha1.EffectInconclusive, evidence + ": threads still worked"
	}
	return v1alpha1.EffectInconclusive, evidence +
		fmt.Sprintf(
			": Redis 6 and 7 wake the threads only while %d or more clients wait for a reply at once, "+
				"Valkey 9 only while its main thread is busy; the load may be too low", 2*t.count)
}

func readsInWords(reads string) string {
	if reads == "" {
		return ""
	}
	return ", io-threads-do-reads " + reads
}
