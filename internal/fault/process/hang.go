package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
)

// hang keeps the server from answering for a time. Every method ends by itself, on the server's
// side.
type hang struct {
	contract.Deps
	method v1alpha1.HangMethod
	lasts  time.Duration
	now    func() time.Time
}

func newHang(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.Hang, v1alpha1.Hang{})
	return hang{
		Deps:   deps,
		method: cmp.Or(given.Method, v1alpha1.HangAuto),
		lasts:  spec.Stays(),
		now:    time.Now,
	}
}

// hangRecord is the record of a server that is to hang: by which command, and the server's counters
// of it.
type hangRecord struct {
	Method v1alpha1.HangMethod `json:"method"` // never Auto
	// whose executions the server counts: debug, eval_ro, eval, client|pause
	Command string `json:"command"`
	Before  spent  `json:"before"`
}

func (h hang) Traits() contract.Traits {
	return contract.Traits{
		Lasts:    h.lasts,
		Silences: true,
		Separate: true,
		Together: true,
	}
}

// Preflight finds the method, by trying each with no time at all.
func (h hang) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	methods := []v1alpha1.HangMethod{h.method}
	if h.method == v1alpha1.HangAuto {
		methods = []v1alpha1.HangMethod{
			v1alpha1.HangDebugSleep, v1alpha1.HangScript,
			v1alpha1.HangClientPause,
		}
	}
	var refusals []string
	for _, method := range methods {
		command, err := h.try(ctx, target.Address, method)
		if p, ok := errors.AsType[*problem.Problem](err); ok {
			refusals = append(refusals, fmt.Sprintf("%s: %s", method, p.Message))
			continue
		} else if err != nil {
			return err
		}
		before, err := h.spent(ctx, target.Address, command)
		if err != nil {
			return h.Refusal(err, target.Address, "INFO")
		}
		return contract.Save(target, hangRecord{
			Method:  method,
			Command: command,
			Before:  before,
		})
	}
	return problem.Unsupported("spec.action.hang.method: the server cannot be made to hang. %s",
		strings.Join(refusals, ". "))
}

// try returns the command by which a method works at a server, or a Problem with the reason why it
// does not.
func (h hang) try(
	ctx context.Context, address string, method v1alpha1.HangMethod,
) (command string, err error) {
	switch method {
	case v1alpha1.HangDebugSleep:
		command = "debug"
		_, err = h.Servers.Do(ctx, address, h.Login, h.words(method, command, 0)...)
	case v1alpha1.HangScript:
		command = "eval_ro" // rarely used by clients, so its counter shows the fault
		_, err = h.Servers.Do(ctx, address, h.Login, h.words(method, command, 0)...)
		if err != nil && redis.IsReply(err) { // before Redis 7, or forbidden
			command = "eval"
			_, err = h.Servers.Do(ctx, address, h.Login, h.words(method, command, 0)...)
		}
	default:
		return "client|pause", h.MayRun(ctx, address, "CLIENT", "PAUSE", "1")
	}
	if err == nil || !redis.IsReply(err) {
		return command, err
	}
	refusal := h.Refusal(err, address, command)
	if _, ok := errors.AsType[*problem.Problem](refusal); ok {
		return "", refusal
	}
	return "", problem.Unsupported("%v", err) // as DEBUG where enable-debug-command is no
}

// spent are a server's counters of a command since its start.
type spent struct {
	Calls int64         `json:"calls"`
	Time  time.Duration `json:"nanoseconds"`
	// together: only with other commands, so that they say nothing of this one
	together bool
}

// refusalWithin is how long to wait for an error reply. A server that hangs sends none.
const refusalWithin = 200 * time.Millisecond

func (h hang) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	return contract.Progress{}, h.begin(ctx, target)
}

