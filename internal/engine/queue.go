package engine

import (
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/redis/resp"
)

// request is one request from the moment it is chosen until its outcome is known.
type request struct {
	workload.Request
	due     int64      // open loop: when it was due; closed loop: -1
	sent    int64      // when it was first written, 0 = not yet
	turn    *turn      // closed loop
	reply   resp.Reply // of all its replies so far: an error stays
	replies int32      // of the present round trip that are still to come
	follows bool       // its replies are read as values, and lead to further round trips
	asking  bool       // led by ASKING, whose reply is none of its own
	hops    int8       // how often it was sent elsewhere
	tries   int32      // how often it was tried again
	ledger  int64      // number of the ledger write, from 1; 0 = it is none
}

// queue is a first-in-first-out of requests on a ring that grows. The zero value is empty.
type queue struct {
	ring  []request
	head  int
	count int
}

// push appends a request and returns it to be filled; it is valid until the next push.
func (q *queue) push() *request {
	if q.count == len(q.ring) {
		q.grow()
	}
	r := &q.ring[(q.head+q.count)&(len(q.ring)-1)]
	q.count++
	return r
}

// pop removes the front; what at(0) returned stays readable until the next push.
func (q *queue) pop() {
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.count--
}

func (q *queue) clear() { q.head, q.count = 0, 0 }

func (q *queue) grow() {
	ring := make([]request, max(4, 2*len(q.ring)))
	for i := range q.count {
		ring[i] = *q.at(i)
	}
	q.ring, q.head = ring, 0
}

// at is the i-th request from the front, 0 <= i < count.
func (q *queue) at(i int) *request { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// turn is a user.
type turn struct {
	user int64 // number over all pods: active while the level is above it
	due  int64 // of the next turn
	left int   // requests of the present turn that have not ended
}

var replyNone resp.Reply
