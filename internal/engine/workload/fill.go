package workload

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Data is written before the start over few connections with deep pipelines.
const (
	fillConnections = 4
	fillCommands    = 256
	fillBytes       = 256 << 10 // maximum size of a batch, unless one command is larger
	fillPatience    = 10 * time.Second
	progressEvery   = 500 * time.Millisecond
)

// Filler writes a workload's data before the start, at pipeline speed.
type Filler struct {
	Pod, Pods int // this pod writes part number Pod of Pods equal parts
	// Dial establishes a connection, ready for commands, to a node as numbered by NodeOf.
	Dial func(ctx context.Context, node int) (net.Conn, error)
	// NodeOf returns the number of the node that serves a slot, from 0; below 0 if none does: its
	// items are left out. nil if there is only node 0, the primary.
	NodeOf func(slot uint16) int
	// Progress is called every half second with the number of items written by this pod; it may be
	// nil.
	Progress func(what string, done, total int64)
}

// FillError is why data could not be written: an error reply, or a connection error.
type FillError struct {
	Step    string // what failed, such as prefill
	Address string
	Command string // its first word
	Reply   string // the error reply, if there was one
	Err     error  // nil if Reply is set
}

func (e *FillError) Error() string {
	if e.Reply != "" {
		return fmt.Sprintf("%s: %s rejects %s: %s", e.Step, e.Address, e.Command, e.Reply)
	}
	return fmt.Sprintf("%s at %s: %v", e.Step, e.Address, e.Err)
}

func (e *FillError) Unwrap() error {
	return e.Err
}

// Data is the data that a workload needs: items 0 to Items-1, over all pods.
type Data struct {
	What    string // plural name of the items, for progress messages
	Items   int64
	Command string // the commands' first word, for errors
	// Encoder returns the encoder of one writer, which begins at item from. The encoder appends one
	// command for some of the items in [item, end); it returns how many, and the slot of the command's
	// key.
	Encoder func(from int64) func(dst []byte, item, end int64) (out []byte, items int64, slot uint16)
	Step    string // what it is part of, in errors; "" = prefill
	// PerSecond is at most how many items this pod writes in a second; 0 = as fast as it goes
	PerSecond float64
	Integers  *atomic.Int64 // the sum of the replies that are integers; nil = it is not wanted
}

// Write writes this pod's part of the data over several connections. It returns the first error, as
// described at Redis.Fill.
func (f *Filler) Write(ctx context.Context, d Data) error {
	from, to := stretch(d.Items, int64(f.Pods), int64(f.Pod))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done atomic.Int64
	var all sync.WaitGroup
	writers := min(fillConnections, max(1, to-from))
	if d.PerSecond > 0 {
		writers = 1
	}
	for i := range writers {
		first, end := stretch(to-from, writers, i)
		w := &writer{
			filler: f,
			data:   &d,
			encode: d.Encoder(from + first),
			lines:  map[int]*line{},
			done:   &done,
		}
		all.Go(func() {
			if err := w.write(ctx, from+first, from+end); err != nil {
				cancel(err)
			}
		})
	}
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		if f.Progress != nil {
			f.Progress(d.What, done.Load(), to-from)
		}
		select {
		case <-finished:
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// stretch returns the range [from, to) of one part when total items are divided into consecutive
// parts whose lengths differ by at most one.
func stretch(total, parts, part int64) (from, to int64) {
	long := total % parts
	from = total/parts*part + min(part, long)
	to = from + total/parts
	if part < long {
		to++
	}
	return from, to
}

// writer writes a range of items over its own connections, one per node.
type writer struct {
	filler *Filler
	data   *Data
	encode func(dst []byte, item, end int64) ([]byte, int64, uint16)
	lines  map[int]*line
	done   *atomic.Int64
}

// line is a connection and the batch that is to be sent over it.
type line struct {
	conn     net.Conn
	in       *bufio.Reader
	stop     func() bool // stops closing the connection when ctx ends
	out      []byte
	commands int
	items    int64
}

func (w *writer) write(ctx context.Context, item, end int64) error {
	defer func() {
		for _, l := range w.lines {
			l.stop()
			_ = l.conn.Close()
		}
	}()
	var one []byte
	for item < end {
		var items int64
		var slot uint16
		one, items, slot = w.encode(one[:0], item, end)
		item += items
		node := 0
		if w.filler.NodeOf != nil {
			node = w.filler.NodeOf(slot)
		}
		if node < 0 {
			w.done.Add(items)
			continue
		}
		l, err := w.line(ctx, node)
		if err != nil {
			return err
		}
		l.out = append(l.out, one...)
		l.commands++
		l.items += items
		if l.commands == fillCommands || len(l.out) >= fillBytes {
			if err := w.flush(ctx, l); err != nil {
				return err
			}
		}
	}
	for _, l := range w.lines {
		if err := w.flush(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// line returns the connection to a node.
func (w *writer) line(ctx context.Context, node int) (*line, error) {
	if l := w.lines[node]; l != nil {
		return l, nil
	}
	c, err := w.filler.Dial(ctx, node)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	l := &line{
		conn: c,
		in:   bufio.NewReaderSize(c, 16<<10),
		stop: context.AfterFunc(ctx, func() { _ = c.Close() }),
	}
	w.lines[node] = l
	return l, nil
}

// flush sends the line's batch and reads its replies.
func (w *writer) flush(ctx context.Context, l *line) error {
	begun := time.Now()
	if err := l.exchange(w.data); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	w.done.Add(l.items)
	if w.data.PerSecond > 0 {
		rest := time.Duration(float64(l.items)/w.data.PerSecond*1e9) - time.Since(begun)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rest):
		}
	}
	l.out, l.commands, l.items = l.out[:0], 0, 0
	return nil
}

func (l *line) exchange(d *Data) error {
	address, command := l.conn.RemoteAddr().String(), d.Command
	step := cmp.Or(d.Step, "prefill")
	broken := func(err error) error {
		return &FillError{
			Step:    step,
			Address: address,
			Command: command,
			Err:     err,
		}
	}
	err := l.conn.SetDeadline(time.Now().Add(fillPatience))
	if err != nil {
		return broken(err)
	}
	if _, err := l.conn.Write(l.out); err != nil {
		return broken(err)
	}
	for range l.commands {
		v, err := resp.ReadValue(l.in)
		if err != nil {
			return broken(err)
		}
		if v.IsError() {
			return &FillError{
				Step:    step,
				Address: address,
				Command: command,
				Reply:   v.Text,
			}
		}
		if d.Integers != nil && v.Type == ':' {
			n, _ := strconv.ParseInt(v.Text, 10, 64)
			d.Integers.Add(n)
		}
	}
	return nil
}
