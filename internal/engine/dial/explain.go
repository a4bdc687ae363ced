package dial

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// Passes reports whether a failed connection can succeed later. One that broke or timed out can:
// the server may be starting.
func Passes(err error) bool {
	return ReasonOf(err) == plan.TargetUnreachable || redis.IsBroken(err) || redis.IsTimeout(err)
}

// Explain converts a connection failure to the error that is shown to the user.
func Explain(err error) *plan.Error {
	e := &plan.Error{
		Reason:  ReasonOf(err),
		Err:     err,
		Message: err.Error(),
		Passes:  Passes(err),
	}
	d, ok := errors.AsType[*redis.DialError](err)
	if !ok {
		return e
	}
	switch e.Reason {
	case plan.TargetUnreachable:
		e.Message = notReady(d)
	case plan.ProcessLimit:
		e.Message = fmt.Sprintf("this process has as many open files as it may (ulimit -n), and cannot "+
			"connect to %s: %s; raise its limit, or use fewer connections", d.Address, d.Err)
	case plan.ProtectedMode:
		e.Message = fmt.Sprintf(
			"%s runs in protected mode: without a password, it serves its own machine "+
				"only. Set requirepass or an ACL, or protected-mode no, at the server: %s", d.Address, d.Err)
	case plan.AuthenticationFailed:
		if d.Stage == redis.StageSetup {
			e.Message = fmt.Sprintf("failed to read the password for %s: %s", d.Address, ShortMessage(d.Err))
			break
		}
		e.Message = fmt.Sprintf("%s rejects the credentials: %s", d.Address, d.Err)
		if strings.Contains(d.Err.Error(), "without any password configured") {
			e.Message = fmt.Sprintf("a password is given, but %s has none configured: %s", d.Address, d.Err)
		} else if strings.HasPrefix(d.Err.Error(), "NOAUTH") {
			e.Message = fmt.Sprintf("%s requires a password: %s", d.Address, d.Err)
		}
	case plan.PermissionDenied, plan.CommandInvalid:
		e.Message = fmt.Sprintf("%s rejects %s: %s", d.Address, d.Command, d.Err)
		if strings.Contains(d.Err.Error(), "in cluster mode") {
			e.Message += "; a cluster has only database 0"
		}
	case plan.TLSFailed:
		e.Message = fmt.Sprintf("TLS with %s failed: %s", d.Address, tlsMessage(d.Err))
		if d.Stage == redis.StageHello && d.Secured {
			e.Message = fmt.Sprintf(
				"%s closes the connection after the TLS handshake: it requires a client certificate, or rejects this one (%s)",
				d.Address, d.Err)
		}
	case plan.NotRedis:
		e.Message = fmt.Sprintf("%s does not speak the Redis protocol: %s", d.Address,
			ShortMessage(d.Err))
	}
	return e
}

// notReady describes a server that may answer later.
func notReady(d *redis.DialError) string {
	switch greeted := d.Stage == redis.StageHello; {
	case greeted && redis.IsBroken(d.Err) && d.Command != "" && d.Command != "PING":
		return fmt.Sprintf(
			"%s closes the connection without a reply to %s: a proxy that does not pass it on "+
				"does so", d.Address, d.Command)
	case greeted && redis.IsBroken(d.Err):
		return d.Address + " closes the connection without a reply"
	case greeted && redis.IsTimeout(d.Err):
		return d.Address +
			" accepts connections but sends no reply: it is busy or hangs, or it is not Redis"
	}
	return fmt.Sprintf("%s is not ready: %s", d.Address, ShortMessage(d.Err))
}

