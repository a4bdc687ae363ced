package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target/confine"
)

// ProbeWithin is how long a server that serves may take to answer a probe.
const ProbeWithin = 500 * time.Millisecond

// Identity compares what runs in place of a target with what was recorded.
type Identity int

// The identities.
const (
	Absent      Identity = iota // there is no pod of the name
	Original                    // it is the same process
	Successor                   // another process in the same pod
	Replacement                 // that of another pod of the same name
)

// Process is what runs in place of a target.
type Process struct {
	Identity
	Address string // "" = it has none yet
}

// Locate determines which process runs now in place of the recorded one. It is an error if that
// cannot be determined. If the pod cannot be read, only the recorded process at the recorded
// address is recognized, by its run_id.
func (r Redis) Locate(ctx context.Context, target *v1alpha1.FaultTarget) (Process, error) {
	pod, err := r.podOf(ctx, target)
	switch {
	case err != nil:
		if r.isOriginal(ctx, target) {
			return Process{Original, target.Address}, nil
		}
		return Process{}, err
	case pod == nil:
		return Process{}, nil
	case string(pod.UID) != target.UID && pod.Status.PodIP == "":
		return Process{Identity: Replacement}, nil
	case string(pod.UID) != target.UID:
		return Process{Replacement, r.Address(pod)}, nil
	}
	server, err := r.Servers.Ask(ctx, target.Address, r.Login)
	if err != nil {
		return Process{}, err
	}
	if server.RunID != target.RunID {
		return Process{Successor, target.Address}, nil
	}
	return Process{Original, target.Address}, nil
}

// podOf reads the pod of a target's name; nil = there is none. If it is the recorded one, the
// target gets its present address: a pod has another one after a restart of its node, and its old
// one may be another pod's.
func (r Redis) podOf(ctx context.Context, target *v1alpha1.FaultTarget) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, confine.PodTimeout)
	defer cancel()
	pod, err := r.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	case string(pod.UID) != target.UID:
		return pod, nil
	case pod.Status.PodIP == "":
		return nil, fmt.Errorf("pod %s has no address", target.Pod)
	}
	recorded := target.Address
	target.Address = r.Address(pod)
	// also if the Service has another port by now
	if _, port, err := net.SplitHostPort(recorded); err == nil {
		target.Address = net.JoinHostPort(pod.Status.PodIP, port)
	}
	return pod, nil
}

// isOriginal reports whether the recorded process answers at the recorded address.
func (r Redis) isOriginal(ctx context.Context, target *v1alpha1.FaultTarget) bool {
	server, err := r.Servers.Ask(ctx, target.Address, r.Login)
	return err == nil && target.RunID != "" && server.RunID == target.RunID
}

// ProcessRuns reports whether the recorded process still runs. It is an error if the server does
// not answer.
func (r Redis) ProcessRuns(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	at, err := r.Locate(ctx, target)
	return at.Identity == Original, err
}

// PodExists reports whether the recorded pod still exists. Its server is only queried if the pod
// cannot be read.
func (r Redis) PodExists(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := r.podOf(ctx, target)
	if err != nil {
		if r.isOriginal(ctx, target) {
			return true, nil
		}
		return false, err
	}
	return pod != nil && string(pod.UID) == target.UID, nil
}

// Silent reports whether a server that accepts connections answers neither a login nor a command
// within ProbeWithin. Error replies are answers. The error is why that is not known.
func (r Redis) Silent(ctx context.Context, address string, command ...any) (bool, error) {
	silent, err := r.Send(ctx, address, ProbeWithin, command...)
	switch op, isOp := errors.AsType[*net.OpError](err); {
	case redis.IsReply(err):
		return false, nil
	case err == nil || ctx.Err() != nil || isOp && op.Op == "dial":
		return silent, err
	case redis.IsTimeout(err): // the login waits, too
		return true, nil
	}
	return false, err
}

// Send sends a command, and reports whether it was not answered within a time limit. It returns an
// error reply as an error, and what kept the command from being sent.
func (r Redis) Send(
	ctx context.Context, address string, within time.Duration, command ...any,
) (silent bool, err error) {
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err = r.Servers.Do(short, address, r.Login, command...)
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case redis.IsTimeout(err) && !errors.Is(err, redis.ErrNotSent):
		return true, nil
	}
	return false, err
}

// Same reports whether an address that the sentinels gave is that of a server: by the address, else
// by its run_id.
func (r Redis) Same(ctx context.Context, given, address, runID string) (bool, error) {
	if given == address {
		return true, nil
	}
	server, err := r.Servers.Ask(ctx, given, r.Login)
	return err == nil && server.RunID == runID, err
}

// CLI is the shell command by which a person sends a command to a target's server. It fails where
// the server refuses that: otherwise redis-cli would print the error and exit with 0, and what
// follows after && would be done.
func (r Redis) CLI(target *v1alpha1.FaultTarget, words ...string) string {
	command := []string{"kubectl", "-n", r.Namespace, "exec"}
	if r.needsPassword() {
		command = append(command, "-it")
	}
	command = append(command, target.Pod, "-c", target.Container, "--", "redis-cli", "-e")
	_, port, err := net.SplitHostPort(target.Address)
	if err == nil {
		command = append(command, "-p", port)
	}
	command = append(command, r.cliLogin()...)
	for _, word := range words {
		command = append(command, ShellWord(word))
	}
	return strings.Join(command, " ")
}

// ShellWord quotes a word for a shell where it needs that.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CLIAt is the shell command by which a person sends a command to an address.
func (r Redis) CLIAt(address, command string) string {
	host, port, _ := net.SplitHostPort(address)
	return strings.Join(append(append([]string{"redis-cli", "-e", "-h", host, "-p", port},
		r.cliLogin()...), command), " ")
}

// needsPassword reports whether servers are logged in to with a password, by the spec or by the
// login that was read: the Secret may be gone.
func (r Redis) needsPassword() bool {
	return r.Login.Password != "" || r.Spec != nil && r.Spec.Auth != nil
}

// cliLogin are the options by which redis-cli logs in. It asks for the password, which is in no
// command.
func (r Redis) cliLogin() (options []string) {
	user := r.Login.Username
	if user == "" && r.Spec != nil && r.Spec.Auth != nil {
		user = r.Spec.Auth.Username
	}
	if r.Login.TLS != nil || r.Spec != nil && r.Spec.TLS != nil {
		options = append(options, "--tls", "--insecure")
	}
	if user != "" {
		options = append(options, "--user", ShellWord(user))
	}
	if r.needsPassword() {
		options = append(options, "--askpass")
	}
	return options
}
