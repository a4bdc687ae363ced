package probe

import (
	"sync"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/socket"
)

// mailbox holds what other goroutines tell a loop, and wakes it up.
type mailbox struct {
	mu     sync.Mutex
	list   []note
	closed bool
	poll   socket.Poller // nil before Open
}

// note tells that a connection was dialled, or that a dial failed; or what a pump has read.
type note struct {
	prober  *Prober
	arrival *arrival // that waited for the dial
	line    dial.Line

	conn  *probeConn // of a pump; nil = of a dial
	piece *socket.Piece

	err error
}

// notify delivers a note. Once the mailbox is closed, it closes the connection.
func (m *mailbox) notify(n note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		n.release()
		return
	}
	m.list = append(m.list, n)
	if m.poll != nil && len(m.list) == 1 {
		m.poll.Wake()
	}
}

// nudge wakes the loop up.
func (m *mailbox) nudge() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.poll != nil && !m.closed {
		m.poll.Wake()
	}
}

// take returns the notes so far.
func (m *mailbox) take() []note {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.list
	m.list = nil
	return list
}

// close closes the poller and the connections that nobody has taken.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	for i := range m.list {
		m.list[i].release()
	}
	m.list = nil
	if m.poll != nil {
		m.poll.Close()
	}
}

// release frees what the note carries.
func (n *note) release() {
	if n.piece != nil {
		n.piece.Release()
	}
	if n.line.Conn != nil {
		_ = n.line.Close()
	}
}
