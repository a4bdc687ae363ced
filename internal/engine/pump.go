package engine

import (
	"net"
	"sync"
)

// pump reads and writes a connection that the event loop cannot read itself, because there is no epoll: one goroutine reads, another writes.
type pump struct {
	conn    net.Conn
	mu      sync.Mutex
	changed *sync.Cond
	out     []byte
	closed  bool
}

// newIdlePump returns a pump without a connection and goroutines: what is written stays in it until discard, to measure what the writer costs.
func newIdlePump() *pump {
	p := &pump{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// discard drops what waits to be written.
func (p *pump) discard() { p.out = p.out[:0] }

// newPump starts the goroutines. got is called for every piece that was read, and last with the error that ended reading; it must release the
// piece.
func newPump(c net.Conn, got func(p *piece, err error)) *pump {
	p := &pump{conn: c}
	p.changed = sync.NewCond(&p.mu)
	stamps := stamperOf(c)
	go func() {
		for {
			some := pieces.Get().(*piece)
			n, err := c.Read(some.bytes[:])
			if some.length = n; n > 0 {
				some.arrived = stampOfLast(stamps)
				got(some, nil)
			} else {
				some.release()
			}
			if err != nil {
				got(nil, err)
				return
			}
		}
	}()
	go p.writing()
	return p
}

// piece is the data of one read of a pump.
type piece struct {
	bytes   [4 << 10]byte
	length  int
	arrived int64 // as stamper.Stamp
}

var pieces = sync.Pool{New: func() any { return new(piece) }}

// release returns the piece to the pool.
func (p *piece) release() { pieces.Put(p) }

func (p *pump) writing() {
	var buffer []byte
	for {
		p.mu.Lock()
		for len(p.out) == 0 && !p.closed {
			p.changed.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		buffer, p.out = p.out, buffer[:0]
		p.mu.Unlock()
		if _, err := p.conn.Write(buffer); err != nil {
			return // the reading goroutine gets the error as well
		}
	}
}

// write queues b and returns without waiting for the write.
func (p *pump) write(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = append(p.out, b...)
	p.changed.Signal()
}

func (p *pump) close() {
	p.mu.Lock()
	p.closed = true
	p.changed.Signal()
	p.mu.Unlock()
	_ = p.conn.Close()
}