func (h hang) begin(ctx context.Context, target *v1alpha1.FaultTarget) error {
	record, recorded, err := contract.Load[hangRecord](target)
	if err != nil {
		return err
	}
	if begun, err := h.Begun(ctx, target); begun || err != nil { // a second hang would double the time
		return err
	}
	runs, err := h.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return err
	}
	switch {
	case !recorded:
		return fmt.Errorf("pod %s has no record of how its server is to hang", target.Pod)
	case record.Method == v1alpha1.HangClientPause:
		return pauseAll(ctx, h.Deps, target, h.lasts)
	}
	_, err = h.Send(ctx, target.Address, refusalWithin,
		h.words(record.Method, record.Command, h.lasts)...)
	return h.Refusal(err, target.Address, record.Command)
}

// busyLoop runs for ARGV[1] microseconds by TIME. Newer servers return the same TIME to a script
// until busy-reply-threshold has passed; these have os.clock, which counts CPU time. The inner loop
// limits the calls of TIME, each of which counts as a command.
const busyLoop = `local clock = rawget(_G, 'os') and os.clock
local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
local limit, began, cpu = tonumber(ARGV[1]), now(), clock and clock()
repeat for _ = 1, 10000 do end until now() - began >= limit or clock and (clock() - cpu) * 1000000 >= limit`

// words is the command of the methods DebugSleep and Script.
func (h hang) words(method v1alpha1.HangMethod, command string, lasts time.Duration) []any {
	if method == v1alpha1.HangDebugSleep {
		return []any{"DEBUG", "SLEEP", strconv.FormatFloat(lasts.Seconds(), 'f', 3, 64)}
	}
	return []any{strings.ToUpper(command), busyLoop, "0", strconv.FormatInt(lasts.Microseconds(), 10)}
}

// Begun treats a server that does not answer as hanging: it answered a moment ago, when the record
// was made.
func (h hang) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, _, err := contract.Load[hangRecord](target)
	if err != nil {
		return false, err
	}
	if record.Method == v1alpha1.HangClientPause && h.Servers.Queued(queueKey(h.Deps, target)) {
		return true, ctx.Err()
	}
	alive, err := h.PodExists(ctx, target)
	if !alive || err != nil {
		return false, err
	}
	silent, err := h.Silent(ctx, target.Address, "PING")
	if silent || err != nil {
		return silent, err
	}
	did, err := h.since(ctx, target, record)
	if isBusy(err) {
		return true, nil
	}
	return err == nil && h.hung(record, did), err
}

