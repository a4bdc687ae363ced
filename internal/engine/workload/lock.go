package workload

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"

	"github.com/redquake/redquake/internal/engine/locks"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// The scripts by which a lock changes only if its holder's token is still there, and by which a
// holder gets a fencing token with the lock.
const (
	renewScript = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) " +
		"else return 0 end"
	releaseScript = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end"
	fenceScript   = "if redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('INCR',KEYS[2]) " +
		"else return false end"
)

// lock is the workload of users that compete for locks.
type lock struct {
	mix
	spec   *plan.Lock
	prefix string
	token  string // the beginning of all tokens, which no other run has
	book   *locks.Book

	mu      sync.Mutex
	sources []*lockSource
}

func newLock(s *plan.Workload) *lock {
	return &lock{
		mix:    mixOf(s),
		spec:   s.Lock,
		prefix: s.Keyspace.Prefix + "lock:",
		token:  strings.ToLower(rand.Text()[:12]),
		book:   locks.NewBook(s.Lock.Locks),
	}
}

// Fill does nothing: the workload needs no initial data.
func (l *lock) Fill(context.Context, *Filler) error {
	return nil
}

// Source returns the source of the users of one event loop.
func (l *lock) Source(number, _ int64, slots bool) Source {
	s := &lockSource{
		lock:   l,
		slots:  slots,
		tries:  number < 0,
		prefix: l.token + ":" + strconv.FormatInt(number, 10) + ":",
		users:  map[int64]*holder{},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources = append(l.sources, s)
	return s
}

// Guarantees is what the users found. No source may be in use any more.
func (l *lock) Guarantees() *record.Guarantees {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := int64(0)
	for _, s := range l.sources {
		end = max(end, s.told)
	}
	for _, s := range l.sources {
		for _, h := range s.users {
			if h.holds {
				l.book.Leave(h.number, h.from, max(h.from, min(end, h.valid)), locks.Released)
			}
		}
	}
	return &record.Guarantees{Lock: l.book.Result(end)}
}

// lockSource is what some users do. It is an Actor.
type lockSource struct {
	lock   *lock
	slots  bool
	tries  bool   // it is the source of the preparation, which has a lock of its own
	prefix string // of its tokens
	users  map[int64]*holder
	told   int64 // the latest instant of an outcome
}

// holder is a user, and what it knows of its lock.
type holder struct {
	number int    // of the lock, in the book
	key    string // of the lock
	fence  string // the key of its fencing tokens
	token  int64  // the number of its latest token
	holds  bool   // it counts on the lock
	gives  bool   // it has the lock, and gives it up at once
	from   int64  // when it was told that it has the lock
	// when the TTL has passed that it knows to be set: since it sent the command
	valid            int64
	renews, releases int64 // when it next extends the TTL, and gives the lock up
	decided          int64 // when it decided to give it up
}

// Pick is not used: what a user does depends on what it has.
func (s *lockSource) Pick() int {
	return plan.LockTake
}

func (s *lockSource) user(number int64) *holder {
	h := s.users[number]
	if h == nil {
		l, pods, locks := s.lock, int64(s.lock.spec.Pods), int64(s.lock.spec.Locks)
		one := number / pods % locks // users are dealt to the pods in turn
		h = &holder{number: int(one)}
		h.key = l.prefix + "{" + strconv.FormatInt(number%pods*locks+one, 10) + "}"
		h.fence = h.key + ":fence"
		if s.tries {
			h.key += ":" + s.prefix
		}
		s.users[number] = h
	}
	return h
}

// Turn returns what a user does at an instant.
func (s *lockSource) Turn(user, now int64) int {
	h := s.user(user)
	if h.holds && now >= h.valid {
		s.leave(h, h.valid, locks.Expired)
	}
	switch {
	case h.gives:
		return plan.LockRelease
	case !h.holds:
		h.token++
		return plan.LockTake
	case now >= h.releases:
		h.decided = now
		return plan.LockRelease
	}
	return plan.LockRenew
}

func (s *lockSource) leave(h *holder, until int64, end locks.End) {
	h.holds = false
	s.lock.book.Leave(h.number, h.from, max(h.from, until), end)
}

// Draw begins a request of a user.
func (s *lockSource) Draw(op int, r *Request) {
	r.Op, r.Key, r.Slot, r.step, r.state = op, 0, NoSlot, 0, [2]int64{}
	if s.slots {
		r.Slot = topology.SlotOf([]byte(s.user(r.User).key))
	}
}

// Append encodes the request.
func (s *lockSource) Append(dst []byte, r *Request) ([]byte, int) {
	spec, h := s.lock.spec, s.user(r.User)
	token := s.prefix + strconv.FormatInt(r.User, 10) + ":" + strconv.FormatInt(h.token, 10)
	ttl := strconv.FormatInt(spec.TTL.Milliseconds(), 10)
	switch {
	case r.Op == plan.LockRenew:
		return resp.AppendCommand(dst, "EVAL", renewScript, "1", h.key, token, ttl), 1
	case r.Op == plan.LockRelease:
		return resp.AppendCommand(dst, "EVAL", releaseScript, "1", h.key, token), 1
	case spec.Fencing:
		dst = resp.AppendCommand(dst, "EVAL", fenceScript, "2", h.key, h.fence, token, ttl)
	default:
		dst = resp.AppendCommand(dst, "SET", h.key, token, "NX", "PX", ttl)
	}
	if spec.WaitReplicas == 0 {
		return dst, 1
	}
	within := max(spec.TTL.Milliseconds()/2, 1)
	return resp.AppendCommand(dst, "WAIT", strconv.Itoa(spec.WaitReplicas), strconv.FormatInt(within, 10)), 2
}

// Follows is true: the reply says whether the user has the lock.
func (s *lockSource) Follows(int) bool {
	return true
}

// The states of a request.
const (
	granted    = iota // 1 = the lock was taken, extended or released; with fencing the token
	replicated        // how many replicas had it
)

// Next reads the reply, which ends the request.
func (s *lockSource) Next(dst []byte, r *Request, replies []resp.Value, _ []uint64) ([]byte, int) {
	if len(replies) == 0 {
		return dst, 0
	}
	switch text := replies[0].Text; {
	case replies[0].Type == '_':
	case text == "OK":
		r.state[granted] = 1
	default:
		r.state[granted], _ = strconv.ParseInt(text, 10, 64)
	}
	if len(replies) > 1 {
		r.state[replicated], _ = strconv.ParseInt(replies[1].Text, 10, 64)
	}
	return dst, 0
}

// Ended says what became of a user's request, and returns when its next one is due.
func (s *lockSource) Ended(r *Request, outcome Outcome, sent, at int64) (next int64) {
	h, spec := s.user(r.User), s.lock.spec
	s.told = max(s.told, at)
	yes := outcome == OK && r.state[granted] > 0
	later := at + int64(spec.Retry)
	switch r.Op {
	case plan.LockTake:
		if !yes || at >= sent+int64(spec.TTL) {
			return later
		}
		return s.took(h, r, sent, at)
	case plan.LockRenew:
		switch {
		case !h.holds:
			return later
		case yes:
			h.valid, h.renews = sent+int64(spec.TTL), sent+int64(spec.Renew)
			return min(h.renews, h.releases)
		case outcome == OK:
			s.leave(h, min(at, h.valid), gone(at, h.valid))
			return later
		}
		return min(later, h.valid) // tries again, as long as the TTL has not passed
	}
	switch {
	case h.gives:
		h.gives = false
	case h.holds && outcome == OK && !yes:
		s.leave(h, min(h.decided, h.valid), gone(h.decided, h.valid))
	case h.holds:
		s.leave(h, min(h.decided, h.valid), locks.Released)
	}
	return later
}

// gone is why a lock was gone at an instant.
func gone(at, valid int64) locks.End {
	if at < valid {
		return locks.Lost
	}
	return locks.Expired
}

// took has a user count on the lock that it took, and returns when its next request is due.
func (s *lockSource) took(h *holder, r *Request, sent, at int64) (next int64) {
	spec := s.lock.spec
	if r.state[replicated] < int64(spec.WaitReplicas) {
		h.gives = true
		s.lock.book.GiveUp()
		return at
	}
	h.holds, h.from, h.valid = true, at, sent+int64(spec.TTL)
	h.renews, h.releases = sent+int64(spec.Renew), at+int64(spec.Hold)
	s.lock.book.Take(h.number, at)
	if spec.Fencing {
		s.lock.book.Fence(h.number, r.state[granted])
	}
	return min(h.renews, h.releases)
}
