package fault

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/redis"
)

// hang makes the server answer nothing for a time. Every method ends by itself, on the server's side.
type hang struct {
	Surroundings
	method v1alpha1.HangMethod
	lasts  time.Duration
	now    func() time.Time
}

func newHang(spec *v1alpha1.RedisFaultSpec, around Surroundings) Injector {
	h := hang{Surroundings: around, method: v1alpha1.HangAuto, lasts: durationOf(spec), now: time.Now}
	if spec.Action.Hang != nil && spec.Action.Hang.Method != "" {
		h.method = spec.Action.Hang.Method
	}
	return h
}

// What Undo holds of a hang.
const (
	undoMethod  = "method"  // one of HangMethod's, never Auto
	undoCommand = "command" // whose executions the server counts: debug, eval_ro, eval, client|pause
	undoCalls   = "calls"   // how many there had been
	undoSpent   = "spent"   // how long they had taken together, in microseconds
)

func (h hang) Traits() Traits { return Traits{Lasts: h.lasts, Silences: true, Separate: true} }

// Preflight finds the method, by trying each with no time at all.
func (h hang) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	methods := []v1alpha1.HangMethod{h.method}
	if h.method == v1alpha1.HangAuto {
		methods = []v1alpha1.HangMethod{v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause}
	}
	var refusals []string
	for _, method := range methods {
		command, err := h.try(ctx, target.Address, method)
		var problem *lifecycle.Problem
		switch {
		case errors.As(err, &problem):
			refusals = append(refusals, fmt.Sprintf("%s: %s", method, problem.Message))
			continue
		case err != nil:
			return err
		}
		before, err := h.spent(ctx, target.Address, command)
		if err != nil {
			return refused(err, h.Surroundings, target.Address, "INFO")
		}
		setUndo(target, undoMethod, string(method))
		setUndo(target, undoCommand, command)
		setUndo(target, undoCalls, strconv.FormatInt(before.calls, 10))
		setUndo(target, undoSpent, strconv.FormatInt(before.time.Microseconds(), 10))
		return nil
	}
	return unsupported("spec.action.hang.method: the server cannot be made to hang. %s", strings.Join(refusals, ". "))
}

// try says by which command a method works at a server. A Problem says why it does not.
func (h hang) try(ctx context.Context, address string, method v1alpha1.HangMethod) (command string, err error) {
	switch method {
	case v1alpha1.HangDebugSleep:
		command = "debug"
		_, err = h.Servers.Do(ctx, address, h.Login, h.words(method, command, 0)...)
	case v1alpha1.HangScript:
		command = "eval_ro" // hardly anybody else uses it, so its count tells of us
		_, err = h.Servers.Do(ctx, address, h.Login, h.words(method, command, 0)...)
		if err != nil && redis.IsReply(err) { // before Redis 7, or forbidden
			command = "eval"
			_, err = h.Servers.Do(ctx, address, h.Login, h.words(method, command, 0)...)
		}
	default:
		return "client|pause", mayRun(ctx, h.Surroundings, address, "CLIENT", "PAUSE", "1")
	}
	if err == nil || !redis.IsReply(err) {
		return command, err
	}
	var problem *lifecycle.Problem
	if told := refused(err, h.Surroundings, address, command); errors.As(told, &problem) {
		return "", told
	}
	return "", unsupported("%v", err) // as DEBUG where enable-debug-command is no
}

// busyLoop runs for ARGV[1] microseconds. TIME is the clock, but newer servers show a script the same time until busy-reply-threshold is over:
// these have os.clock, which counts the CPU's time. The inner loop keeps TIME, which counts as a command, rare.
const busyLoop = `local clock = rawget(_G, 'os') and os.clock
local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
local limit, began, cpu = tonumber(ARGV[1]), now(), clock and clock()
repeat for _ = 1, 10000 do end until now() - began >= limit or clock and (clock() - cpu) * 1000000 >= limit`

// words are the command that makes the server hang by DebugSleep or Script.
func (h hang) words(method v1alpha1.HangMethod, command string, lasts time.Duration) []any {
	if method == v1alpha1.HangDebugSleep {
		return []any{"DEBUG", "SLEEP", strconv.FormatFloat(lasts.Seconds(), 'f', 3, 64)}
	}
	return []any{strings.ToUpper(command), busyLoop, "0", strconv.FormatInt(lasts.Microseconds(), 10)}
}

// spent is what a server did with a command since it started.
type spent struct {
	calls int64
	time  time.Duration
}

func (h hang) spent(ctx context.Context, address, command string) (spent, error) {
	reply, err := h.Servers.Do(ctx, address, h.Login, "INFO", "commandstats")
	if err != nil {
		return spent{}, err
	}
	info, _ := reply.(string)
	var s spent
	for part := range strings.SplitSeq(infoValue(info, "cmdstat_"+command), ",") {
		name, value, _ := strings.Cut(part, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "calls":
			s.calls = n
		case "usec":
			s.time = time.Duration(n) * time.Microsecond
		}
	}
	return s, nil
}

// since is what a server did with the fault's command since Preflight. It asks the server.
func (h hang) since(ctx context.Context, target *v1alpha1.FaultTarget) (spent, error) {
	command, _ := undoValue(target, undoCommand)
	now, err := h.spent(ctx, target.Address, command)
	calls, _ := undoValue(target, undoCalls)
	took, _ := undoValue(target, undoSpent)
	callsBefore, _ := strconv.ParseInt(calls, 10, 64)
	tookBefore, _ := strconv.ParseInt(took, 10, 64)
	return spent{now.calls - callsBefore, now.time - time.Duration(tookBefore)*time.Microsecond}, err
}

