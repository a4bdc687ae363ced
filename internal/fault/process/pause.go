package process

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
)

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
	if alive, err := deps.PodExists(ctx, target); !alive || err != nil {
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
