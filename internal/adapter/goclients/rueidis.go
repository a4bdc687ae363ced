package goclients

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/redis/rueidis"

	"github.com/redquake/redquake/internal/adapter/wire"
)

// rueidisClient is a client of rueidis.
type rueidisClient struct {
	client rueidis.Client
	used   *rueidis.ClientOption
}

func connectRueidis(s *wire.Settings, o Options, seen *presence) (library, *wire.Refusal) {
	encryption, refusal := tlsConfig(s.TLS)
	if refusal != nil {
		return nil, refusal
	}
	own := &rueidis.ClientOption{
		InitAddress: s.Addresses,
		Username:    s.Username,
		Password:    s.Password,
		SelectDB:    s.Database,
		TLSConfig:   encryption,
		DialCtxFn:   rueidisDial(o, seen),
	}
	switch s.Topology {
	case wire.Standalone:
		own.InitAddress = s.Addresses[:1]
	case wire.Sentinel:
		own.Sentinel = rueidis.SentinelOption{
			MasterSet: s.PrimaryName,
			Username:  s.SentinelUsername,
			Password:  s.SentinelPassword,
			TLSConfig: encryption,
		}
	case wire.Cluster:
	default:
		return nil, unknownTopology(s.Topology)
	}
	if refusal := assign(own, s.Options, setByTarget); refusal != nil {
		return nil, refusal
	}
	client, err := rueidis.NewClient(*own)
	if err != nil {
		return nil, refusalOf(err.Error())
	}
	return &rueidisClient{client, own}, nil
}

// rueidisDial opens connections as rueidis does by default, and counts them.
func rueidisDial(o Options, seen *presence) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		dial := d.DialContext
		if o.Dial != nil {
			dial = o.Dial
		} else if c != nil {
			dial = (&tls.Dialer{NetDialer: d, Config: c}).DialContext
		}
		conn, err := dial(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return seen.counted(conn), nil
	}
}

func (r *rueidisClient) perform(ctx context.Context, commands [][][]byte) ([]any, error) {
	completed := make([]rueidis.Completed, len(commands))
	for i, words := range commands {
		texts := make([]string, len(words))
		for j, word := range words {
			texts[j] = string(word)
		}
		completed[i] = r.built(texts)
	}
	results := make([]rueidis.RedisResult, 1)
	if len(completed) == 1 {
		results[0] = r.client.Do(ctx, completed[0])
	} else {
		results = r.client.DoMulti(ctx, completed...)
	}
	replies := make([]any, len(commands))
	for i, result := range results {
		v, err := result.ToAny()
		switch {
		case rueidis.IsRedisNil(err):
		case err != nil:
			return nil, err
		default:
			replies[i] = plain(v)
		}
	}
	return replies, nil
}

// built makes a command of its words. rueidis needs to know the key.
func (r *rueidisClient) built(words []string) rueidis.Completed {
	command := r.client.B().Arbitrary(words[0])
	key := keyAt(words)
	if key < 0 {
		return command.Args(words[1:]...).Build()
	}
	return command.Args(words[1:key]...).Keys(words[key]).Args(words[key+1:]...).Build()
}

func (r *rueidisClient) reply(err error) string {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return reply.Error()
	}
	return ""
}

func (r *rueidisClient) classify(err error) wire.OutcomeClass {
	if r.reply(err) != "" {
		return wire.ClassReply
	}
	if errors.Is(err, rueidis.ErrClosing) {
		return wire.ClassLost
	}
	return classOf(err)
}

// options are those that were given: rueidis does not tell its defaults.
func (r *rueidisClient) options() map[string]string {
	all := inForce(r.used, setByTarget)
	for name, value := range all {
		if value == "" || value == "0" || value == "0s" || value == fmt.Sprint(false) {
			delete(all, name)
		}
	}
	return all
}

func (r *rueidisClient) close() {
	r.client.Close()
}
