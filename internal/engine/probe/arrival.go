package probe

import (
	"errors"
	"net"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

// arrival is a request of the probe until its outcome is recorded. All instants are nanoseconds
// since the start.
type arrival struct {
	due      int64
	began    int64 // when it was sent, or a connection was dialled for it
	sent     int64 // 0 = not yet
	request  []byte
	followed bool // it was sent once more to the server that a reply named
	ask      bool // that server has to be asked with ASKING
}

// start sends an arrival over an idle connection, or dials one for it.
func (p *Prober) start(a *arrival) {
	p.gaps.Begin(1, a.began)
	if c := p.takeIdle(); c != nil {
		p.send(c, a)
	} else {
		p.dial(p.dialing, p.dialer(), a)
	}
}

// send writes the request of an arrival.
func (p *Prober) send(c *probeConn, a *arrival) {
	now := p.run.Now()
	if a.sent == 0 {
		a.sent = now
		p.settle(now, func(s *interval.Partial) { s.Sent(0, len(a.request)) })
	}
	out := a.request
	if c.asking = a.ask; a.ask {
		out = append(route.Asking[:len(route.Asking):len(route.Asking)], out...)
	}
	c.arrival, c.deadline, c.looked = a, now+p.run.Timeout, false
	p.flying = append(p.flying, c)
	p.write(c, out)
}

// replied handles the reply to an arrival, of which nothing is in flight any more. last tells that
// nothing was read behind it.
func (p *Prober) replied(c *probeConn, a *arrival, reply resp.Reply, stamp int64, last bool) {
	if reply.Class == record.ClassMoved && reply.Kind == resp.Error && p.follow(c, a) {
		return
	}
	read := p.run.Now()
	lo, at := p.arrived(a, stamp, read)
	if !last {
		lo = a.sent
	}
	outcome := gaps.Receipt{
		Hi:     at,
		Lo:     lo,
		Surely: lo,
		Since:  a.began,
		Sent:   a.began,
	}
	renew := false
	switch {
	case at-a.sent > p.run.Timeout:
		outcome.Failed = 1
		p.settle(at, func(s *interval.Partial) {
			s.Unknown(0, at, record.ClassTimeout, at-a.due, reply.Bytes)
			p.failed(s)
		})
	case reply.Kind == resp.Error:
		outcome.Failed = 1
		p.settle(at, func(s *interval.Partial) {
			s.Fail(0, at, reply.Class, at-a.due, reply.Bytes)
			p.failed(s)
		})
		renew = p.onErrorReply(c, reply.Class, at)
	default:
		outcome.OK = 1
		p.settle(at, func(s *interval.Partial) {
			s.OK(0, at, at-a.due, at-a.sent, uint64(reply.Bytes), 1)
			p.succeeded(s)
		})
	}
	p.gaps.End(1, outcome, read)
	if renew {
		p.lose(c, nil)
	} else {
		p.putIdle(c)
	}
}

// arrived returns between which instants a reply arrived that was read at the instant read.
func (p *Prober) arrived(a *arrival, stamp, read int64) (lo, hi int64) {
	p.wall.Refresh(&p.run.Clock, read)
	at, exact := p.wall.Arrived(&p.run.Clock, stamp, a.sent, read)
	if !exact {
		return a.sent, read
	}
	return max(at, a.sent), max(at, a.sent)
}

// broken records an arrival whose connection broke with its request in flight.
func (p *Prober) broken(a *arrival, err error) {
	at, class := p.run.Now(), dial.LossClass(err)
	p.noteFailure(a, at, class)
	p.settle(at, func(s *interval.Partial) {
		s.Unknown(0, at, class, at-a.due, 0)
		p.failed(s)
	})
}

// unsent records an arrival for which no connection could be established.
func (p *Prober) unsent(a *arrival, err error) {
	at, waited := p.run.Now(), dial.ClassOf(err)
	timeout, ok := errors.AsType[net.Error](err)
	if ok && timeout.Timeout() {
		waited = record.ClassTimeout // a request that waits for a connection is in flight, too
	}
	p.noteFailure(a, at, waited)
	p.settle(at, func(s *interval.Partial) {
		if p.aborted() {
			s.Dropped(0)
		} else {
			s.Fail(0, at, dial.ClassOf(err), at-a.due, 0)
			p.failed(s)
		}
	})
}

// noteFailure notes for the gap log that a request failed without a reply.
func (p *Prober) noteFailure(a *arrival, at int64, class record.Class) {
	switch {
	case p.aborted():
		p.gaps.End(1, gaps.Receipt{}, at)
	case class == record.ClassTimeout: // it was in flight all the time
		p.gaps.End(1, gaps.Receipt{
			Hi:     at,
			Lo:     at,
			Sent:   a.began,
			Failed: 1,
		}, at)
	default:
		p.gaps.Broken(1, 0, a.began, at)
	}
}

// aborted reports whether the run was aborted.
func (p *Prober) aborted() bool {
	return p.dialing.Err() != nil
}

func (p *Prober) succeeded(s *interval.Partial) {
	if p.number != WholeTarget {
		s.Shard(p.number).OK++
	}
}

func (p *Prober) failed(s *interval.Partial) {
	if p.number != WholeTarget {
		s.Shard(p.number).Errors++
	}
}

func (p *Prober) settle(at int64, write func(*interval.Partial)) {
	s, _ := p.run.Recorder.Probe.Lock(at)
	write(s)
	p.run.Recorder.Probe.Unlock()
}
