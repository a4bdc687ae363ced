package engine

import (
	"errors"
	"os"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// lossClass is the error class of requests that were in flight on a connection that broke.
func lossClass(err error) record.Class {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return record.ClassTimeout
	case errors.Is(err, resp.ErrProtocol), errors.Is(err, errUnexpectedReply):
		return record.ClassProtocol
	}
	return record.ClassReset
}

// errUnexpectedReply is returned for a reply without a request: client and server are out of sync.
var errUnexpectedReply = errors.New("received a reply without a request")

// classOf returns the error class of a failed dial. A connection that breaks during the handshake is ClassRefused: ClassReset is for requests.
func classOf(err error) record.Class {
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
