package process

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// What the course of a background save shows beside the pods.
const (
	// the container's limit does not hold a second copy of the data
	eventMemoryAtRisk = "MemoryAtRisk"
	eventSaveStarted  = "BackgroundSaveStarted" // the server has forked
	eventSaveEnded    = "BackgroundSaveEnded"   // its child has ended
)

// backgroundSave makes the server fork. There is nothing to revert: the child ends by itself.
type backgroundSave struct {
	contract.Deps
	contract.Instant
	kind v1alpha1.SaveKind
	now  func() time.Time
}

func newBackgroundSave(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.BackgroundSave, v1alpha1.BackgroundSave{})
	return backgroundSave{
		Deps: deps,
		kind: cmp.Or(given.Kind, v1alpha1.SaveSnapshot),
		now:  time.Now,
	}
}

// saveRecord is the record of a background save.
type saveRecord struct {
	Forks int64 `json:"forks"` // how often the server had forked: total_forks
	// how many saves of the kind it had begun or ended, as far as it counts them
	Saves int64  `json:"saves"`
	Risk  string `json:"risk,omitempty"` // why its memory may not suffice; empty where it does
}

func (backgroundSave) Traits() contract.Traits {
	return contract.Traits{Together: true}
}

// busyReasons are the fields of INFO that are 1 while the server cannot fork, each with the reason.
var busyReasons = map[string]string{
	"loading":                 "it loads its data set",
	"rdb_bgsave_in_progress":  "a snapshot is under way",
	"aof_rewrite_in_progress": "a rewrite of the append-only file is under way",
	"aof_rewrite_scheduled":   "a rewrite of the append-only file is scheduled",
	"module_fork_in_progress": "a module's child is under way",
}

func (b backgroundSave) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	err := b.MayRun(ctx, target.Address, b.command())
	if err != nil {
		return err
	}
	s, err := b.ask(ctx, target.Address)
	if err != nil {
		return err
	}
	if s.busy != "" {
		return problem.NotYet("the server at %s cannot fork now: %s", target.Address, s.busy)
	}
	pod, err := b.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	return contract.Save(target, saveRecord{
		Forks: s.forks,
		Saves: s.done,
		Risk:  riskOf(b.Container(pod), s.used),
	})
}

// riskOf returns why a container's memory may not suffice: each page that is written while the
// child runs is copied, in the worst case all of them.
func riskOf(container corev1.Container, used int64) string {
	limit, ok := container.Resources.Limits[corev1.ResourceMemory]
	if !ok || limit.Value() >= 2*used {
		return ""
	}
	return fmt.Sprintf(
		"the container may use %s and its data take %s: if clients write to most of it while the child runs, the kernel kills the server",
		limit.String(), inMiB(used))
}

func (b backgroundSave) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	return contract.Progress{}, b.fork(ctx, target)
}

func (b backgroundSave) fork(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if begun, err := b.Begun(ctx, target); begun || err != nil {
		return err
	}
	runs, err := b.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return err
	}
	s, err := b.ask(ctx, target.Address)
	if err != nil {
		return err
	}
	// the server would schedule a rewrite for when the other child ends, an unknown instant: retry
	// instead
	if s.busy != "" {
		return fmt.Errorf("the server at %s cannot fork now: %s", target.Address, s.busy)
	}
	_, err = b.Servers.Do(ctx, target.Address, b.Login, b.command())
	return b.Refusal(err, target.Address, b.command())
}

func (b backgroundSave) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, _, err := contract.Load[saveRecord](target)
	if err != nil {
		return false, err
	}
	runs, err := b.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return false, err
	}
	s, err := b.ask(ctx, target.Address)
	return err == nil && record.forkedIn(s), err
}

func (b backgroundSave) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[saveRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	if runs, err := b.ProcessRuns(ctx, target); err != nil {
		return contract.Unseen(err)
	} else if !runs {
		return contract.Inconclusive("the server at %s is another process than before",
			target.Address)
	}
	s, err := b.ask(ctx, target.Address)
	if err != nil {
		return contract.Unseen(err)
	}
	if !record.forkedIn(s) {
		return contract.NotObserved("the server at %s still has %d forks",
			target.Address, s.forks)
	}
	return contract.Confirmed(
		"the server at %s forked for %s, and served nothing for %s meanwhile (latest_fork_usec)",
		target.Address, b.command(), s.forkTook)
}

