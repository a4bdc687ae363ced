package workload

import (
	"context"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
)

type rateLimiter struct {
	mix
	spec     *plan.RateLimiter
	keyspace plan.Keyspace
	prefix   string
	incr     []byte
	pexpire  []byte
	key      *word
}

func newRateLimiter(s *plan.Workload) (*rateLimiter, error) {
	l := &rateLimiter{
		mix:      mixOf(s),
		spec:     s.RateLimiter,
		keyspace: s.Keyspace,
		prefix:   s.Keyspace.Prefix + "limit:",
	}
	l.incr, l.pexpire = head(2, "INCR"), head(3, "PEXPIRE")
	var err error
	l.key, err = compileWord("{key}", l.prefix)
	return l, err
}

// Fill does nothing: the workload needs no initial data.
func (l *rateLimiter) Fill(context.Context, *Filler) error {
	return nil
}

// Source returns the source of one event loop's requests.
func (l *rateLimiter) Source(number, of int64, slots bool) Source {
	chance := newChance(&l.mix, number)
	return &rateLimiterSource{
		chance:  chance,
		limiter: l,
		slots:   slots,
		draws:   newKeyDraw(l.keyspace, number, of, chance),
	}
}

type rateLimiterSource struct {
	chance
	limiter *rateLimiter
	draws   *keyDraw
	slots   bool
	args    resp.Args
	scratch []byte // the key of the last slot
}

// Draw chooses the limited user.
func (s *rateLimiterSource) Draw(op int, r *Request) {
	r.Op, r.Key, r.Slot, r.step = op, s.draws.draw(), NoSlot, 0
	if s.slots {
		s.args.Key = r.Key
		r.Slot, s.scratch = s.limiter.key.slot(s.scratch, &s.args)
	}
}

// Append encodes INCR. Once that has succeeded, PEXPIRE was redirected: a second INCR would count
// the request twice.
func (s *rateLimiterSource) Append(dst []byte, r *Request) ([]byte, int) {
	if r.step > 0 {
		return s.appendExpire(dst, r), 1
	}
	return appendNumber(append(dst, s.limiter.incr...), s.limiter.prefix, r.Key), 1
}

// Follows is true: the reply to INCR determines whether a second command follows.
func (s *rateLimiterSource) Follows(int) bool {
	return true
}

// Next counts the request as allowed or denied, and sets the TTL of a new window.
func (s *rateLimiterSource) Next(
	dst []byte, r *Request, replies []resp.Value, tally []uint64,
) ([]byte, int) {
	if r.step > 0 || len(replies) == 0 {
		return dst, 0
	}
	r.step = 1
	if over(replies[0].Text, s.limiter.spec.Limit) {
		tally[plan.TallyDenied]++
	} else {
		tally[plan.TallyAllowed]++
	}
	if replies[0].Text != "1" {
		return dst, 0
	}
	return s.appendExpire(dst, r), 1
}

func (s *rateLimiterSource) appendExpire(dst []byte, r *Request) []byte {
	dst = append(dst, s.limiter.pexpire...)
	dst = appendNumber(dst, s.limiter.prefix, r.Key)
	return appendNumber(dst, "", s.limiter.spec.Window.Milliseconds())
}

// over reports whether a decimal number is above the limit.
func over(digits string, limit int64) bool {
	n := int64(0)
	for _, c := range []byte(digits) {
		if n = n*10 + int64(c-'0'); n > limit {
			return true
		}
	}
	return false
}
