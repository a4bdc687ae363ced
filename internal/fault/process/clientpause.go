package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// clientPause makes clients wait: with every command, or with writes. In both modes the server
// resumes by itself when the time is over.
type clientPause struct {
	contract.Deps
	mode  v1alpha1.PauseMode
	lasts time.Duration
}

func newClientPause(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.ClientPause, v1alpha1.ClientPause{})
	return clientPause{
		Deps:  deps,
		mode:  cmp.Or(given.Mode, v1alpha1.PauseAll),
		lasts: spec.Stays(),
	}
}

// afterwards is how much longer than the fault the server's pause lasts. The operator ends the
// pause on time; the server's own timeout is for an operator that cannot, and must not pass so
// early that the pause seems to be ended by somebody else.
const afterwards = 2 * time.Second

// pauseRecord is the record of a pause of writes; a pause of all commands has none.
type pauseRecord struct {
	Probe string `json:"probe"` // the command by which the pause is seen: EVAL or PUBLISH
}

// writeProbes are commands that are paused like writes and change nothing. The message of PUBLISH
// is received by clients that subscribed to every channel.
var writeProbes = map[string][]string{
	"EVAL":    {"EVAL", "return 0", "0"},
	"PUBLISH": {"PUBLISH", "redquake", ""},
}

func (p clientPause) Traits() contract.Traits {
	return contract.Traits{
		Lasts:    p.lasts,
		Silences: p.mode == v1alpha1.PauseAll,
		Separate: true,
		Together: true,
	}
}

func (p clientPause) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	err := p.MayRun(ctx, target.Address, "CLIENT", "PAUSE", "1")
	if err != nil {
		return err
	}
	if p.mode == v1alpha1.PauseAll {
		return nil
	}
	err = p.MayRun(ctx, target.Address, "CLIENT", "UNPAUSE")
	if err != nil {
		return err
	}
	name, err := p.chooseProbe(ctx, target)
	if err != nil {
		return err
	}
	err = contract.Save(target, pauseRecord{Probe: name})
	if err != nil {
		return err
	}
	paused, err := p.writesWait(ctx, target)
	if paused {
		return problem.NotYet(
			"writes at %s are not answered already: somebody else has paused them, or the server is overloaded",
			target.Address)
	}
	return err
}

func (p clientPause) chooseProbe(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (string, error) {
	err := p.MayRun(ctx, target.Address, writeProbes["EVAL"]...)
	if err == nil {
		return "EVAL", nil
	}
	if p.MayRun(ctx, target.Address, writeProbes["PUBLISH"]...) == nil {
		return "PUBLISH", nil
	}
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return "", problem.Unsupported(
			"%s, or +publish and &redquake: a pause of writes is seen by EVAL or PUBLISH", p.Message)
	}
	return "", err
}

func (p clientPause) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	return contract.Progress{}, p.begin(ctx, target)
}

func (p clientPause) begin(ctx context.Context, target *v1alpha1.FaultTarget) error {
	// a second pause would end later than the first
	if begun, err := p.Begun(ctx, target); begun || err != nil {
		return err
	}
	runs, err := p.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return err
	}
	if p.mode == v1alpha1.PauseAll {
		return pauseAll(ctx, p.Deps, target, p.lasts+afterwards)
	}
	_, err = p.Servers.Do(ctx, target.Address, p.Login, "CLIENT", "PAUSE",
		strconv.FormatInt((p.lasts+afterwards).Milliseconds(), 10), "WRITE")
	return p.Refusal(err, target.Address, "CLIENT", "PAUSE")
}

func (p clientPause) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	if p.mode == v1alpha1.PauseAll {
		// What another operator process had queued ended with its connection.
		return p.Servers.Queued(queueKey(p.Deps, target)), ctx.Err()
	}
	runs, err := p.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return false, err
	}
	return p.writesWait(ctx, target)
}

func (p clientPause) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	return contract.Progress{}, p.end(ctx, target)
}

func (p clientPause) end(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if p.mode == v1alpha1.PauseAll {
		return endPauseAll(ctx, p.Deps, target, p.lasts+afterwards)
	}
	runs, err := p.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return err
	}
	if target.InjectedAt == nil { // maybe nothing was paused, and a pause may be somebody else's
		waits, err := p.writesWait(ctx, target)
		if !waits || err != nil {
			return err
		}
	}
	_, err = p.Servers.Do(ctx, target.Address, p.Login, "CLIENT", "UNPAUSE")
	if err != nil {
		return err
	}
	waits, err := p.writesWait(ctx, target)
	if waits {
		return fmt.Errorf("writes at %s wait even after CLIENT UNPAUSE", target.Address)
	}
	return err
}