// hung says whether what the server did is our hang. A script's CPU clock runs faster than time with several threads: half will do.
func (h hang) hung(target *v1alpha1.FaultTarget, did spent) bool {
	if h.by(target) == v1alpha1.HangClientPause {
		return did.calls >= int64(len(pauses(h.lasts)))
	}
	return did.calls > 0 && did.time >= h.lasts/2
}

func (h hang) by(target *v1alpha1.FaultTarget) v1alpha1.HangMethod {
	method, _ := undoValue(target, undoMethod)
	return v1alpha1.HangMethod(method)
}

// Begun takes a server that does not answer for one that hangs already: it answered when the record was made, just before.
func (h hang) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	if h.by(target) == v1alpha1.HangClientPause && h.Servers.Queued(h.line(target)) {
		return true, ctx.Err()
	}
	if alive, err := h.lives(ctx, target); !alive || err != nil {
		return false, err
	}
	if silent, err := h.silent(ctx, target.Address, "PING"); silent || err != nil {
		return silent, err
	}
	did, err := h.since(ctx, target)
	if isBusy(err) {
		return true, nil
	}
	return err == nil && h.hung(target, did), err
}

// refusalWithin is how long an error reply is waited for. A server that hangs gives none.
const refusalWithin = 200 * time.Millisecond

func (h hang) Inject(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if begun, err := h.Begun(ctx, target); begun || err != nil { // twice would be twice as long
		return err
	}
	if runs, err := h.runs(ctx, target); !runs || err != nil {
		return err
	}
	method := h.by(target)
	if method == v1alpha1.HangClientPause {
		return h.pauseAll(ctx, target, h.lasts)
	}
	command, _ := undoValue(target, undoCommand)
	_, err := h.send(ctx, target.Address, refusalWithin, h.words(method, command, h.lasts)...)
	return refused(err, h.Surroundings, target.Address, command)
}

func (h hang) Revert(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if alive, err := h.lives(ctx, target); !alive || err != nil {
		h.Servers.HangUp(h.line(target))
		return err
	}
	if h.by(target) == v1alpha1.HangClientPause {
		return h.endPauseAll(ctx, target, h.lasts)
	}
	silent, err := h.silent(ctx, target.Address, "PING")
	switch {
	case err != nil:
		return err
	case silent && target.InjectedAt != nil && h.now().Before(target.InjectedAt.Add(h.lasts)):
		return &InProgress{Message: fmt.Sprintf("%s of %s at %s cannot be ended early: waiting until the server answers", h.by(target), h.lasts, target.Address)}
	case silent:
		return fmt.Errorf("the server at %s does not answer, though its hang of %s is over", target.Address, h.lasts)
	case h.by(target) == v1alpha1.HangScript:
		return h.killScript(ctx, target)
	}
	return nil
}

// killScript ends a script that is past busy-reply-threshold: the server answers BUSY from then on. One that wrote anything cannot be ended so, ours can.
func (h hang) killScript(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if _, err := h.since(ctx, target); !isBusy(err) {
		return err
	}
	_, err := h.Servers.Do(ctx, target.Address, h.Login, "SCRIPT", "KILL")
	if err != nil && !strings.Contains(err.Error(), "NOTBUSY") {
		return err
	}
	return &InProgress{Message: "SCRIPT KILL was sent to " + target.Address}
}

func isBusy(err error) bool {
	return err != nil && redis.IsReply(err) && strings.Contains(err.Error(), "BUSY ")
}

func (h hang) Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	method := h.by(target)
	silent, err := h.silent(ctx, target.Address, "PING")
	switch {
	case err != nil:
		return v1alpha1.EffectInconclusive, err.Error()
	case silent:
		return v1alpha1.EffectConfirmed, fmt.Sprintf("%s: the server at %s does not answer PING within %s", method, target.Address, probeWithin)
	}
	did, err := h.since(ctx, target)
	if isBusy(err) {
		return v1alpha1.EffectConfirmed, fmt.Sprintf("%s: the server at %s answers BUSY", method, target.Address)
	}
	if err != nil {
		return v1alpha1.EffectInconclusive, err.Error()
	}
	if runs, err := h.runs(ctx, target); !runs || err != nil {
		return v1alpha1.EffectInconclusive, fmt.Sprintf("the server at %s is another process than before: what it counted is lost", target.Address)
	}
	command, _ := undoValue(target, undoCommand)
	switch {
	case !h.hung(target, did):
		return v1alpha1.EffectNotObserved, fmt.Sprintf("the server at %s still answers, and counts %d calls of %s since, of %s", target.Address, did.calls, command, did.time)
	case method == v1alpha1.HangClientPause:
		return v1alpha1.EffectConfirmed, fmt.Sprintf("%s: the server at %s carried out %d pauses, of %s together", method, target.Address, did.calls, h.lasts)
	}
	return v1alpha1.EffectConfirmed, fmt.Sprintf("%s: the main thread of the server at %s spent %s in %s", method, target.Address, did.time, command)
}

func (h hang) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	if h.by(target) == v1alpha1.HangScript {
		return redisCLI(h.Surroundings, target, "SCRIPT", "KILL") // refused until busy-reply-threshold, 5 s
	}
	return fmt.Sprintf("nothing, if the server serves again: the hang ends by itself after %s. Else kubectl -n %s delete pod %s", h.lasts, h.Namespace, target.Pod)
}
