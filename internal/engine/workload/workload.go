// Package workload defines the requests of a run: the operations, how a request of each is encoded,
// and which data must exist before the start. When requests are sent, over how many connections,
// and how they are recorded is up to the load engine.
//
// Each workload has one file here, and one in package plan with its settings and their validation.
// There are two kinds:
//
//   - A Redis workload sends commands over the engine's connections: commands, benchmark, ranking,
//     rateLimiter, and lock of package locks. It encodes requests and, if a
//     later command needs an earlier reply, reads replies; it never blocks. Its hot path does not
//     allocate.
//   - A Remote workload performs whole operations itself, without the engine's connections:
//     cacheAside, http.
//
// See docs/workloads.md for how to write one.
package workload

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

// Workload is implemented by every workload. It is read-only once created and safe for concurrent
// use.
type Workload interface {
	// Operations returns the operations in the order of every record. There is at least one.
	Operations() []plan.Operation
	// Tallies returns the names of further counters, such as allowed and denied; nil for most
	// workloads.
	Tallies() []string
	// OperationOf returns the operation of an arrival of an open loop. Like its due time it is fixed
	// in advance, so that an arrival which is never sent is counted for its operation.
	OperationOf(arrival int64) int
}

// Redis is a workload over the engine's connections to Redis.
type Redis interface {
	Workload
	// Fill writes this pod's part of the initial data; it returns immediately if none is needed.
	// Errors are *FillError, f.Dial's, or ctx's cause.
	Fill(ctx context.Context, f *Filler) error
	// Source returns the source of the requests of event loop number, 0 <= number < of, counted over
	// all pods as Numbered does. The same number gives the same requests. With slots it also sets each
	// request's slot. A number below 0 is a pod's source for the preparation: pod - pods, of pods.
	Source(number, of int64, slots bool) Source
}

// Source creates the requests of one event loop; only its goroutine calls it. It does not allocate
// once the buffers have grown.
// The calls for one request are Draw, Append, and, if Follows(r.Op), one Next for each round trip
// with a reply. Requests of one source may be interleaved in any way: the state of each is in its
// Request.
type Source interface {
	// Pick returns the operation of the next request of a closed loop.
	Pick() int
	// Draw starts a request: it sets all fields of r except User, which the caller has set. r may have
	// been used before.
	Draw(op int, r *Request)
	// Append encodes the request's first, and usually only, round trip, and returns the number of its
	// replies. It may be called again for the same r when the request is redirected (MOVED, ASK) or
	// retried: random values are drawn again, the key stays. If a later round trip was redirected, it
	// encodes that one, or the first one again if that does no harm.
	Append(dst []byte, r *Request) ([]byte, int)
}

// Follower is a Source with operations of several round trips, because a later command needs an
// earlier reply. An operation ends when Next returns 0 replies, or with an error reply, which fails
// it without a call of Next.
type Follower interface {
	Source
	// Follows reports whether the operation's replies must be read as values and passed to Next.
	Follows(op int) bool
	// Next receives the replies to the previous round trip, none of them an error. They may be fewer
	// than expected if the engine could not keep them, and of any type if the server is faulty. Next
	// appends the next round trip and returns the number of its replies; 0 = the operation has
	// succeeded. It adds to tally, one counter for each of the workload's Tallies. The next round trip
	// is sent to the same server: all keys of a request share one slot.
	Next(dst []byte, r *Request, replies []resp.Value, tally []uint64) ([]byte, int)
}

// Actor is a Source whose users decide by what became of their requests: those of closed loops only.
// A user has one request at a time.
type Actor interface {
	Follower
	// Turn returns the operation of a user's next request, at an instant.
	Turn(user, now int64) int
	// Ended says what became of a user's request: it was sent at the instant sent, 0 = never, and its
	// outcome was known at the instant at. It returns when the user's next request is due.
	Ended(r *Request, outcome Outcome, sent, at int64) (next int64)
}

