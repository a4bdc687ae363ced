//go:build integration

package accuracy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/internal/testing/await"
)

// wire captures the loopback interface. It tells when a server answers again, whatever the load generator does
// meanwhile.
type wire struct {
	fd    int
	port  uint16 // the server's
	fails bool   // the server breaks by replying to writes with an error: only a write's OK is an answer
}

// refusal is the longest time after which a reply to a client that has given its request up is refused with RST. If its
// socket is closed, the receiver's kernel does it in the sender's system call, on loopback. Where the time for the
// request ends just then, the client closes it when it gets a CPU.
const refusal = 30 * time.Millisecond

// tap opens the capture; it takes root, of its network namespace at least.
func tap(address string) (*wire, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, err
	}
	// Only a socket for all protocols is given what is sent. One that is bound before it has any need not wait for all
	// CPUs (synchronize_net).
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	buffer := unix.SO_RCVBUFFORCE
	if os.Getenv(ownNetwork) != "" {
		buffer = unix.SO_RCVBUF // up to the limit of the system, which only its root may exceed
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, buffer, 128<<20),
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, segmentsOf(uint32(port))),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: loopback.Index}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up the packet socket: %w", err), unix.Close(fd))
	}
	return &wire{fd: fd, port: uint16(port)}, nil
}

// segmentsOf passes the first 128 bytes of the TCP segments from and to a port, so that other traffic cannot overflow
// the socket's buffer.
func segmentsOf(port uint32) *unix.SockFprog {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9}, // the protocol
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_TCP, Jf: 6},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH}, // the length of the IP header
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND},  // the source port
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: port, Jt: 2},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 2}, // the destination port
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: port, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 128},
		{Code: unix.BPF_RET | unix.BPF_K},
	}
	return &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
}

func (w *wire) close() { _ = unix.Close(w.fd) }

// silence is the time in which a server answered nobody.
type silence struct {
	// since when a request had been waiting when it began, or when the first one failed; zero = neither before it was over
	waited   time.Time
	answered time.Time // the first answer after it to a request of a client that still waited
}

// talk is what the capture shows of one connection until the server is restored.
type talk struct{ asked, answered time.Time }

// hear reads the capture: the silence before the first answer after an instant, at which the server was restored.
func (w *wire) hear(restored time.Time, within time.Duration) (silence, error) {
	type answer struct {
		to uint16
		at time.Time
	}
	var answers []answer
	var failed time.Time
	talks := map[uint16]*talk{}
	for limit := time.Now().Add(within); time.Now().Before(limit); {
		p, ok := w.next()
		now := p.at // this thread may not have run for a while: what came meanwhile is still to be read
		if p.at.IsZero() {
			now = time.Now()
		}
		switch {
		case !ok:
		case p.at.Before(restored):
			note(talks, w.port, p)
			if failed.IsZero() && p.from == w.port && p.failure {
				failed = p.at
			}
			continue
		case p.reset && p.to == w.port:
			answers = slices.DeleteFunc(answers, func(a answer) bool { return a.to == p.from })
		case p.data && p.from == w.port && !p.greeting && (p.ok || !w.fails):
			answers = append(answers, answer{p.to, p.at})
		}
		if len(answers) > 0 && now.Sub(answers[0].at) > refusal {
			if w.fails {
				return silence{failed, answers[0].at}, nil
			}
			return silence{waitingSince(talks), answers[0].at}, nil
		}
	}
	return silence{}, fmt.Errorf("nothing was answered from port %d within %v", w.port, within)
}

// note keeps of each connection the last answer and the first request after it.
func note(talks map[uint16]*talk, server uint16, p packet) {
	client := p.from
	if p.from == server {
		client = p.to
	}
	c := talks[client]
	if c == nil {
		c = &talk{}
		talks[client] = c
	}
	switch {
	case !p.data:
	case p.from == server:
		*c = talk{answered: p.at}
	case c.asked.IsZero():
		c.asked = p.at
	}
}

// waitingSince is when the first of the requests without an answer was sent, or when the server answered another client
// last, if that is later.
func waitingSince(talks map[uint16]*talk) time.Time {
	var asked, answered time.Time
	for _, c := range talks {
		if !c.asked.IsZero() && (asked.IsZero() || c.asked.Before(asked)) {
			asked = c.asked
		}
		if c.answered.After(answered) {
			answered = c.answered
		}
	}
	if !asked.IsZero() && answered.After(asked) {
		return answered
	}
	return asked
}