// Follow reports the fork and the end of the child. The time of the end is when it was observed:
// Redis counts in whole seconds only.
func (b backgroundSave) Follow(
	ctx context.Context, target *v1alpha1.FaultTarget,
) []contract.Sighting {
	if target.InjectedAt == nil {
		return nil
	}
	at := target.InjectedAt.Time
	var seen []contract.Sighting
	record, _, err := contract.Load[saveRecord](target)
	if err != nil {
		return nil
	}
	if record.Risk != "" {
		seen = append(seen, contract.Sighting{
			At:      at,
			Event:   eventMemoryAtRisk,
			Object:  target.Pod,
			Message: record.Risk,
		})
	}
	runs, err := b.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return seen
	}
	s, err := b.ask(ctx, target.Address)
	if err != nil || !record.forkedIn(s) {
		return seen
	}
	seen = append(seen, contract.Sighting{
		At:      at,
		Event:   eventSaveStarted,
		Object:  target.Pod,
		Message: fmt.Sprintf("%s; the fork took %s", b.command(), s.forkTook),
	})
	if s.running {
		return seen
	}
	words := []string{"it took " + s.took + " s", "copied " + inMiB(s.copied) + " on write"}
	if !s.ok {
		words = append(words, "and failed: see the server's log")
	}
	return append(seen, contract.Sighting{
		At:      b.now(),
		Event:   eventSaveEnded,
		Object:  target.Pod,
		Message: strings.Join(words, ", "),
	})
}

func (b backgroundSave) command() string {
	if b.kind == v1alpha1.SaveAppendOnlyRewrite {
		return "BGREWRITEAOF"
	}
	return "BGSAVE"
}

// saves are a server's counters of forks and saves.
type saves struct {
	forks    int64         // total_forks, since Redis 6.2
	forkTook time.Duration // latest_fork_usec
	// saves of the kind: rdb_saves or aof_rewrites, since Redis 7; before, all forks
	done    int64
	running bool   // one of the kind is under way
	busy    string // what keeps the server from forking now; "" = nothing
	took    string // by the last one of the kind, in whole seconds
	copied  int64  // bytes copied on write by it
	ok      bool   // it succeeded
	used    int64  // used_memory
}

func (b backgroundSave) ask(ctx context.Context, address string) (saves, error) {
	info, err := b.Info(ctx, address, "everything")
	if err != nil {
		return saves{}, b.Refusal(err, address, "INFO")
	}
	s := saves{
		forks:    info.Int("total_forks"),
		forkTook: time.Duration(info.Int("latest_fork_usec")) * time.Microsecond,
		used:     info.Int("used_memory"),
	}
	for field, reason := range busyReasons {
		if info.On(field) {
			s.busy = reason
		}
	}
	counter := "rdb_saves"
	if b.kind == v1alpha1.SaveAppendOnlyRewrite {
		counter, s.running = "aof_rewrites", info.On("aof_rewrite_in_progress")
		s.took = info["aof_last_rewrite_time_sec"]
		s.copied = info.Int("aof_last_cow_size")
		s.ok = info["aof_last_bgrewrite_status"] == "ok"
	} else {
		s.running = info.On("rdb_bgsave_in_progress")
		s.took = info["rdb_last_bgsave_time_sec"]
		s.copied = info.Int("rdb_last_cow_size")
		s.ok = info["rdb_last_bgsave_status"] == "ok"
	}
	if s.done = info.Int(counter); info[counter] == "" {
		s.done = s.forks
	}
	return s, nil
}

func inMiB(bytes int64) string {
	return resource.NewQuantity((bytes>>20)<<20, resource.BinarySI).String()
}

// forkedIn reports whether a server has forked for such a save since the record was made.
func (r saveRecord) forkedIn(s saves) bool {
	return s.forks > r.Forks && (s.running || s.done != r.Saves)
}
