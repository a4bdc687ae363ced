package redisloadtest

import (
	"context"

	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
)

// perform executes the decision.
func (r *Reconciler) perform(
	ctx context.Context, s *scope.Test, d lifecycle.Decision[lifecycle.LoadTestAction],
) state.Outcome {
	r.markLostPods(s)
	//exhaustive:enforce
	switch d.Action {
	case lifecycle.LoadTestWait:
	case lifecycle.LoadTestNote:
		return state.Note(ctx, r.Client, s.Before)
	case lifecycle.LoadTestPrepare:
		return r.prepare(ctx, s)
	case lifecycle.LoadTestStart:
		return r.start(ctx, s)
	case lifecycle.LoadTestResend:
		return r.resend(ctx, s)
	case lifecycle.LoadTestStep:
		return r.step(ctx, s)
	case lifecycle.LoadTestStop:
		return r.stop(ctx, s)
	case lifecycle.LoadTestFinish, lifecycle.LoadTestFail:
		// The end deletes pods. If the status were rejected after that, the next reconcile would count
		// them as lost.
		o, fresh := state.Fresh(ctx, r.APIReader, "RedisLoadTest", s.Before)
		if !fresh {
			return o
		}
		if d.Action == lifecycle.LoadTestFail {
			return r.fail(ctx, s)
		}
		return r.finish(ctx, s)
	case lifecycle.LoadTestSuspend:
		return r.suspend(ctx, s)
	case lifecycle.LoadTestExpire:
		return state.Expire(ctx, r.Client, s.Test, "load test")
	}
	return state.Outcome{}
}

// markLostPods excludes the lost pods from the session, so that the record of the others can be
// completed.
func (r *Reconciler) markLostPods(s *scope.Test) {
	for index := range s.Lost {
		s.Run.Session.Lose(index)
	}
}
