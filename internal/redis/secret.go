package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/redis/resp"
)

const (
	// echoed precedes the arguments of an unknown command in the reply of a server.
	echoed = ", with args beginning with"
	hidden = "(redacted)"
	// leastSecret is the length of a part of the password that is not in a message by chance.
	leastSecret = 4
)

// redact removes the password from the error of a login: a server that has no AUTH, or that is no Redis, replies with what it was sent.
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

// redactText replaces the password, and at the end of the text also its beginning.
func (l Login) redactText(text string) string {
	if len(l.Password) < leastSecret {
		return text
	}
	text = strings.ReplaceAll(text, l.Password, hidden)
	for n := min(len(l.Password), len(text)); n >= leastSecret; n-- {
		if rest, found := strings.CutSuffix(text, l.Password[:n]); found {
			return rest + hidden
		}
	}
	return text
}
