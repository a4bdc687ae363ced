package socket

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
)

// TLS reads and writes a socket with TLS in an event loop: crypto/tls on a connection that never
// blocks. It keeps the beginning of a record until the rest arrives, as an error that is temporary
// does not end a tls.Conn.
type TLS struct {
	conn    *tls.Conn
	below   *stampedConn
	socket  FD
	whole   bool   // read until there is nothing more
	drained bool   // the last read returned all that there was
	out     []byte // encrypted, to be sent
}

// TLSOf returns the TLS connection that an event loop can take over, and the TCP connection below
// it; nil if c is no such connection.
func TLSOf(c net.Conn) (*TLS, *net.TCPConn) {
	secured, ok := c.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	below, ok := secured.NetConn().(*stampedConn)
	if !ok {
		return nil, nil
	}
	return &TLS{conn: secured, below: below}, below.TCPConn
}

// Take makes the connection read and write a socket, which is a duplicate of its own.
func (t *TLS) Take(s FD) {
	t.socket, t.below.taken = s, t
}

// Read decrypts what has arrived: at most one record, or errAgain if none is complete. It returns
// the stamp of the last byte that was read. After begin it must be called until errAgain.
func (t *TLS) Read(p []byte) (n int, stamp int64, err error) {
	n, err = t.conn.Read(p)
	if errors.Is(err, errWait) {
		return 0, 0, ErrAgain
	}
	return n, t.below.Stamp(), err
}

// Begin notes that data may have arrived. ended is that of the event: of a connection that has ended,
// even a read of less than was asked for does not tell that there is nothing more.
func (t *TLS) Begin(ended bool) {
	t.drained, t.whole = false, ended
}

// Seal encrypts p and returns what must be sent. It is valid until the next call.
func (t *TLS) Seal(p []byte) ([]byte, error) {
	_, err := t.conn.Write(p)
	out := t.out
	t.out = t.out[:0]
	return out, err
}

// Close closes the socket and tells the server so, as far as that is possible without waiting.
func (t *TLS) Close() {
	t.out = t.out[:0]
	if t.conn.CloseWrite() == nil {
		_, _ = t.socket.Write(t.out)
	}
	t.socket.Close()
}

// receive reads what crypto/tls asks for, without waiting for it.
func (t *TLS) receive(p []byte) (int, error) {
	if t.drained { // as of an edge-triggered event
		return 0, errWait
	}
	n, stamp, err := t.below.receiver.Read(t.socket, p)
	switch {
	case err == ErrAgain: //nolint:errorlint // a bare errno, on the hot path
		t.drained = true
		return 0, errWait
	case err != nil:
		return 0, os.NewSyscallError("recvmsg", err)
	case n == 0:
		return 0, io.EOF
	}
	t.drained = n < len(p) && !t.whole
	t.below.stamp.Store(stamp)
	return n, nil
}

// collect keeps what crypto/tls sends.
func (t *TLS) collect(p []byte) int {
	t.out = append(t.out, p...)
	return len(p)
}

// errWait tells crypto/tls that the rest of a record has not arrived yet.
var errWait net.Error = notYet{}

type notYet struct{}

func (notYet) Error() string {
	return "the rest of the record has not arrived yet"
}

func (notYet) Timeout() bool {
	return true
}

func (notYet) Temporary() bool {
	return true
}
