// Package workload is what the requests of a run are: which operations there are, how a request of each is made, and which data lies
// there before the start. It knows nothing of when requests are sent, over how many connections, and how they are recorded: that is the
// load engine's.
//
// Each workload is one file, and one in package plan: what a user sets, and what is wrong with it. There are two kinds:
//
//   - A Redis workload is commands over connections that the engine holds: commands, benchmark, ranking, rateLimiter. It encodes and, where a
//     later command needs an earlier reply, reads; it never waits. Its hot path allocates nothing.
//   - A Remote workload does whole operations itself, as it does not speak RESP on the engine's connections: cacheAside, http.
//
// docs/workloads.md says how to write one.
package workload

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
)

// Workload is what every workload has. It is read-only once made: any number of goroutines may use it.
type Workload interface {
	// Operations are in the order of every record. There is at least one.
	Operations() []plan.Operation
	// Tallies are names of further counters, nil for most: allowed, denied. What counts is told where requests are settled.
	Tallies() []string
	// OperationOf is the operation of arrival i of an open loop: fixed in advance as its due time is, so that an arrival which is never
	// sent is still one of something.
	OperationOf(arrival int64) int
}

// Redis is a workload over the engine's connections to Redis.
type Redis interface {
	Workload
	// Fill makes this pod's part of the data before the start; it returns at once where there is none to make. Errors are *FillError,
	// f.Dial's, or ctx's cause.
	Fill(ctx context.Context, f *Filler) error
	// Source makes the requests of event loop number, 0 <= number < of, counted over all pods. The same number gives the same requests.
	// With slots it also tells each request's slot.
	Source(number, of int64, slots bool) Source
}

// Source makes the requests of one event loop; only its goroutine calls it. Nothing in it allocates once the buffers have grown.
// The calls for one request are Draw, Append, and, where Follows(r.Op), one Next for each round trip that was answered. Requests of
// one source may be interleaved in any way: what belongs to one is in its Request.
type Source interface {
	// Pick is the operation of a closed loop's next request.
	Pick() int
	// Draw begins a request: it sets all of r but User, which the caller has set, also where r was used before.
	Draw(op int, r *Request)
	// Append encodes the request's first, and mostly only, round trip, and returns by how many replies it is answered. It may be called
	// again for the same r when the request is sent again (MOVED, ASK): random values are drawn anew, the key stays.
	Append(dst []byte, r *Request) ([]byte, int)
}

// Follower is a Source some of whose operations take several round trips, because a later command needs an earlier reply. An operation
// is over when Next says so, or with an error among its replies: that fails it, without a call of Next.
type Follower interface {
	Source
	// Follows says whether the operation's replies must be read as values and handed to Next.
	Follows(op int) bool
	// Next is told the replies to the round trip before, none of them an error; fewer than were asked for where the engine could not keep
	// them, and of any type, as a server may be broken. It appends the next round trip and returns by how many replies
	// that is answered; 0 = the operation is over and has succeeded. It adds to tally, one counter for each of the workload's Tallies.
	// The next round trip goes where the first went: all keys of a request share one slot.
	Next(dst []byte, r *Request, replies []resp.Value, tally []uint64) ([]byte, int)
}

// NoSlot is the slot of a request without a key: any node will do.
const NoSlot = 0xFFFF

// Request is one request: what the engine has to know to send it, and what its source has to remember.
type Request struct {
	Op   int
	User int64  // set by the engine: the virtual user in a closed loop, the event loop's number in an open one
	Key  int64  // the number of the key that routes the request, in [0, keys)
	Slot uint16 // the cluster slot of that key; NoSlot where there is no key, or where the source was made without slots
	// Of the source alone.
	step  int8
	state [2]int64
}

// Remote is a workload that does not go over the engine's connections.
type Remote interface {
	Workload
	// Prepare makes sure that the other side can be reached and fills what must be there. Errors are sentences for people.
	Prepare(ctx context.Context) error
	// Caller makes the operations of goroutine number, 0 <= number < of, counted over all pods.
	Caller(number, of int64) Caller
	// Close ends connections that are kept. No Caller may be in use.
	Close() error
}

// Caller performs whole operations, each in the goroutine that calls it; only one goroutine uses a Caller at a time.
type Caller interface {
	// Pick is the operation of a closed loop's next request.
	Pick() int
	// Call performs an operation. ctx ends at the request's timeout, which makes the outcome Unknown with ClassTimeout, or Fail where
	// surely nothing was sent. It adds to tally, one counter for each of the workload's Tallies.
	Call(ctx context.Context, op int, user int64, tally []uint64) Result
}

// RemoteOptions is what a Remote needs beside its spec.
type RemoteOptions struct {
	Connections int           // kept to the other side at most: as many as there are callers of this pod
	Timeout     time.Duration // of a dial, and of each step of Prepare
	Cache       redis.Cmdable // cacheAside in mode CacheAside: the Redis under test; the caller closes it
}
