package engine

import (
	"errors"
	"os"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// lossClass is why requests in flight were lost.
func lossClass(err error) record.Class {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return record.ClassTimeout
	case errors.Is(err, resp.ErrProtocol), errors.Is(err, errUnexpectedReply):
		return record.ClassProtocol
	}
	return record.ClassReset
}

// errUnasked is a reply without a request: the stream is out of step.
var errUnexpectedReply = errors.New("a reply that nobody asked for")

// classOf is the kind of a failed dial, for the record. A handshake that broke is a connection that could not be made: ClassReset is for requests.
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
