package goclients

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/adapter/wire"
)

// silent discards go-redis' log, which writes every failed dial to standard error: the agent gets
// the errors of requests.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { goredis.SetLogger(silent{}) })

// goRedis is a client of go-redis.
type goRedis struct {
	client goredis.UniversalClient
	used   any // the client's options, a pointer to a struct
}

// setByTarget are options of both libraries that the settings determine.
var setByTarget = []string{
	"Network", "Addr", "Addrs", "MasterName", "SentinelAddrs", "Username", "Password", "SentinelUsername",
	"SentinelPassword", "DB", "TLSConfig", "Sentinel", "InitAddress", "SelectDB",
}

func connectGoRedis(s *wire.Settings, o Options, seen *presence) (library, *wire.Refusal) {
	silence()
	encryption, refusal := tlsConfig(s.TLS)
	if refusal != nil {
		return nil, refusal
	}
	switch s.Topology {
	case wire.Standalone:
		own := &goredis.Options{
			Addr:      s.Addresses[0],
			Username:  s.Username,
			Password:  s.Password,
			DB:        s.Database,
			TLSConfig: encryption,
			Dialer:    o.Dial,
		}
		if refusal := assign(own, s.Options, setByTarget); refusal != nil {
			return nil, refusal
		}
		seen.overlooked(own.MinIdleConns > 0) // they are opened before the hook is there
		client := goredis.NewClient(own)
		client.AddHook(dialing{seen})
		return &goRedis{client, client.Options()}, nil
	case wire.Sentinel:
		own := &goredis.FailoverOptions{
			MasterName:       s.PrimaryName,
			SentinelAddrs:    s.Addresses,
			SentinelUsername: s.SentinelUsername,
			SentinelPassword: s.SentinelPassword,
			Username:         s.Username,
			Password:         s.Password,
			DB:               s.Database,
			TLSConfig:        encryption,
			Dialer:           o.Dial,
		}
		if refusal := assign(own, s.Options, setByTarget); refusal != nil {
			return nil, refusal
		}
		seen.overlooked(own.MinIdleConns > 0)
		client := goredis.NewFailoverClient(own)
		client.AddHook(dialing{seen})
		return &goRedis{client, client.Options()}, nil
	case wire.Cluster:
		own := &goredis.ClusterOptions{
			Addrs:     s.Addresses,
			Username:  s.Username,
			Password:  s.Password,
			TLSConfig: encryption,
			Dialer:    o.Dial,
		}
		if refusal := assign(own, s.Options, setByTarget); refusal != nil {
			return nil, refusal
		}
		seen.overlooked(own.MinIdleConns > 0)
		client := goredis.NewClusterClient(own)
		client.OnNewNode(func(node *goredis.Client) { node.AddHook(dialing{seen}) })
		return &goRedis{client, client.Options()}, nil
	}
	return nil, unknownTopology(s.Topology)
}

func unknownTopology(t wire.Topology) *wire.Refusal {
	return &wire.Refusal{
		Kind:    wire.Invalid,
		Field:   "topology",
		Message: "the topology " + string(t) + " is not known",
	}
}

// dialing counts the connections of a client, which opens them as it always does.
type dialing struct{ seen *presence }

// DialHook is a part of go-redis' interface Hook.
func (d dialing) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return d.seen.counted(conn), nil
	}
}

// ProcessHook changes nothing.
func (dialing) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

// ProcessPipelineHook changes nothing.
func (dialing) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (g *goRedis) perform(ctx context.Context, commands [][][]byte) ([]any, error) {
	sent := make([]*goredis.Cmd, len(commands))
	for i, words := range commands {
		args := make([]any, len(words))
		for j, word := range words {
			args[j] = word
		}
		args[0] = string(words[0]) // by which go-redis finds the key
		sent[i] = goredis.NewCmd(ctx, args...)
	}
	var err error
	if len(sent) == 1 {
		err = g.client.Process(ctx, sent[0])
	} else {
		pipe := g.client.Pipeline()
		for _, c := range sent {
			_ = pipe.Process(ctx, c)
		}
		_, err = pipe.Exec(ctx)
	}
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	replies := make([]any, len(sent))
	for i, c := range sent {
		if err := c.Err(); err != nil && !errors.Is(err, goredis.Nil) {
			replies[i] = err // of a pipeline whose first failure was a null reply
			continue
		}
		replies[i] = plain(c.Val())
	}
	return replies, nil
}

// plain converts a reply to what the protocol has.
func plain(v any) any {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = plain(v[i])
		}
		return items
	case map[any]any:
		items := make([]any, 0, 2*len(v))
		for key, value := range v {
			items = append(items, plain(key), plain(value))
		}
		return items
	case map[string]any: // of rueidis
		items := make([]any, 0, 2*len(v))
		for key, value := range v {
			items = append(items, []byte(key), plain(value))
		}
		return items
	case interface{ String() string }: // a big number
		return []byte(v.String())
	case error:
		return []byte(v.Error()) // within a reply
	}
	return v
}

func (g *goRedis) reply(err error) string {
	if reply, ok := errors.AsType[goredis.Error](err); ok {
		return reply.Error()
	}
	return ""
}

func (g *goRedis) classify(err error) wire.OutcomeClass {
	if g.reply(err) != "" {
		return wire.ClassReply
	}
	if errors.Is(err, goredis.ErrPoolTimeout) {
		return wire.ClassTimeout
	}
	return classOf(err)
}

// classOf returns the class of an error that is no reply.
func classOf(err error) wire.OutcomeClass {
	var network net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled), errors.As(err, &network) && network.Timeout():
		return wire.ClassTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network),
		errors.Is(err, net.ErrClosed):
		return wire.ClassLost
	}
	return wire.ClassOther
}

func (g *goRedis) options() map[string]string {
	return inForce(g.used, setByTarget)
}

func (g *goRedis) close() {
	_ = g.client.Close()
}
