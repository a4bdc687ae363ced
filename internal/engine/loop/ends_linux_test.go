package loop

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

// TestEndsAreSeenAtOnce: the end of a connection that arrives together with data is seen, although a read returned less
// than it asked for: the socket reports nothing any more.
func TestEndsAreSeenAtOnce(t *testing.T) {
	authority := httptest.NewTLSServer(nil)
	defer authority.Close()
	for _, tt := range []struct {
		name, reply string
		secured     bool
		ok          uint64
	}{
		{name: "a part of a reply", reply: "$100\r\nabc"},
		{name: "a part of a reply, TLS", reply: "$100\r\nabc", secured: true},
		{name: "a reply", reply: "+OK\r\n", ok: 1},
		{name: "a reply, TLS", reply: "+OK\r\n", secured: true, ok: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, size := fixedPlan(1)
			p.Client.RequestTimeout = time.Minute
			address := tcptest.Listen(t, func(raw net.Conn) {
				go answerAndEnd(raw, size, tt.reply, tt.secured, authority.TLS.Certificates)
			})
			l := served(t, p, address, 0)
			c := l.conns[0]
			if tt.secured {
				c.disconnect()
				raw, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				secured := tls.Client(socket.Stamped(raw), &tls.Config{InsecureSkipVerify: true})
				if err := secured.HandshakeContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.Adopt(dial.Line{Conn: secured, Address: address})
			}
			c.pool.free, c.free = connRing{}, false
			c.release()
			l.demand.(*batches).left = 1
			began := time.Now()
			l.Serve(t.Context())
			if took := time.Since(began); took > p.Client.RequestTimeout/2 {
				t.Errorf("the end was seen after %s", took)
			}
			op := l.run.Recorder.Close(0).Ops[0]
			if op.OK != tt.ok || op.Errors[record.ClassReset] != 1-tt.ok || op.Sent != 1 {
				t.Errorf("%+v", op.Counts)
			}
		})
	}
}

// answerAndEnd replies to size bytes, in one segment with the end of the connection.
func answerAndEnd(raw net.Conn, size int, reply string, secured bool, as []tls.Certificate) {
	defer raw.Close()
	c := raw
	if secured {
		c = tls.Server(raw, &tls.Config{Certificates: as})
	}
	if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
		return
	}
	control, err := raw.(*net.TCPConn).SyscallConn()
	if err != nil {
		return
	}
	_ = control.Control(func(fd uintptr) { // without it the end comes later, at most
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1)
	})
	_, _ = c.Write([]byte(reply)) // the client may have left
}
