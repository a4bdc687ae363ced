package loop

import "github.com/redquake/redquake/internal/engine/route"

// pool is one loop's connections to one place, and the requests queued for them.
type pool struct {
	place   route.Place
	conns   []*Conn
	free    connRing
	waiting queue
	flying  int // requests in flight
	up      int // connections that are established
}

// pump sends the queued requests over the free connections. The connection that has been free for
// the longest time goes first, so that all are used equally.
func (p *pool) pump() {
	for p.waiting.count > 0 {
		c := p.free.pop()
		if c == nil {
			return
		}
		c.free = false
		switch {
		case c.renewPending:
			c.release()
		case c.up:
			c.send()
		}
	}
}

// dialled reports whether requests wait for a connection that is being dialled: to a server that is
// down, they wait in vain.
func (p *pool) dialled() bool {
	return p.waiting.count > 0 && p.up < len(p.conns)
}

// connRing is a FIFO queue of connections.
type connRing struct {
	ring        []*Conn
	head, count int
}

func (r *connRing) push(c *Conn) {
	if r.count == len(r.ring) {
		ring := make([]*Conn, max(4, 2*len(r.ring)))
		for i := range r.count {
			ring[i] = r.ring[(r.head+i)&(len(r.ring)-1)]
		}
		r.ring, r.head = ring, 0
	}
	r.ring[(r.head+r.count)&(len(r.ring)-1)] = c
	r.count++
}

// pop returns nil if the queue is empty.
func (r *connRing) pop() *Conn {
	if r.count == 0 {
		return nil
	}
	c := r.ring[r.head]
	r.head = (r.head + 1) & (len(r.ring) - 1)
	r.count--
	return c
}
