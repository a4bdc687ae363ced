// Package resp implements the Redis protocol: it encodes commands from templates and reads replies,
// without an allocation per request.
//
// Template is an encoded command; Append writes it with a request's key, value and numbers. Scanner
// scans a stream of RESP2 or RESP3 replies and returns only what a load needs: ok, error (and its
// class) or null. ReadValue reads one reply as a value, for commands whose reply is needed: HELLO,
// AUTH, INFO, PING.
//
// The server may be faulty, or not Redis at all: sizes and nesting are bounded, and invalid input
// is an error, never a panic.
// The protocol: https://redis.io/docs/latest/develop/reference/protocol-spec/. Streamed strings and
// aggregates ("$?", "*?") of the RESP3 draft are rejected: no server sends them.
package resp

import (
	"errors"
	"fmt"
)

// The bounds of what is read.
const (
	MaxDepth = 32        // aggregates within aggregates
	MaxBulk  = 512 << 20 // bytes of one bulk string: Redis' own proto-max-bulk-len
	MaxCount = 1 << 30   // elements of one aggregate
	MaxLine  = 64 << 10  // bytes of one line: Redis' own limit for inline commands
)

// ErrProtocol is wrapped by every error about invalid input.
var ErrProtocol = errors.New("not a RESP reply")

// UnknownTypeError is a reply whose first byte is not a RESP type. Head is its beginning, at most
// 32 bytes. It wraps ErrProtocol.
type UnknownTypeError struct{ Head []byte }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("%v: it begins with %q", ErrProtocol, e.Head)
}

func (e *UnknownTypeError) Unwrap() error {
	return ErrProtocol
}
