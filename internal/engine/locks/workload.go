package locks

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"

	"github.com/redquake/redquake/internal/engine/workload"
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

// Workload is that of users that compete for locks.
type Workload struct {
	workload.Workload
	spec    *plan.Lock
	resends bool // the client may send a request again by itself
	prefix  string
	token   string // the beginning of all tokens, which no other run has
	book    *Book

	mu      sync.Mutex
	sources []*source
}

// New is the workload of a plan whose workload has locks and no Problem. resends is whether the
// client may send a request again by itself.
func New(w *plan.Workload, resends bool) (*Workload, error) {
	described, err := workload.Described(w)
	if err != nil {
		return nil, err
	}
	return &Workload{
		Workload: described,
		spec:     w.Lock,
		resends:  resends,
		prefix:   w.Keyspace.Prefix + "lock:",
		token:    strings.ToLower(rand.Text()[:12]),
		book:     NewBook(w.Lock.Locks),
	}, nil
}

// Fill does nothing: the workload needs no initial data.
func (w *Workload) Fill(context.Context, *workload.Filler) error {
	return nil
}

// Source returns the source of the users of one event loop.
func (w *Workload) Source(number, _ int64, slots bool) workload.Source {
	s := &source{
		of:     w,
		slots:  slots,
		tries:  number < 0,
		prefix: w.token + ":" + strconv.FormatInt(number, 10) + ":",
		users:  map[int64]*holder{},
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sources = append(w.sources, s)
	return s
}

// Guarantees is what the users found. No source may be in use any more.
func (w *Workload) Guarantees() *record.Guarantees {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := int64(0)
	for _, s := range w.sources {
		end = max(end, s.told)
	}
	return &record.Guarantees{Lock: w.book.Result(end)}
}

// source is what some users do. It is an Actor.
type source struct {
	of     *Workload
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
	answer
}

// answer is what a user's request was answered so far.
type answer struct {
	heard      bool  // all of it
	waits      bool  // WAIT has been sent
	granted    int64 // above 0 = the lock was taken, extended or released; with fencing the token
	replicated int64 // how many replicas had it in time
}

// Pick is not used: what a user does depends on what it has.
func (s *source) Pick() int {
	return plan.LockTake
}

func (s *source) user(number int64) *holder {
	h := s.users[number]
	if h == nil {
		w, pods, locks := s.of, int64(s.of.spec.Pods), int64(s.of.spec.Locks)
		one := number / pods % locks // users are dealt to the pods in turn
		h = &holder{number: int(one)}
		h.key = w.prefix + "{" + strconv.FormatInt(number%pods*locks+one, 10) + "}"
		h.fence = h.key + ":fence"
		if s.tries {
			h.key += ":" + s.prefix
		}
		s.users[number] = h
	}
	return h
}

// Turn returns what a user does at an instant.
func (s *source) Turn(user, now int64) int {
	h := s.user(user)
	if h.holds && now >= h.valid {
		s.leave(h, h.valid, Expired)
	}
	switch {
	case h.gives:
		return plan.LockRelease
	case !h.holds:
		h.token++
		return plan.LockTake
	case now >= h.releases:
		h.decided = now
		s.of.book.Count(h.number, h.from, min(now, h.valid))
		return plan.LockRelease
	}
	return plan.LockRenew
}

func (s *source) leave(h *holder, until int64, end End) {
	h.holds = false
	s.of.book.Leave(h.number, h.from, until, end)
}

// Draw begins a request of a user.
func (s *source) Draw(op int, r *workload.Request) {
	h := s.user(r.User)
	h.answer = answer{}
	r.Op, r.Key, r.Slot = op, 0, workload.NoSlot
	if s.slots {
		r.Slot = topology.SlotOf([]byte(h.key))
	}
}

// Append encodes the request, or what follows the reply to its first command.
func (s *source) Append(dst []byte, r *workload.Request) ([]byte, int) {
	spec, h := s.of.spec, s.user(r.User)
	token := s.prefix + strconv.FormatInt(r.User, 10) + ":" + strconv.FormatInt(h.token, 10)
	ttl := strconv.FormatInt(spec.TTL.Milliseconds(), 10)
	switch {
	case r.Op == plan.LockRenew:
		dst = resp.AppendCommand(dst, "EVAL", renewScript, "1", h.key, token, ttl)
	case r.Op == plan.LockRelease:
		dst = resp.AppendCommand(dst, "EVAL", releaseScript, "1", h.key, token)
	case h.waits:
		dst = s.appendWait(dst)
	case spec.Fencing:
		dst = resp.AppendCommand(dst, "EVAL", fenceScript, "2", h.key, h.fence, token, ttl)
	default:
		dst = resp.AppendCommand(dst, "SET", h.key, token, "NX", "PX", ttl)
	}
	return dst, 1
}

func (s *source) appendWait(dst []byte) []byte {
	spec := s.of.spec
	return resp.AppendCommand(dst, "WAIT", strconv.Itoa(spec.WaitReplicas),
		strconv.FormatInt(max(spec.Wait.Milliseconds(), 1), 10))
}

// Follows is true: the reply says whether the user has the lock.
func (s *source) Follows(int) bool {
	return true
}

// Next reads the reply. That to a lock that was taken may be followed by WAIT.
func (s *source) Next(
	dst []byte, r *workload.Request, replies []resp.Value, _ []uint64,
) ([]byte, int) {
	h := s.user(r.User)
	if len(replies) == 0 {
		return dst, 0
	}
	number, _ := strconv.ParseInt(replies[0].Text, 10, 64)
	if h.waits {
		h.replicated, h.heard = number, true
		return dst, 0
	}
	h.granted = number
	if replies[0].Text == "OK" {
		h.granted = 1
	}
	if r.Op == plan.LockTake && h.granted > 0 && s.of.spec.WaitReplicas > 0 {
		h.waits = true
		return s.appendWait(dst), 1
	}
	h.heard = true
	return dst, 0
}

// Ended says what became of a user's request, and returns when its next one is due. A success whose
// reply was not read says nothing.
func (s *source) Ended(
	r *workload.Request, outcome workload.Outcome, sent, at int64,
) (next int64) {
	h, spec := s.user(r.User), s.of.spec
	s.told = max(s.told, at)
	told := outcome == workload.OK && h.heard
	yes := told && h.granted > 0
	later := at + int64(spec.Retry)
	switch r.Op {
	case plan.LockTake:
		if !yes || at >= sent+int64(spec.TTL) {
			return later
		}
		return s.took(h, sent, at)
	case plan.LockRenew:
		return s.renewed(h, told, yes, sent, at)
	}
	switch {
	case h.gives:
		h.gives = false
	// Later, or sent a second time, it may be this user's own lock that is gone.
	case h.holds && told && !yes && at < h.valid && !s.of.resends:
		s.leave(h, h.decided, Lost)
	case h.holds:
		s.leave(h, min(h.decided, h.valid), Released)
	}
	return later
}

// gone is why a lock was gone at an instant.
func gone(at, valid int64) End {
	if at < valid {
		return Lost
	}
	return Expired
}

// took has a user count on the lock that it took, and returns when its next request is due.
func (s *source) took(h *holder, sent, at int64) (next int64) {
	spec := s.of.spec
	if h.replicated < int64(spec.WaitReplicas) {
		h.gives = true
		s.of.book.GiveUp()
		return at
	}
	h.releases = at + int64(spec.Hold)
	s.counts(h, sent, at)
	return min(h.renews, h.releases)
}

// counts has a user count on its lock from an instant on.
func (s *source) counts(h *holder, sent, at int64) {
	spec := s.of.spec
	h.holds, h.from = true, at
	h.valid, h.renews = sent+int64(spec.TTL), sent+int64(spec.Renew)
	fence := int64(0)
	if spec.Fencing {
		fence = h.granted
	}
	s.of.book.Take(h.number, at, h.valid, fence)
}

// renewed has a user go on to count on its lock, or not, and returns when its next request is due.
func (s *source) renewed(h *holder, told, yes bool, sent, at int64) (next int64) {
	spec := s.of.spec
	later := at + int64(spec.Retry)
	switch {
	case !h.holds:
		return later
	case told && !yes:
		s.leave(h, min(at, h.valid), gone(at, h.valid))
		return later
	case !yes:
		return min(later, h.valid) // tries again, as long as the TTL has not passed
	case at >= h.valid: // until now it had to take the TTL for passed
		s.leave(h, h.valid, Expired)
		return later
	}
	h.valid, h.renews = sent+int64(spec.TTL), sent+int64(spec.Renew)
	s.of.book.Count(h.number, h.from, h.valid)
	return min(h.renews, h.releases)
}
