package probe

import (
	"context"
	"sync/atomic"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

// probeExchange is a request of the probe: the connection that it was last sent on, nil = none
// could be established, and the reply.
type probeExchange struct {
	conn  *probeConn
	reply resp.Reply
	err   error
}

// ask sends a request and, as the load does, once more to the server that the reply names.
func (p *Prober) ask(
	ctx context.Context, c *probeConn, due int64, request []byte, greeting *atomic.Int64,
) probeExchange {
	e := probeExchange{conn: c}
	if e.reply, e.err = p.exchange(ctx, c, request); e.err != nil || e.reply.Kind != resp.Error ||
		e.reply.Class != record.ClassMoved {
		return e
	}
	to := route.ParseRedirection(c.scan.Message(), c.Address)
	if to == nil || to.Kind == route.TryAgain || p.run.Routes.Tracker == nil {
		return e
	}
	var dialer *dial.Dialer
	switch {
	case to.Kind == route.Moved:
		if !p.run.Routes.Tracker.Moved(to.Slot, to.To) {
			return e
		}
		p.discard(c)
		dialer = p.dialer()
	case to.To == "":
		p.run.Routes.Refresh("ASK names no server")
		return e
	default: // the slot is being moved: the next request is for this server again
		p.putIdle(c)
		dialer = p.run.Routes.DialerTo(route.Place{Address: to.To}, 0)
	}
	if e.conn, e.err = p.dialWith(ctx, dialer, due, greeting); e.err != nil {
		e.conn = nil
		return e
	}
	if to.Kind == route.Ask {
		if e.reply, e.err = p.exchange(ctx, e.conn, route.Asking); e.err != nil {
			return e
		}
	}
	e.reply, e.err = p.exchange(ctx, e.conn, request)
	return e
}
