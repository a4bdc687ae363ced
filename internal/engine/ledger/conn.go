package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// conn is one connection that a single goroutine uses, one exchange at a time.
type conn struct {
	net.Conn
	in      *bufio.Reader
	address string
}

func newConn(c net.Conn, address string) *conn {
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 64<<10), address: address}
}

// exchange sends encoded commands in one write and reads their replies. When ctx ends it does, too; the connection is then of no more use.
func (c *conn) exchange(ctx context.Context, request []byte, replies int) ([]resp.Value, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	fail := func(err error) ([]resp.Value, error) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w", c.address, err)
	}
	if _, err := c.Write(request); err != nil {
		return fail(err)
	}
	values := make([]resp.Value, replies)
	for i := range values {
		var err error
		if values[i], err = resp.ReadValue(c.in); err != nil {
			return fail(err)
		}
	}
	return values, nil
}

// ask sends one command; an error reply is an error.
func (c *conn) ask(ctx context.Context, words ...string) (resp.Value, error) {
	values, err := c.exchange(ctx, resp.AppendCommand(nil, words...), 1)
	if err != nil {
		return resp.Value{}, err
	}
	if values[0].IsError() {
		return values[0], fmt.Errorf("%s: %s: %w", c.address, words[0], errors.New(values[0].Text))
	}
	return values[0], nil
}

// info asks for INFO and returns its fields.
func (c *conn) info(ctx context.Context) (map[string]string, error) {
	v, err := c.ask(ctx, "INFO")
	if err != nil {
		return nil, err
	}
	return parseFields(v.Text), nil
}

func parseFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
