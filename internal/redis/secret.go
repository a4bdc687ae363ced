package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/redact"
	"github.com/redquake/redquake/internal/redis/resp"
)

// echoed precedes the arguments of an unknown command in the reply of a server.
const echoed = ", with args beginning with"

// redact removes the password from the error of a login: a server that has no AUTH, or that is no
// Redis, replies with what it was sent.
func (l Login) redact(err error) error {
	if l.Password == "" {
		return err
	}
	if reply, ok := errors.AsType[Error](err); ok {
		text, _, _ := strings.Cut(string(reply), echoed)
		return Error(l.redactText(text))
	}
	if foreign, ok := errors.AsType[*resp.UnknownTypeError](err); ok {
		return &resp.UnknownTypeError{Head: []byte(l.redactText(string(foreign.Head)))}
	}
	if text := l.redactText(err.Error()); text != err.Error() {
		return fmt.Errorf("%w (the reply holds the password)", resp.ErrProtocol)
	}
	return err
}

func (l Login) redactText(text string) string {
	return redact.Text(text, l.Password)
}