func (p clientPause) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	if p.mode == v1alpha1.PauseWrite {
		return p.effectOnWrites(ctx, target)
	}
	silent, err := p.Silent(ctx, target.Address, "PING")
	switch {
	case err != nil:
		return contract.Unseen(err)
	case !silent:
		return contract.NotObserved("the server at %s still answers PING",
			target.Address)
	case !p.Servers.Queued(queueKey(p.Deps, target)):
		return contract.Inconclusive(
			"the server at %s does not answer PING within %s, but this fault pauses it no longer",
			target.Address, probeWithin)
	}
	return contract.Confirmed(
		"the server at %s accepted CLIENT PAUSE, and does not answer PING within %s", target.Address,
		probeWithin)
}

func (p clientPause) effectOnWrites(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	waits, err := p.writesWait(ctx, target)
	record, _, _ := contract.Load[pauseRecord](target) // writesWait has read it
	switch {
	case err != nil:
		return contract.Unseen(err)
	case !waits:
		return contract.NotObserved("the server at %s still answers writes",
			target.Address)
	}
	return contract.Confirmed(
		"the server at %s does not answer %s within %s, and answers PING", target.Address, record.Probe,
		probeWithin)
}

// writesWait reports whether a command that counts as a write is not answered although PING is.
func (p clientPause) writesWait(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, recorded, err := contract.Load[pauseRecord](target)
	if err != nil || !recorded { // where nothing was recorded, nothing was paused
		return false, err
	}
	var words []any
	for _, word := range writeProbes[record.Probe] {
		words = append(words, word)
	}
	waits, err := p.Silent(ctx, target.Address, words...)
	if !waits || err != nil {
		return false, err
	}
	mute, err := p.Silent(ctx, target.Address, "PING")
	if mute {
		return false, fmt.Errorf("the server at %s does not answer PING either", target.Address)
	}
	return err == nil, err
}

func (p clientPause) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	if p.mode == v1alpha1.PauseAll {
		return fmt.Sprintf(
			"nothing, if the server serves again: each pause ends after %s, and the queue of them with "+
				"the operator that created it. Else kubectl -n %s delete pod %s",
			pauseOf(p.lasts+afterwards), p.Namespace, target.Pod)
	}
	return p.CLI(target, "CLIENT", "UNPAUSE")
}

// probeWithin is how long a server that serves may take to answer a probe.
const probeWithin = target.ProbeWithin

// pauseAll pauses all commands of a target's clients.
func pauseAll(
	ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget, lasts time.Duration,
) error {
	return deps.Refusal(deps.Servers.Queue(ctx, queueKey(deps, target), target.Address, deps.Login,
		pauses(lasts)), target.Address, "CLIENT", "PAUSE")
}

// pauses are the commands that together pause all commands for so long.
func pauses(lasts time.Duration) [][]string {
	var all [][]string
	for each := pauseOf(lasts); lasts > 0; lasts -= each {
		// without a mode: of all, as before Redis 6.2
		all = append(all, []string{
			"CLIENT", "PAUSE",
			strconv.FormatInt(max(min(each, lasts).Milliseconds(), 1), 10),
		})
	}
	return all
}

// endPauseAll drops the pauses that have not begun. It is an error until the server answers, unless
// its pod is gone.
func endPauseAll(
	ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget, lasts time.Duration,
) error {
	deps.Servers.HangUp(queueKey(deps, target)) // before anything that takes time
	alive, err := deps.PodExists(ctx, target)
	if !alive || err != nil {
		return err
	}
	silent, err := deps.Silent(ctx, target.Address, "PING")
	if silent {
		return fmt.Errorf(
			"the server at %s does not answer yet: the pause that it is in ends by itself after %s at most",
			target.Address, pauseOf(lasts))
	}
	return err
}

// CLIENT UNPAUSE is a command like any other: while all commands wait, it waits, too. So a pause of
// all commands is made of short ones, queued on one connection: the server executes each when the
// one before has ended, ahead of all clients that wait (a command that arrives just then may go
// before it), and drops the rest when the connection is closed.
const (
	shortestPause = 200 * time.Millisecond // each of them, so the most that ending it by HangUp takes
	// a longer pause is made of longer ones: up to 24s of 24h. Each ends on the server's next tick, up
	// to 100 ms late
	mostPauses = 3600
)

// pauseOf is how long each of the pauses is that follow one another.
func pauseOf(lasts time.Duration) time.Duration {
	return max(shortestPause, lasts/mostPauses)
}

// queueKey is the key of the commands that a fault has queued at a target.
func queueKey(deps contract.Deps, target *v1alpha1.FaultTarget) string {
	return string(deps.Owner.UID) + " " + target.Pod
}