// Guaranteed is a workload that finds out how often was false what applications count on that do the
// same.
type Guaranteed interface {
	Workload
	// Guarantees is what was found. It must be called once, after the load.
	Guarantees() *record.Guarantees
}

// Numbered returns the number over all pods of source i of a pod, and of how many. Pods alternate,
// so that numbers differ whatever the number of sources of each pod: a pod on a larger node has
// more event loops.
func Numbered(i, sources int64, pod, pods int) (number, of int64) {
	return i*int64(pods) + int64(pod), sources * int64(pods)
}

// NoSlot is the slot of a request without a key: it may be sent to any node.
const NoSlot = 0xFFFF

// Request is one request: the fields that the engine needs to send it, and the state of its source.
type Request struct {
	Op int
	// set by the engine: the virtual user in a closed loop, the event loop's number in an open one
	User int64
	Key  int64 // the number of the key that determines the slot, in [0, keys)
	// the cluster slot of that key; NoSlot if there is no key, or if the source was created without
	// slots
	Slot uint16
	// State of the source.
	step  int8
	state [2]int64
}

// Remote is a workload that does not use the engine's connections.
type Remote interface {
	Workload
	// Prepare checks that the server can be reached, and writes initial data. Errors are
	// human-readable.
	Prepare(ctx context.Context) error
	// Caller returns the caller of goroutine number, 0 <= number < of, counted over all pods as
	// Numbered does.
	Caller(number, of int64) Caller
	// Close closes idle connections. No Caller may be in use.
	Close() error
}

// Caller performs whole operations in the calling goroutine; only one goroutine uses a Caller at a
// time.
type Caller interface {
	// Pick returns the operation of the next request of a closed loop.
	Pick() int
	// Call performs an operation. ctx ends at the request's timeout, which makes the outcome Unknown
	// with ClassTimeout, or Fail if certainly nothing was sent. It adds to tally, one counter for each
	// of the workload's Tallies.
	Call(ctx context.Context, op int, user int64, tally []uint64) Result
}

// RemoteOptions are the parameters of a Remote in addition to the plan's workload.
type RemoteOptions struct {
	Connections int           // maximum number of idle connections: as many as this pod has callers
	Timeout     time.Duration // of a dial, and of each step of Prepare
	// cacheAside in mode CacheAside: the Redis under test; the caller closes it
	Cache redis.Cmdable
}

// New creates a workload over the engine's connections to Redis. The plan's workload must have no
// Problem.
func New(w *plan.Workload) (Redis, error) {
	if problem := w.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	switch {
	case len(w.Commands) > 0:
		return newCommands(w)
	case w.Benchmark != nil:
		return newBenchmark(w)
	case w.Ranking != nil:
		return newRanking(w), nil
	case w.RateLimiter != nil:
		return newRateLimiter(w)
	}
	return nil, errors.New("the workload is remote, or has locks: use NewRemote or package locks")
}

// NewRemote creates a workload that does not use the engine's connections. The plan's workload must
// have no Problem.
func NewRemote(w *plan.Workload, o RemoteOptions) (Remote, error) {
	if problem := w.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	switch {
	case w.CacheAside != nil:
		return newCacheAside(w, o)
	case w.HTTP != nil:
		return newHTTP(w, o), nil
	}
	return nil, errors.New("the workload is not remote: use New")
}

// Described returns the operations and tallies of a workload, without creating requests or callers.
// The plan's workload must have no Problem.
func Described(w *plan.Workload) (Workload, error) {
	if problem := w.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	m := mixOf(w)
	return &m, nil
}

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

// Result is the outcome of an operation with its details. Instants are nanoseconds since the start
// of the run.
type Result struct {
	Outcome  Outcome
	Class    record.Class // of Fail and Unknown
	BytesIn  int          // received; 0 if unknown
	BytesOut int          // sent; 0 if unknown
	Slot     uint16       // of its key, for a command to a Redis Cluster
	Null     bool         // the reply of OK is null
	// when the client's call began and returned, if the client says so itself; 0 = around Call
	Sent, Done int64
}
