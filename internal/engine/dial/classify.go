package dial

import (
	"errors"
	"os"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// LossClass is the error class of requests that were in flight on a connection that broke.
func LossClass(err error) record.Class {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return record.ClassTimeout
	case errors.Is(err, resp.ErrProtocol), errors.Is(err, ErrUnexpectedReply):
		return record.ClassProtocol
	}
	return record.ClassReset
}

// ErrUnexpectedReply is returned for a reply without a request: client and server are out of sync.
var ErrUnexpectedReply = errors.New("received a reply without a request")

// ClassOf returns the error class of a failed dial. A connection that breaks during the handshake
// is ClassRefused: ClassReset is for requests.
func ClassOf(err error) record.Class {
	e, ok := errors.AsType[*redis.DialError](err)
	switch {
	case !ok:
	case e.Stage == redis.StageAnswer:
		return resp.Classify([]byte(e.Err.Error()))
	case errors.Is(e.Err, resp.ErrProtocol):
		return record.ClassProtocol
	}
	return record.ClassRefused
}
