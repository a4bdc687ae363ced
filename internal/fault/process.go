package fault

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redquake/redquake/internal/redis"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
)

// probeWithin is how long a server that serves may take to answer a probe.
const probeWithin = 500 * time.Millisecond

// lives says whether the pod that was recorded is still there. Its server is not asked.
func (s Surroundings) lives(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := s.pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(pod.UID) == target.UID, err
}

// runs says whether the process that was recorded still runs. It asks the server: an error where that does not answer.
func (s Surroundings) runs(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	if alive, err := s.lives(ctx, target); !alive || err != nil {
		return false, err
	}
	server, err := s.Servers.Ask(ctx, target.Address, s.Login)
	return err == nil && server.RunID == target.RunID, err
}

// silent says whether a server takes a command and does not answer within probeWithin. Any reply is an answer, an error reply, too. The error says
// why the server could not be asked.
func (s Surroundings) silent(ctx context.Context, address string, command ...any) (bool, error) {
	silent, err := s.send(ctx, address, probeWithin, command...)
	if redis.IsReply(err) {
		return false, nil
	}
	return silent, err
}

// send is silent within a time of its own, and returns an error reply.
func (s Surroundings) send(ctx context.Context, address string, within time.Duration, command ...any) (silent bool, err error) {
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err = s.Servers.Do(short, address, s.Login, command...)
	if err == nil {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false, err
	}
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return true, nil
	}
	return false, err
}

// line is the key of what this fault has queued at a target.
func (s Surroundings) line(target *v1alpha1.FaultTarget) string {
	return string(s.Owner.UID) + " " + target.Address
}
