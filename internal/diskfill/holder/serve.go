//go:build linux

// Package holder is the program in a holder pod that fills a volume: package diskfill has what it is
// asked, and what it answers.
package holder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redquake/redquake/internal/diskfill"
)

// socket is where the program that serves is reached, in the network namespace of its pod: the name
// has no file.
const socket = "@redquake-diskfill"

// topsUp is how often space that others have given back is set aside as well.
const topsUp = 50 * time.Millisecond

// answersWithin limits how long the program waits for itself.
const answersWithin = 10 * time.Second

// message is what one verb asks for.
type message struct {
	Verb  string         `json:"verb"`
	Order diskfill.Order `json:"order"`
}

// reply is the answer.
type reply struct {
	State diskfill.State `json:"state"`
	Error string         `json:"error,omitempty"`
}

// holder is a volume that is filled by order.
type holder struct {
	volume   volume
	order    diskfill.Order
	full     bool
	released bool
	ends     <-chan time.Time // when the volume is freed by itself; nil = it is not full
}

// Serve does what the other verbs say to the volume that is mounted at path, until ctx ends or the
// volume is to be freed.
func Serve(ctx context.Context, path string) error {
	return serve(ctx, socket, path)
}

func serve(ctx context.Context, socket, path string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	conns := make(chan net.Conn)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			select {
			case conns <- conn:
			case <-ctx.Done():
				_ = conn.Close()
			}
		}
	}()
	ticks := time.NewTicker(topsUp)
	defer ticks.Stop()
	h := holder{volume: volume{path: path}}
	for {
		select {
		case <-ctx.Done():
			return h.volume.free()
		case <-h.ends:
			return h.volume.free()
		case <-ticks.C:
			if h.full {
				_ = h.volume.fill(h.order.Leave) // the state says what is left
			}
		case conn := <-conns:
			h.answer(conn)
		}
	}
}

// answer carries out one message.
func (h *holder) answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(answersWithin))
	var asked message
	if err := json.NewDecoder(conn).Decode(&asked); err != nil {
		return
	}
	var out reply
	state, err := h.do(asked)
	out.State = state
	if err != nil {
		out.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(out) // whoever asked is gone
}

func (h *holder) do(asked message) (diskfill.State, error) {
	var err error
	switch asked.Verb {
	case diskfill.VerbCheck:
		err = h.volume.check(asked.Order.Capacity)
	case diskfill.VerbFill:
		err = h.fill(asked.Order)
	case diskfill.VerbRelease:
		h.full, h.released, h.ends = false, true, nil
		err = h.volume.free()
	}
	state := diskfill.State{Released: h.released, Full: h.full}
	if r, refused := errors.AsType[refusal](err); refused {
		state.Refused, err = r.Error(), nil
	}
	if err != nil {
		return state, err
	}
	state.Size, state.Left, err = h.volume.space()
	if err == nil {
		_, state.Held, err = h.volume.extent()
	}
	return state, err
}

// fill fills the volume by an order. One that comes again changes nothing.
func (h *holder) fill(order diskfill.Order) error {
	if h.released || h.full {
		return nil
	}
	if err := order.Check(); err != nil {
		return err
	}
	if err := h.volume.check(order.Capacity); err != nil {
		return err
	}
	h.order = order
	if err := h.volume.fill(order.Leave); err != nil {
		return errors.Join(err, h.volume.free())
	}
	h.full, h.ends = true, time.After(order.For)
	return nil
}

// Ask has the program that serves in the same pod carry out a verb.
func Ask(ctx context.Context, verb string, order diskfill.Order) (diskfill.State, error) {
	return ask(ctx, socket, verb, order)
}

func ask(ctx context.Context, socket, verb string, order diskfill.Order) (diskfill.State, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return diskfill.State{}, fmt.Errorf("nothing serves: %w", err)
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if err := json.NewEncoder(conn).Encode(message{Verb: verb, Order: order}); err != nil {
		return diskfill.State{}, err
	}
	var out reply
	if err := json.NewDecoder(conn).Decode(&out); err != nil {
		return diskfill.State{}, fmt.Errorf("read the answer: %w", err)
	}
	if out.Error != "" {
		return out.State, errors.New(out.Error)
	}
	return out.State, nil
}
