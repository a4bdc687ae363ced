package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Error is an error reply: the server received the command and rejected it.
type Error string

func (e Error) Error() string {
	return string(e)
}

// ErrorOf returns the reply as Error, or nil if it is not one.
func ErrorOf(v resp.Value) error {
	if v.IsError() {
		return Error(Printable(v.Text, longestError))
	}
	return nil
}

// longestError is how many bytes of an error reply are kept.
const longestError = 512

// Printable makes text of a server fit for logs, events and statuses: at most so many bytes of
// valid UTF-8, without control characters, such as those of terminals, and other characters that
// cannot be printed.
func Printable(text string, bytes int) string {
	cut := len(text) > bytes
	if cut {
		text = text[:bytes]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, text)
	if cut {
		text += "..."
	}
	return text
}

// IsReply reports whether an error is, or wraps, an error reply. After any other error of a command
// it may have been executed.
func IsReply(err error) bool {
	_, ok := errors.AsType[Error](err)
	return ok
}

// IsUnsupported reports whether an error is, or wraps, an error reply that means that the server,
// or a proxy in front of it, has no such command.
func IsUnsupported(err error) bool {
	reply, ok := errors.AsType[Error](err)
	if !ok {
		return false
	}
	text := strings.ToLower(string(reply))
	return slices.ContainsFunc([]string{
		"unknown command", "unknown subcommand", "unsupported",
		"noproto", "syntax error", "wrong number of arguments",
	}, func(words string) bool {
		return strings.Contains(text, words)
	})
}

// Passes reports whether an error is, or wraps, an error reply of a server that may serve later,
// without a change of its configuration: it loads its data, runs a script, or has no primary, no
// replica or no room for another client.
func Passes(err error) bool {
	reply, ok := errors.AsType[Error](err)
	if !ok {
		return false
	}
	switch word, rest, _ := strings.Cut(string(reply), " "); word {
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY":
		return true
	case "ERR":
		return strings.HasPrefix(rest, "max number of clients")
	}
	return false
}

// RejectsLogin reports whether an error is, or wraps, an error reply that means that the
// credentials are wrong, or missing.
func RejectsLogin(err error) bool {
	reply, ok := errors.AsType[Error](err)
	if !ok {
		return false
	}
	switch word, rest, _ := strings.Cut(string(reply), " "); word {
	case "WRONGPASS", "NOAUTH", "DENIED": // DENIED: protected mode, without a password
		return true
	case "ERR":
		return slices.ContainsFunc(refusals, func(words string) bool {
			return strings.Contains(strings.ToLower(rest), words)
		})
	}
	return false
}

// refusals are how servers reject AUTH with ERR, by version, in lower case.
var refusals = []string{
	"invalid password", "without any password configured",
	"client sent auth, but no", "auth <password> called without",
}

// ErrNotSent is part of the error of a command of which the server has received nothing.
var ErrNotSent = errors.New("not sent")

// unsent adds ErrNotSent to an error, but not to its text.
type unsent struct{ error }

func (u unsent) Unwrap() []error {
	return []error{u.error, ErrNotSent}
}

// IsBroken reports whether an established connection broke.
func IsBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// IsOutOfFiles reports whether this process, or this machine, has as many open files as it may: no
// connection can be made, to whatever server.
func IsOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsProtected reports whether an error is, or wraps, the reply of a server in protected mode:
// without a password, it serves its own machine only.
func IsProtected(err error) bool {
	reply, ok := errors.AsType[Error](err)
	return ok && strings.HasPrefix(string(reply), "DENIED ")
}

// IsTimeout reports whether there was no reply in time.
func IsTimeout(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// Plain converts a reply to string, int64, nil, []any or, within a list, Error. A map becomes a
// list of alternating names and values.
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
		return Error(Printable(v.Text, longestError))
	case '*', '~', '%':
		items := make([]any, len(v.Items))
		for i := range items {
			items[i] = Plain(v.Items[i])
		}
		return items
	}
	return v.Text
}