// packet is a TCP segment that arrived.
type packet struct {
	at          time.Time
	from, to    uint16
	data, reset bool
	greeting    bool // the data begins as the reply to HELLO: with a map
	ok, failure bool // the data begins with OK, or with an error
}

// next reads one segment, for at most 1 ms. at is zero if there was none.
func (w *wire) next() (p packet, ok bool) {
	head, control := make([]byte, 128), make([]byte, 128)
	n, controls, _, from, err := unix.Recvmsg(w.fd, head, control, 0)
	if err != nil {
		return p, false
	}
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	if err != nil || len(messages) == 0 || len(messages[0].Data) < 16 {
		return p, false
	}
	stamp := messages[0].Data
	p.at = time.Unix(int64(binary.NativeEndian.Uint64(stamp)), int64(binary.NativeEndian.Uint64(stamp[8:])))
	// Loopback shows each packet twice. As it arrives it has the stamp that its receiver sees, as it leaves one of a
	// microsecond before.
	if link, is := from.(*unix.SockaddrLinklayer); !is || link.Pkttype != unix.PACKET_HOST {
		return p, false
	}
	ip := head[:n]
	if n < 40 || ip[0]>>4 != 4 || ip[9] != unix.IPPROTO_TCP {
		return p, false
	}
	header := int(ip[0]&15) * 4
	if n < header+20 {
		return p, false
	}
	tcp := ip[header:]
	p.from, p.to = binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint16(tcp[2:])
	headers := header + int(tcp[12]>>4)*4
	p.data = int(binary.BigEndian.Uint16(ip[2:])) > headers
	if p.data && n > headers {
		p.greeting, p.ok, p.failure = ip[headers] == '%', bytes.HasPrefix(ip[headers:], []byte("+OK\r\n")), ip[headers] == '-'
	}
	p.reset = tcp[13]&4 != 0
	return p, true
}

// listenIn opens a capture that the test closes, and waits until a reply to a client has the stamp of its arrival: the
// kernel begins to stamp some time after the first socket asked for it, and until then a packet has the time at which it
// is read.
func listenIn(t *testing.T, b breakable, c net.Conn) *wire {
	t.Helper()
	w, err := tap(b.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	await.Until(t, "a reply that was stamped when it came", func() error {
		before := time.Now()
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 16)); err != nil {
			return err
		}
		after := time.Now()
		heard, err := w.hear(before, await.Limit)
		if err != nil {
			return err
		}
		at := heard.answered
		return await.That(!at.Before(before) && !at.After(after), "the reply was captured at %v, it came between %v and %v",
			at, before, after)
	})
	return w
}

// TestWireSeesAnswers checks the capture against a server whose reply is known in time.
func TestWireSeesAnswers(t *testing.T) {
	if inOwnNetwork(t) {
		return
	}
	b := newBreakable(t, stopped)
	c, err := net.Dial("tcp", b.address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	listenIn(t, b, c)
}

// TestWireSeesWaiting checks since when a request waits that a stopped server does not answer.
func TestWireSeesWaiting(t *testing.T) {
	if inOwnNetwork(t) {
		return
	}
	b := newBreakable(t, stopped)
	clients := make([]net.Conn, 2)
	for i := range clients {
		var err error
		if clients[i], err = net.Dial("tcp", b.address()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = clients[i].Close() }()
	}
	w := listenIn(t, b, clients[0])
	b.cut()
	before := time.Now()
	if _, err := clients[1].Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	if _, err := clients[0].Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	await.Pass(20*time.Millisecond, "the time for which the request waits")
	restored := time.Now()
	b.restore()
	heard, err := w.hear(restored, await.Limit)
	if err != nil {
		t.Fatal(err)
	}
	if at := heard.waited; at.Before(before) || at.After(after) {
		t.Errorf("a request waits since %v, it was sent between %v and %v", at, before, after)
	}
	if heard.answered.Before(restored) {
		t.Errorf("answered at %v, before the server was continued at %v", heard.answered, restored)
	}
}
