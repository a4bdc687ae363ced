// Package resp is the wire: it encodes Redis commands from templates and reads replies, without an allocation per request.
//
// Template is a command encoded once; Append writes it with this request's key, value and numbers. Scanner follows a stream of
// RESP2 or RESP3 replies and tells only what a load needs of each: ok, error (and its class) or null. ReadValue reads one reply as a
// value, for the few conversations where it matters: HELLO, AUTH, INFO, PING.
//
// Replies come from a server that may be broken or no Redis at all: sizes and nesting are bounded, and bad input is an error, never a panic.
// The protocol: https://redis.io/docs/latest/develop/reference/protocol-spec/. Streamed strings and aggregates ("$?", "*?") of the
// RESP3 draft are refused: no server sends them.
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

// ErrProtocol is what every error about bad input wraps.
var ErrProtocol = errors.New("not a RESP reply")

// UnknownTypeError is a reply that does not begin as any RESP type does. Head is what it begins with, at most 32 bytes. It wraps ErrProtocol.
type UnknownTypeError struct{ Head []byte }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("%v: it begins with %q", ErrProtocol, e.Head)
}

func (e *UnknownTypeError) Unwrap() error { return ErrProtocol }
