//go:build integration

package accuracy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wire captures the loopback interface. It tells when a server answers again, whatever the load generator does meanwhile.
type wire struct {
	fd   int
	port uint16 // the server's
}

// refusal is the longest time after which a reply to a socket that its client has closed is refused with RST. On loopback the receiver's kernel does it
// in the sender's system call.
const refusal = 5 * time.Millisecond

// tap opens the capture; it takes root.
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
	// Only a socket for all protocols is given what is sent.
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, segmentsOf(uint32(port))),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: loopback.Index}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up the packet socket: %w", err), unix.Close(fd))
	}
	return &wire{fd, uint16(port)}, nil
}

// segmentsOf passes the first 128 bytes of the TCP segments from and to a port, so that other traffic cannot overflow the socket's buffer.
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

// firstAnswer returns when the server sent the first data after an instant to a client that still waited for it.
func (w *wire) firstAnswer(after time.Time, within time.Duration) (time.Time, error) {
	type answer struct {
		to uint16
		at time.Time
	}
	var answers []answer
	for limit := time.Now().Add(within); time.Now().Before(limit); {
		p, ok := w.next()
		now := time.Now()
		switch {
		case !ok || p.at.Before(after):
		case p.reset && p.to == w.port && len(answers) > 0:
			kept := answers[:0]
			for _, a := range answers {
				if a.to != p.from {
					kept = append(kept, a)
				}
			}
			answers = kept
		case p.data && p.from == w.port:
			answers = append(answers, answer{p.to, p.at})
			now = p.at
		}
		if len(answers) > 0 && now.Sub(answers[0].at) > refusal {
			return answers[0].at, nil
		}
	}
	return time.Time{}, fmt.Errorf("nothing was answered from port %d within %v", w.port, within)
}

// packet is a TCP segment that was sent.
type packet struct {
	at          time.Time
	from, to    uint16
	data, reset bool
}

// next reads one segment, for at most 1 ms.
func (w *wire) next() (p packet, ok bool) {
	head, control := make([]byte, 128), make([]byte, 128)
	n, controls, _, from, err := unix.Recvmsg(w.fd, head, control, 0)
	if err != nil {
		return p, false
	}
	// Loopback shows each packet twice. As it leaves it has the instant at which it was sent, as it arrives that of this call.
	if link, is := from.(*unix.SockaddrLinklayer); !is || link.Pkttype != unix.PACKET_OUTGOING {
		return p, false
	}
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	if err != nil || len(messages) == 0 || len(messages[0].Data) < 16 {
		return p, false
	}
	stamp := messages[0].Data
	p.at = time.Unix(int64(binary.NativeEndian.Uint64(stamp)), int64(binary.NativeEndian.Uint64(stamp[8:])))
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
	p.data = int(binary.BigEndian.Uint16(ip[2:])) > header+int(tcp[12]>>4)*4
	p.reset = tcp[13]&4 != 0
	return p, true
}

// TestWireSeesAnswers checks the capture against a server whose reply is known in time.
func TestWireSeesAnswers(t *testing.T) {
	b := newBreakable(t, stopped)
	c, err := net.Dial("tcp", b.address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	w, err := tap(b.address())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	before := time.Now()
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	at, err := w.firstAnswer(before, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if at.Before(before) || at.After(after) {
		t.Errorf("the reply was captured at %v, it came between %v and %v", at, before, after)
	}
}
