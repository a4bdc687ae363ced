package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Error is an error reply: the server understood the command and refused it.
type Error string

func (e Error) Error() string { return string(e) }

// ErrorOf is the Error that a reply is, or nil.
func ErrorOf(v resp.Value) error {
	if v.IsError() {
		return Error(v.Text)
	}
	return nil
}

// IsReply says that an error is, or wraps, an error reply. Every other error of a command leaves open whether it was carried out.
func IsReply(err error) bool {
	_, ok := errors.AsType[Error](err)
	return ok
}

// IsBroken says that an established connection broke.
func IsBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// IsTimeout says that there was no answer in time.
func IsTimeout(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// Plain is a reply as string, int64, nil, []any or, within a list, Error. A map is a list of names and values in turn.
func Plain(v resp.Value) any {
	switch v.Type {
	case '_':
		return nil
	case ':':
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if err != nil {
			return v.Text
		}
		return n
	case '-', '!':
		return Error(v.Text)
	case '*', '~', '%':
		items := make([]any, len(v.Items))
		for i := range items {
			items[i] = Plain(v.Items[i])
		}
		return items
	}
	return v.Text
}
