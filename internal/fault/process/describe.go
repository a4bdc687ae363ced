package process

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func (c processCrash) Describe(target *v1alpha1.FaultTarget) contract.Description {
	command := "SHUTDOWN NOSAVE"
	if c.method == v1alpha1.CrashSegfault {
		command = "DEBUG SEGFAULT"
	}
	return contract.Description{
		Action: fmt.Sprintf("%s at %s, whose server has run_id %s", command, target.Pod,
			target.RunID),
		SelfEnding: fmt.Sprintf("the kubelet restarts container %s", target.Container),
	}
}

func (h hang) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record hangRecord) contract.Description {
		d := contract.Description{
			Action:     fmt.Sprintf("DEBUG SLEEP %.3f at %s", h.lasts.Seconds(), target.Pod),
			Revert:     "wait until the server answers",
			SelfEnding: fmt.Sprintf("the server continues after %s", h.lasts),
		}
		switch record.Method {
		case v1alpha1.HangScript:
			d.Action = fmt.Sprintf("a Lua loop of %s by %s at %s", h.lasts, record.Command, target.Pod)
			d.Revert = "SCRIPT KILL, if the loop runs for longer than busy-reply-threshold"
		case v1alpha1.HangClientPause:
			return queuedPauses(target, h.lasts)
		}
		return d
	})
}

func (p clientPause) Describe(target *v1alpha1.FaultTarget) contract.Description {
	limit := p.lasts + afterwards
	if p.mode == v1alpha1.PauseAll {
		return queuedPauses(target, limit)
	}
	return contract.DescribeRecord(target, func(pauseRecord) contract.Description {
		return contract.Description{
			Action:     fmt.Sprintf("CLIENT PAUSE %d WRITE at %s", limit.Milliseconds(), target.Pod),
			Revert:     "CLIENT UNPAUSE",
			SelfEnding: fmt.Sprintf("the pause ends after %s", limit),
		}
	})
}

// queuedPauses describes a pause of all commands.
func queuedPauses(target *v1alpha1.FaultTarget, lasts time.Duration) contract.Description {
	return contract.Description{
		Action: fmt.Sprintf("CLIENT PAUSE %d, %d times in a queue of one connection, at %s",
			pauseOf(lasts).Milliseconds(), len(pauses(lasts)), target.Pod),
		Revert: "close the connection, which drops the pauses that have not begun",
		SelfEnding: fmt.Sprintf(
			"without the operator's connection the server drops the queue, and is paused for %s more at most",
			pauseOf(lasts)),
	}
}

func (k clientKill) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(killRecord) contract.Description {
		return contract.Description{
			Action:     fmt.Sprintf("CLIENT KILL TYPE %s SKIPME yes at %s", k.clients, target.Pod),
			SelfEnding: "the clients connect again",
		}
	})
}

func (b backgroundSave) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record saveRecord) contract.Description {
		d := contract.Description{
			Action:     b.command() + " at " + target.Pod,
			SelfEnding: "the child process ends when it has written its file",
		}
		if record.Risk != "" {
			d.Action += "; " + record.Risk
		}
		return d
	})
}
