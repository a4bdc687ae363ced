package dial

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

func TestLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	empty, given := "", "given"
	type made struct {
		Username, Password string
		Setup              [][]string
	}
	tests := []struct {
		name string
		d    Dialer
		want made
	}{
		{"nothing to say", Dialer{Protocol: 2}, made{}},
		{"RESP3", Dialer{Protocol: 3}, made{Setup: [][]string{{"HELLO", "3"}}}},
		{"a password alone", Dialer{Protocol: 2, Target: plan.Target{PasswordFile: file}}, made{Password: "first"}},
		{
			"all",
			Dialer{Protocol: 3, Replica: true, Target: plan.Target{PasswordFile: file, Username: "app", Database: 4}},
			made{"app", "first", [][]string{{"HELLO", "3"}, {"READONLY"}, {"SELECT", "4"}}},
		},
		{
			"a given password goes first",
			Dialer{Protocol: 2, Target: plan.Target{PasswordFile: file}, Password: &given},
			made{Password: "given"},
		},
		{"a given empty one, too", Dialer{Protocol: 2, Target: plan.Target{PasswordFile: file}, Password: &empty}, made{}},
	}
	for _, tt := range tests {
		login, err := tt.d.login()
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, made{login.Username, login.Password, tt.d.setup()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	rotated := Dialer{Protocol: 2, Target: plan.Target{PasswordFile: file}}
	if got, err := rotated.login(); err != nil || got.Password != "first" {
		t.Errorf("%v, %v", got, err)
	}
	write("second")
	if got, err := rotated.login(); err != nil || got.Password != "second" {
		t.Errorf("after the rotation %v, %v", got, err)
	}
}

func TestReasonOfReply(t *testing.T) {
	tests := map[string]plan.Reason{
		"WRONGPASS invalid username-password pair or user is disabled.":                    plan.AuthenticationFailed,
		"NOAUTH Authentication required.":                                                  plan.AuthenticationFailed,
		"ERR AUTH <password> called without any password configured for the default user.": plan.AuthenticationFailed,
		"ERR Client sent AUTH, but no password is set":                                     plan.AuthenticationFailed,
		"ERR invalid password":                                                             plan.AuthenticationFailed,
		"NOPERM this user has no permissions to run the 'set' command":                     plan.PermissionDenied,
		"NOPERM this user has no permissions to access one of the keys used as arguments":  plan.PermissionDenied,
		"ERR unknown command 'FLY', with args beginning with: ":                            plan.CommandInvalid,
		"ERR unknown command `HELLO`, with args beginning with: `3`, ":                     plan.CommandInvalid,
		"ERR Unknown subcommand or wrong number of arguments for 'FLY'. Try CLIENT HELP.":  plan.CommandInvalid,
		"ERR wrong number of arguments for 'get' command":                                  plan.CommandInvalid,
		"ERR syntax error":                                                  plan.CommandInvalid,
		"NOPROTO unsupported protocol version":                              plan.CommandInvalid,
		"ERR value is not an integer or out of range":                       "",
		"WRONGTYPE Operation against a key holding the wrong kind of value": "",
		"LOADING Redis is loading the dataset in memory":                    "",
		"DENIED Redis is running in protected mode because":                 plan.ProtectedMode,
		"READONLY You can't write against a read only replica.":             "",
		"OOM command not allowed when used memory > 'maxmemory'.":           "",
		"ERR max number of clients reached":                                 "",
		"":                                                                  "",
	}
	for message, want := range tests {
		if got := ReasonOfReply(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

func TestDialErrors(t *testing.T) {
	tests := []struct {
		name   string
		err    *redis.DialError
		class  record.Class
		reason plan.Reason
		passes bool
	}{
		{
			"refused",
			&redis.DialError{Stage: redis.StageTCP, Err: syscall.ECONNREFUSED},
			record.ClassRefused,
			plan.TargetUnreachable,
			true,
		},
		{
			"too many open files",
			&redis.DialError{
				Stage: redis.StageTCP,
				Err:   &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)},
			},
			record.ClassRefused,
			plan.ProcessLimit,
			false,
		},
		{
			"protected mode",
			&redis.DialError{Stage: redis.StageAnswer, Err: redis.Error("DENIED Redis is running in protected mode because")},
			record.ClassOther,
			plan.ProtectedMode,
			false,
		},
		{
			"timed out",
			&redis.DialError{Stage: redis.StageTCP, Err: os.ErrDeadlineExceeded},
			record.ClassRefused,
			plan.TargetUnreachable,
			true,
		},
		{
			"broken in the handshake",
			&redis.DialError{Stage: redis.StageHello, Err: io.EOF},
			record.ClassRefused,
			plan.TargetUnreachable,
			true,
		},
		{
			"silent",
			&redis.DialError{Stage: redis.StageHello, Err: os.ErrDeadlineExceeded},
			record.ClassRefused,
			plan.TargetUnreachable,
			true,
		},
		{
			"no RESP",
			&redis.DialError{Stage: redis.StageHello, Err: &resp.UnknownTypeError{Head: []byte("HTTP")}},
			record.ClassProtocol,
			plan.NotRedis,
			false,
		},
		{
			"a TLS alert",
			&redis.DialError{Stage: redis.StageHello, Err: &resp.UnknownTypeError{Head: []byte{21, 3, 1}}},
			record.ClassProtocol,
			plan.TLSFailed,
			false,
		},
		{
			"broken after TLS",
			&redis.DialError{Stage: redis.StageHello, Secured: true, Err: io.EOF},
			record.ClassRefused,
			plan.TLSFailed,
			true,
		},
		{
			"a bad certificate",
			&redis.DialError{Stage: redis.StageTLS, Err: errors.New("x509: expired")},
			record.ClassRefused,
			plan.TLSFailed,
			false,
		},
		{
			"loading",
			&redis.DialError{Stage: redis.StageAnswer, Err: errors.New("LOADING Redis is loading")},
			record.ClassLoading,
			plan.TargetUnreachable,
			true,
		},
		{
			"wrong password",
			&redis.DialError{Stage: redis.StageAnswer, Err: errors.New("WRONGPASS no")},
			record.ClassAuth,
			plan.AuthenticationFailed,
			false,
		},
		{
			"too many clients",
			&redis.DialError{Stage: redis.StageAnswer, Err: errors.New("ERR max number of clients reached")},
			record.ClassOther,
			plan.TargetUnreachable,
			true,
		},
		{
			"no password file",
			&redis.DialError{Stage: redis.StageSetup, Err: os.ErrNotExist},
			record.ClassRefused,
			plan.AuthenticationFailed,
			false,
		},
	}
	for _, tt := range tests {
		if class, reason := ClassOf(tt.err),
			ReasonOf(tt.err); class != tt.class || reason != tt.reason || Passes(tt.err) != tt.passes {
			t.Errorf("%s: %s, %s, passes %v; want %s, %s, %v", tt.name, class, reason, Passes(tt.err), tt.class, tt.reason,
				tt.passes)
		}
	}
}
