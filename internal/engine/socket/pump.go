package socket

import (
	"net"
	"sync"
)

// Pump reads and writes a connection that the event loop cannot read itself, because there is no
// epoll: one goroutine reads, another writes.
type Pump struct {
	conn    net.Conn
	mu      sync.Mutex
	changed *sync.Cond
	out     []byte
	closed  bool
}

// NewIdlePump returns a pump without a connection and goroutines: what is written stays in it until
// discard, to measure what the writer costs.
func NewIdlePump() *Pump {
	p := &Pump{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// Discard drops what waits to be written.
func (p *Pump) Discard() {
	p.out = p.out[:0]
}

// NewPump starts the goroutines. got is called for every piece that was read, and last with the
// error that ended reading; it must release the piece.
func NewPump(c net.Conn, got func(p *Piece, err error)) *Pump {
	p := &Pump{conn: c}
	p.changed = sync.NewCond(&p.mu)
	stamps := StamperOf(c)
	go func() {
		for {
			some := pieces.Get().(*Piece)
			n, err := c.Read(some.Bytes[:])
			if some.Length = n; n > 0 {
				some.Arrived = LastStamp(stamps)
				got(some, nil)
			} else {
				some.Release()
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

// Piece is the data of one read of a pump.
type Piece struct {
	Bytes   [4 << 10]byte
	Length  int
	Arrived int64 // as stamper.Stamp
}

var pieces = sync.Pool{New: func() any { return new(Piece) }}

// Release returns the piece to the pool.
func (p *Piece) Release() {
	pieces.Put(p)
}

func (p *Pump) writing() {
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

// Write queues b and returns without waiting for the write.
func (p *Pump) Write(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = append(p.out, b...)
	p.changed.Signal()
}

// Close closes the connection and ends the goroutines.
func (p *Pump) Close() {
	p.mu.Lock()
	p.closed = true
	p.changed.Signal()
	p.mu.Unlock()
	_ = p.conn.Close()
}
