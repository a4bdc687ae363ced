package target

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redquake/redquake/internal/redis"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
)

// ProbeWithin is how long a server that serves may take to answer a probe.
const ProbeWithin = 500 * time.Millisecond

// ProcessRuns reports whether the recorded process still runs. It is an error if the server does not answer.
func (r Redis) ProcessRuns(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	if alive, err := r.PodExists(ctx, target); !alive || err != nil {
		return false, err
	}
	server, err := r.Servers.Ask(ctx, target.Address, r.Login)
	return err == nil && server.RunID == target.RunID, err
}

// PodExists reports whether the recorded pod still exists, without querying its server.
func (r Redis) PodExists(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := r.Pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(pod.UID) == target.UID, err
}

// Silent reports whether a server accepts a command and does not answer within ProbeWithin. Error replies are answers. The error is
// why the command could not be sent.
func (r Redis) Silent(ctx context.Context, address string, command ...any) (bool, error) {
	silent, err := r.Send(ctx, address, ProbeWithin, command...)
	if redis.IsReply(err) {
		return false, nil
	}
	return silent, err
}

// Send is Silent with another time limit. It returns an error reply as an error.
func (r Redis) Send(ctx context.Context, address string, within time.Duration, command ...any) (silent bool, err error) {
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err = r.Servers.Do(short, address, r.Login, command...)
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

// Same reports whether an address that the sentinels gave is that of a server: by the address, else by its run_id.
func (r Redis) Same(ctx context.Context, given, address, runID string) (bool, error) {
	if given == address {
		return true, nil
	}
	server, err := r.Servers.Ask(ctx, given, r.Login)
	return err == nil && server.RunID == runID, err
}
