package topology

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// refusal is an error reply that was read outside of go-redis; IsReply knows it.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError marks it as a reply.
func (refusal) RedisError() {}

// Queue implements Servers.
func (r *Real) Queue(ctx context.Context, key, address string, login Login, commands [][]string) error {
	r.mu.Lock()
	_, queued := r.queues[key]
	r.mu.Unlock()
	if queued {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, login.timeout())
	defer cancel()
	conn, err := dialQueue(ctx, address, login)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", address, err)
	}
	replies := bufio.NewReader(conn)
	if err := enqueue(ctx, conn, replies, login, commands); err != nil {
		_ = conn.Close()
		return fmt.Errorf("%s at %s: %w", commands[0][0], address, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, queued := r.queues[key]; queued { // another call was faster
		return conn.Close()
	}
	r.queues[key] = conn
	go r.workOff(key, conn, replies, len(commands)-1)
	return nil
}

// enqueue logs in, writes all commands in one go, and reads the reply to the first.
func enqueue(ctx context.Context, conn net.Conn, replies *bufio.Reader, login Login, commands [][]string) error {
	expire := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	var out []byte
	expected := 1
	if login.Password != "" {
		auth := []string{"AUTH", login.Username, login.Password}
		if login.Username == "" {
			auth = []string{"AUTH", login.Password}
		}
		out, expected = resp.AppendCommand(out, auth...), 2
	}
	for _, words := range commands {
		out = resp.AppendCommand(out, words...)
	}
	_, err := conn.Write(out)
	for ; err == nil && expected > 0; expected-- {
		var v resp.Value
		if v, err = resp.ReadValue(replies); err == nil && v.IsError() {
			err = refusal(v.Text)
		}
	}
	if !expire() && err == nil { // the time ran out just now, and the connection has no future
		err = context.Cause(ctx)
	}
	if err != nil && ctx.Err() != nil && !IsReply(err) {
		return context.Cause(ctx)
	}
	return err
}

// workOff reads the other replies until the last came or the connection ended, and forgets the queue.
func (r *Real) workOff(key string, conn net.Conn, replies *bufio.Reader, left int) {
	for ; left > 0; left-- {
		if _, err := resp.ReadValue(replies); err != nil {
			break
		}
	}
	_ = conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queues[key] == conn {
		delete(r.queues, key)
	}
}

// Queued implements Servers.
func (r *Real) Queued(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queues[key] != nil
}

// HangUp implements Servers.
func (r *Real) HangUp(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if conn := r.queues[key]; conn != nil {
		_ = conn.Close()
		delete(r.queues, key)
	}
}

func dialQueue(ctx context.Context, address string, login Login) (net.Conn, error) {
	if login.TLS != nil {
		return (&tls.Dialer{Config: login.TLS}).DialContext(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}