func (h hang) Revert(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	record, _, err := contract.Load[hangRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	if record.Method == v1alpha1.HangClientPause {
		return contract.Progress{}, endPauseAll(ctx, h.Deps, target, h.lasts)
	}
	alive, err := h.PodExists(ctx, target)
	if !alive || err != nil {
		return contract.Progress{}, err
	}
	silent, err := h.Silent(ctx, target.Address, "PING")
	switch {
	case err != nil:
		return contract.Progress{}, err
	case silent && target.InjectedAt != nil && h.now().Before(target.InjectedAt.Add(h.lasts)):
		return contract.Underway("%s of %s at %s cannot be ended early: waiting until the server answers",
			record.Method, h.lasts, target.Address), nil
	case silent:
		return contract.Progress{}, fmt.Errorf(
			"the server at %s does not answer, though its hang of %s is over", target.Address, h.lasts)
	case record.Method == v1alpha1.HangScript:
		return h.killScript(ctx, target, record)
	}
	return contract.Progress{}, nil
}

// overrun is how much longer than asked busyLoop may run: where it counts CPU time and gets none,
// until TIME goes on, after busy-reply-threshold, 5 s by default.
const overrun = 6 * time.Second

// killScript ends a script that is past busy-reply-threshold, from which on the server answers
// BUSY. That works only for scripts that wrote nothing, as busyLoop. A server that is busy does not
// say with whose script: once the fault's own is over by its time, it is an application's.
func (h hang) killScript(
	ctx context.Context, target *v1alpha1.FaultTarget, record hangRecord,
) (contract.Progress, error) {
	if _, err := h.since(ctx, target, record); !isBusy(err) {
		return contract.Progress{}, err
	}
	if target.InjectedAt != nil {
		switch after := h.now().Sub(target.InjectedAt.Time); {
		case after >= h.lasts+overrun:
			return contract.Progress{}, nil
		case after >= h.lasts:
			return contract.Underway(
				"the server at %s is busy with a script: the fault's own ends by itself, and no other is killed",
				target.Address), nil
		}
	}
	_, err := h.Servers.Do(ctx, target.Address, h.Login, "SCRIPT", "KILL")
	if err != nil && !strings.Contains(err.Error(), "NOTBUSY") {
		return contract.Progress{}, err
	}
	return contract.Underway("SCRIPT KILL was sent to %s", target.Address), nil
}

func (h hang) Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[hangRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	silent, err := h.Silent(ctx, target.Address, "PING")
	switch {
	case err != nil:
		return contract.Unseen(err)
	case silent:
		return contract.Confirmed(
			"%s: the server at %s does not answer PING within %s", record.Method, target.Address,
			probeWithin)
	}
	did, err := h.since(ctx, target, record)
	if isBusy(err) {
		return contract.Confirmed("%s: the server at %s answers BUSY", record.Method,
			target.Address)
	}
	if err != nil {
		return contract.Unseen(err)
	}
	runs, err := h.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return contract.Inconclusive(
			"the server at %s is another process than before: its counters were reset", target.Address)
	}
	switch {
	case did.together:
		return contract.Inconclusive(
			"the server at %s answers again, and counts its pauses only with other commands, as before Redis 7",
			target.Address)
	case !h.hung(record, did):
		return contract.NotObserved(
			"the server at %s still answers, and counts %d calls of %s since, of %s", target.Address,
			did.Calls, record.Command, did.Time)
	case record.Method == v1alpha1.HangClientPause:
		return contract.Confirmed(
			"%s: the server at %s carried out %d pauses, of %s together", record.Method, target.Address,
			did.Calls, h.lasts)
	}
	return contract.Confirmed(
		"%s: the main thread of the server at %s spent %s in %s", record.Method, target.Address, did.Time,
		record.Command)
}

// since reads by how much the counters of the fault's command have grown since Preflight.
func (h hang) since(
	ctx context.Context, target *v1alpha1.FaultTarget, record hangRecord,
) (spent, error) {
	now, err := h.spent(ctx, target.Address, record.Command)
	return spent{now.Calls - record.Before.Calls, now.Time - record.Before.Time, now.together}, err
}

func (h hang) spent(ctx context.Context, address, command string) (spent, error) {
	info, err := h.Info(ctx, address, "commandstats")
	stat, _ := info.Command(command)
	return spent{Calls: stat.Calls, Time: stat.Time, together: info.Together(command)}, err
}

// hung reports whether the counters show the fault. A script's CPU clock runs faster than the wall
// clock with several threads: half the time is enough.
func (h hang) hung(record hangRecord, did spent) bool {
	if record.Method == v1alpha1.HangClientPause {
		return did.Calls >= int64(len(pauses(h.lasts)))
	}
	return did.Calls > 0 && did.Time >= h.lasts/2
}

func isBusy(err error) bool {
	return err != nil && redis.IsReply(err) && strings.Contains(err.Error(), "BUSY ")
}

func (h hang) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	record, _, err := contract.Load[hangRecord](target)
	if err == nil && record.Method == v1alpha1.HangScript {
		return h.CLI(target, "SCRIPT", "KILL") // refused until busy-reply-threshold, 5 s
	}
	return fmt.Sprintf(
		"nothing, if the server serves again: the hang ends by itself after %s. Else kubectl -n %s "+
			"delete pod %s", h.lasts, h.Namespace, target.Pod)
}
