// Package forward makes the dashboard of the manager reachable from this machine: it finds the
// manager that leads, forwards connections to its pod by the API server, and serves them to this
// user's browser alone, with a token by which the manager knows the user.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Tunnel opens connections to the manager that leads.
type Tunnel struct {
	Operator *Operator
	// is called when connections go to another pod than before, or to the first one
	Moved func(pod string)

	mu   sync.Mutex
	pod  string // to which there was last a connection
	to   Manager
	conn httpstream.Connection
	next int // request
}

// Dial opens a connection to the dashboard of the manager that leads; network and address do not
// matter.
func (t *Tunnel) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, to, id, err := t.connection(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := open(conn, to.Port, id)
	if err != nil {
		t.drop(conn)
		return nil, fmt.Errorf("forward a connection to pod %s: %w", to.Pod, err)
	}
	return opened, nil
}

// connection is one to the API server, by which connections to the pod are forwarded. It is opened
// again if it was lost.
func (t *Tunnel) connection(ctx context.Context) (httpstream.Connection, Manager, int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	if t.conn != nil {
		select {
		case <-t.conn.CloseChan():
			t.conn = nil
		default:
			return t.conn, t.to, t.next, nil
		}
	}
	to, err := t.Operator.Leader(ctx)
	if err != nil {
		return nil, Manager{}, 0, err
	}
	conn, err := dial(ctx, t.Operator.config, to)
	if err != nil {
		return nil, Manager{}, 0, err
	}
	t.conn, t.to = conn, to
	if t.pod != to.Pod && t.Moved != nil {
		t.Moved(to.Pod)
	}
	t.pod = to.Pod
	return conn, to, t.next, nil
}

// drop closes a connection that is of no use any more.
func (t *Tunnel) drop(conn httpstream.Connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == conn {
		t.conn = nil
	}
	_ = conn.Close()
}

// Follow closes the connection when another manager leads, until ctx ends: only the leader has the
// records of running loads. The browser then opens another one.
func (t *Tunnel) Follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.conn != nil {
				_ = t.conn.Close()
			}
			return
		case <-tick.C:
		}
		t.mu.Lock()
		conn, to := t.conn, t.to
		t.mu.Unlock()
		if conn == nil {
			continue // nobody looks
		}
		now, err := t.Operator.Leader(ctx)
		if err == nil && now.Pod != to.Pod {
			t.drop(conn)
		}
	}
}

// dial upgrades a connection to the API server: by WebSocket, or by SPDY for servers and proxies
// that know only that.
func dial(ctx context.Context, config *rest.Config, to Manager) (httpstream.Connection, error) {
	address, err := to.address(config)
	if err != nil {
		return nil, err
	}
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
	if err != nil {
		return nil, fmt.Errorf("prepare the port-forward: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the port-forward: %w", err)
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost,
		address)
	dialer := portforward.NewFallbackDialerForStreaming(socket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type result struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf(
				"forward a port to pod %s of namespace %s, which takes the permission to create "+
					"pods/portforward there: %w", to.Pod, to.Namespace, r.err)
		}
		return r.conn, nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.conn != nil {
				_ = r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// forwarded is a connection to a port of a pod.
type forwarded struct {
	httpstream.Stream
	conn   httpstream.Connection
	errs   httpstream.Stream
	failed chan error // receives once, when the connection has ended
}

// open opens a connection to a port.
func open(conn httpstream.Connection, port int32, id int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(id))
	errs, err := conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = errs.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		conn.RemoveStreams(errs)
		return nil, err
	}
	f := &forwarded{
		Stream: data,
		conn:   conn,
		errs:   errs,
		failed: make(chan error, 1),
	}
	go func() {
		message, err := io.ReadAll(io.LimitReader(errs, 4096))
		if len(message) > 0 {
			err = errors.New(string(message))
		}
		f.failed <- err
	}()
	return f, nil
}

// reasonWithin is how long the reason for the end of a connection may take to follow that end.
const reasonWithin = time.Second

// Read implements net.Conn. A connection that the pod has refused ends at once, with the reason.
func (f *forwarded) Read(b []byte) (int, error) {
	n, err := f.Stream.Read(b)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	wait := time.NewTimer(reasonWithin)
	defer wait.Stop()
	select {
	case reason := <-f.failed:
		f.failed <- reason
		if reason != nil {
			return 0, reason
		}
	case <-wait.C:
	}
	return 0, io.EOF
}

// Close implements net.Conn.
func (f *forwarded) Close() error {
	err := f.Reset()
	f.conn.RemoveStreams(f.Stream, f.errs)
	return err
}

type podAddress struct{}

func (podAddress) Network() string {
	return "portforward"
}

func (podAddress) String() string {
	return "the manager"
}

// LocalAddr implements net.Conn.
func (f *forwarded) LocalAddr() net.Addr {
	return podAddress{}
}

// RemoteAddr implements net.Conn.
func (f *forwarded) RemoteAddr() net.Addr {
	return podAddress{}
}

// SetDeadline implements net.Conn. There are none: the connection ends with that to the API server.
func (f *forwarded) SetDeadline(time.Time) error {
	return nil
}

// SetReadDeadline implements net.Conn.
func (f *forwarded) SetReadDeadline(time.Time) error {
	return nil
}

// SetWriteDeadline implements net.Conn.
func (f *forwarded) SetWriteDeadline(time.Time) error {
	return nil
}
