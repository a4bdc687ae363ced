package workload

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redquake/redquake/internal/record"
)

// brokenClass is what broke a request that may have reached the other side.
func brokenClass(err error) record.Class {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) { // the latter at the end of an aborted run
		return record.ClassTimeout
	}
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return record.ClassTimeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "connection"):
		return record.ClassReset
	}
	return record.ClassProtocol
}

// Outcome is what became of a called operation.
type Outcome uint8

// The outcomes.
const (
	OK      Outcome = iota
	Fail            // surely not carried out, or answered with an error
	Unknown         // may or may not have been carried out
)

// Result is a called operation's outcome. Its latency is the caller's to measure, around Call.
type Result struct {
	Outcome  Outcome
	Class    record.Class // of Fail and Unknown
	BytesIn  int          // received; 0 where it is not known
	BytesOut int          // sent; 0 where it is not known
	Slot     uint16       // of its key, where it is a command to a Redis Cluster
}
