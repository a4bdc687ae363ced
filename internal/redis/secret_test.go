package redis_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// A server without AUTH, or one that never was a Redis, replies with what it was sent. The error must not contain the
// password: it is shown in statuses.
func TestErrorsOfALoginHoldNoPassword(t *testing.T) {
	const planted = "planted-pa$$word"
	long := strings.Repeat(planted, 20)
	tests := []struct{ name, password, reply, want string }{
		{
			"renamed", planted, "-ERR unknown command 'AUTH', with args beginning with: '" + planted + "' ",
			"ERR unknown command 'AUTH'",
		},
		{
			"renamed, with a user", planted, "-ERR unknown command 'AUTH', with args beginning with: 'app' '" + planted + "' ",
			"ERR unknown command 'AUTH'",
		},
		{
			"long, cut off", long, "-ERR unknown command `AUTH`, with args beginning with: `" + long[:128] + "`, ",
			"ERR unknown command `AUTH`",
		},
		{
			"echoed", planted, "-WRONGPASS no user has the password " + planted + "!",
			"WRONGPASS no user has the password (redacted)!",
		},
		{"not Redis", planted, "500 what is " + planted + "?", `begins with "500 what is (redacted)`},
		{"not Redis, cut off", long, "AUTH " + long[:40], `begins with "AUTH (redacted)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dialer := redis.Dialer{
				Login: redis.Login{Username: "app", Password: test.password},
				TCP: func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go answer(theirs, test.reply)
					return ours, nil
				},
			}
			_, err := dialer.Dial(t.Context(), address)
			if err == nil || strings.Contains(err.Error(), "planted") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// answer reads one command and sends a line.
func answer(c net.Conn, line string) {
	defer func() { _ = c.Close() }()
	if _, err := resp.ReadValue(bufio.NewReader(c)); err == nil {
		_, _ = fmt.Fprintf(c, "%s\r\n", line)
	}
}
