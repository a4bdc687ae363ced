package workload

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redquake/redquake/internal/record"
)

// brokenClass returns the error class of a request that may have reached the server.
func brokenClass(err error) record.Class {
	// canceled at the end of an aborted run
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return record.ClassTimeout
	}
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return record.ClassTimeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		strings.Contains(err.Error(), "connection"):
		return record.ClassReset
	}
	return record.ClassProtocol
}

// Outcome is the outcome of an operation.
type Outcome uint8

// The outcomes.
const (
	OK      Outcome = iota
	Fail            // certainly not applied, or an error reply
	Unknown         // may have been applied
)

// Result is the outcome of an operation with its details. The engine measures its latency, around
// Call.
type Result struct {
	Outcome  Outcome
	Class    record.Class // of Fail and Unknown
	BytesIn  int          // received; 0 if unknown
	BytesOut int          // sent; 0 if unknown
	Slot     uint16       // of its key, for a command to a Redis Cluster
}