// ReasonOf returns the reason of the failure of a connection, or of a command on it.
// TargetUnreachable includes what can pass: no reply, loading, too many clients. NotRedis is known
// by what a server has sent.
func ReasonOf(err error) plan.Reason {
	d, ok := errors.AsType[*redis.DialError](err)
	if !ok { // of a command
		d = &redis.DialError{Stage: redis.StageHello, Err: err}
		if reply, ok := errors.AsType[redis.Error](err); ok {
			d.Stage, d.Err = redis.StageAnswer, reply
		}
	}
	switch {
	case redis.IsOutOfFiles(d.Err):
		return plan.ProcessLimit
	case redis.IsProtected(d.Err):
		return plan.ProtectedMode
	}
	switch d.Stage {
	case redis.StageSetup:
		return plan.AuthenticationFailed
	case redis.StageTLS:
		return plan.TLSFailed
	case redis.StageHello:
		if errors.Is(d.Err, resp.ErrProtocol) {
			if speaksTLS(d.Err) {
				return plan.TLSFailed
			}
			return plan.NotRedis
		}
		if d.Secured && (redis.IsBroken(d.Err) || isAlert(d.Err)) {
			return plan.TLSFailed // TLS 1.3 servers reject a client certificate after the handshake
		}
	case redis.StageAnswer:
		if reason := ReasonOfReply(d.Err.Error()); reason != "" {
			return reason
		}
	}
	return plan.TargetUnreachable
}

// ReasonOfReply returns the reason for an error reply that is caused by the target's configuration
// or by the command; "" for any other.
func ReasonOfReply(message string) plan.Reason {
	word, rest, _ := strings.Cut(message, " ")
	lower := strings.ToLower(rest)
	switch {
	case word == "DENIED":
		return plan.ProtectedMode
	case redis.RejectsLogin(redis.Error(message)):
		return plan.AuthenticationFailed
	case word == "NOPERM":
		return plan.PermissionDenied
	case word != "ERR" && word != "NOPROTO":
		return ""
	case strings.HasPrefix(lower, "unknown command"), strings.HasPrefix(lower, "unknown subcommand"),
		strings.HasPrefix(lower, "wrong number of arguments"),
		strings.HasPrefix(lower, "syntax error"), strings.HasPrefix(lower, "unsupported protocol"),
		strings.HasPrefix(lower, "db index"), strings.HasPrefix(lower, "select is not allowed in cluster"),
		strings.HasPrefix(lower, "this instance has cluster support disabled"):
		return plan.CommandInvalid
	}
	return ""
}

// IsTemporary reports whether the error reply is one of a server that may serve requests later,
// without a change of its configuration.
func IsTemporary(message string) bool {
	return redis.Passes(redis.Error(message))
}

// IsMoved reports whether the error reply is one of a server that is not, or no longer, the one to
// ask.
func IsMoved(message string) bool {
	word, _, _ := strings.Cut(message, " ")
	return word == "MOVED" || word == "ASK" || word == "READONLY"
}

func tlsMessage(err error) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the port does not use TLS (" + err.Error() + ")"
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	if ok {
		return "the certificate is signed by an untrusted authority (" + err.Error() + ")"
	}
	switch {
	case speaksTLS(err):
		return errSpeaksTLS.Error()
	case redis.IsTimeout(err), redis.IsBroken(err):
		return "no reply to the handshake (" + ShortMessage(err) + ")"
	}
	return err.Error()
}

// speaksTLS reports whether the reply is a TLS record: an alert (21) or a handshake message (22) of
// version 3.x.
func speaksTLS(err error) bool {
	bad, ok := errors.AsType[*resp.UnknownTypeError](err)
	return ok && (bytes.HasPrefix(bad.Head, []byte{21, 3}) || bytes.HasPrefix(bad.Head, []byte{22, 3}))
}

// isAlert reports whether the peer of a TLS connection sent an alert. crypto/tls marks it only by
// the operation's name.
func isAlert(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "remote error"
}

// ShortMessage replaces Go's text of a timeout.
func ShortMessage(err error) string {
	if redis.IsTimeout(err) {
		return "no reply in time"
	}
	return err.Error()
}

var (
	errSpeaksTLS   = errors.New("the port uses TLS, but the target has no tls settings")
	errSpeaksPlain = errors.New("the port does not use TLS, but the target has tls settings")
)
