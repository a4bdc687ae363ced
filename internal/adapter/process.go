package adapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// endWithin is how long an adapter may take to exit once its session has been closed.
const endWithin = 5 * time.Second

// Process is an adapter that runs as a process on this machine, with the session that it serves.
type Process struct {
	*Session
	command *exec.Cmd
	dir     string        // of the socket
	exited  chan struct{} // closed once state is set
	state   error         // of the process
	words   lastWords
}

// Start runs the program of an adapter and waits for its hello. Close ends it. Errors are *Failure,
// ctx's, and about the program and its socket.
func Start(ctx context.Context, command []string, o Options) (*Process, error) {
	dir, err := os.MkdirTemp("", "redquake-adapter-")
	if err != nil {
		return nil, err
	}
	p := &Process{dir: dir, exited: make(chan struct{})}
	if err := p.start(ctx, command, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Process) start(ctx context.Context, command []string, o Options) error {
	path := filepath.Join(p.dir, "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	defer listener.Close()
	p.command = exec.Command(command[0], append(command[1:len(command):len(command)], path)...)
	p.command.Stdout, p.command.Stderr = &p.words, &p.words
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.command.WaitDelay = time.Second // if a child of it holds its output
	if err := p.command.Start(); err != nil {
		p.command = nil
		return &Failure{What: "does not start", Err: err}
	}
	go func() {
		p.state = p.command.Wait()
		close(p.exited)
		_ = listener.Close()
	}()
	conn, err := accept(ctx, listener)
	if err == nil {
		p.Session, err = Open(ctx, conn, o)
		if err != nil {
			_ = conn.Close()
		}
	}
	return p.explain(err)
}

// accept waits for one connection.
func accept(ctx context.Context, listener net.Listener) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helloWithin,
		&Failure{What: fmt.Sprintf("did not connect within %s", helloWithin)})
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return conn, err
}

// Err is why the session ended by itself, with the end and the last words of the process if it has
// exited; nil if it has not, or was closed.
func (p *Process) Err() error {
	return p.explain(p.Session.Err())
}

// explain adds what became of the process to an error that its end may have caused.
func (p *Process) explain(err error) error {
	var failure *Failure
	if err == nil || p.command == nil ||
		!errors.As(err, &failure) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	if failure != nil && failure.What != closedConnection {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(endWithin): // it has only closed its connection
		return err
	}
	what := "has exited"
	if p.state != nil {
		what = "has ended with " + p.state.Error()
	}
	explained := &Failure{What: what, Err: p.words.err()}
	if failure != nil {
		explained.Driver = failure.Driver
	}
	return explained
}

// Close ends the session and the process, by force if it does not end by itself.
func (p *Process) Close() {
	if p.Session != nil {
		p.Session.Close()
	}
	if p.command != nil {
		patience := time.NewTimer(endWithin)
		defer patience.Stop()
		if p.Session == nil {
			patience.Reset(0)
		}
		select {
		case <-p.exited:
		case <-patience.C:
		}
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // also what it left behind
		<-p.exited
	}
	_ = os.RemoveAll(p.dir)
}

// ExitError is how the process ended after Close: nil if it exited with 0.
func (p *Process) ExitError() error {
	<-p.exited
	return p.state
}

// lastWords keeps the end of what a process writes.
type lastWords struct {
	mu   sync.Mutex
	kept []byte
}

// mostWords is how much of it is kept.
const mostWords = 2000

// Write is a part of io.Writer.
func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, p[max(len(p)-mostWords, 0):]...)
	if len(w.kept) > mostWords {
		w.kept = append(w.kept[:0], w.kept[len(w.kept)-mostWords:]...)
	}
	return len(p), nil
}

// err is the last line as an error; nil if there is none.
func (w *lastWords) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(w.kept), []byte("\n"))
	line := strings.ToValidUTF8(string(bytes.TrimSpace(lines[len(lines)-1])), "?")
	if line == "" {
		return nil
	}
	return errors.New(line)
}
