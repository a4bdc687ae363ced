package probe

import (
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/record"
)

// follow sends an arrival, as the load does, once more to the server that a reply names; false if
// the reply is its outcome.
func (p *Prober) follow(c *probeConn, a *arrival) bool {
	to := route.ParseRedirection(c.scan.Message(), c.address)
	if a.followed || to == nil || to.Kind == route.TryAgain || p.run.Routes.Tracker == nil {
		return false
	}
	var dialer *dial.Dialer
	switch {
	case to.Kind == route.Moved:
		if !p.run.Routes.Tracker.Moved(to.Slot, to.To) {
			return false
		}
		p.lose(c, nil)
		dialer = p.dialer()
	case to.To == "":
		p.run.Routes.Refresh("ASK names no server")
		return false
	default: // the slot is being moved: the next request is for this server again
		p.putIdle(c)
		dialer = p.run.Routes.DialerTo(route.Place{Address: to.To}, 0)
	}
	a.followed, a.ask = true, to.Kind == route.Ask
	p.dial(p.dialing, dialer, a)
	return true
}

// onErrorReply handles an error reply and reports whether the connection must be replaced: it leads
// to a server that was demoted and did not close its clients' connections. The topology is
// refreshed.
func (p *Prober) onErrorReply(c *probeConn, class record.Class, at int64) bool {
	routes := &p.run.Routes
	switch class {
	case record.ClassMoved:
		to := route.ParseRedirection(c.scan.Message(), c.address)
		if to != nil && to.Kind == route.Moved && routes.Tracker != nil {
			routes.Tracker.Moved(to.Slot, to.To)
		}
	case record.ClassReadOnly:
		routes.Refresh("the probe received READONLY")
	default:
		return false
	}
	if at-p.renewed < route.RenewEvery && !p.leadsElsewhere(c) {
		return false
	}
	p.renewed = at
	return true
}

// leadsElsewhere reports whether a connection leads to a server other than the shard's current
// primary.
func (p *Prober) leadsElsewhere(c *probeConn) bool {
	primary := p.primary()
	return primary != "" && primary != c.address
}

func (p *Prober) dialer() *dial.Dialer {
	return p.run.Routes.DialerTo(route.Place{Shard: p.shard()}, 0)
}
