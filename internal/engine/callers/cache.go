package callers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// silent discards go-redis' log, which writes every failed dial to standard error. Failures are in
// the record.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { goredis.SetLogger(silent{}) })

// goRedisClient creates a go-redis client for the deployment, with its own pool, retries and view
// of the topology. Options that the plan does not set keep go-redis' defaults, as in most services.
func goRedisClient(r *load.State, kind plan.Topology) (goredis.UniversalClient, error) {
	silence()
	o, err := goRedisOptions(r)
	if err != nil {
		return nil, err
	}
	switch kind {
	case plan.TopologyCluster:
		c, cluster := &r.Plan.Client, o.Cluster()
		if c.GoRedis != nil && c.GoRedis.StateReloadInterval > 0 {
			cluster.ClusterStateReloadInterval = c.GoRedis.StateReloadInterval
		}
		cluster.ReadOnly = c.ReadFrom == plan.ReadReplica || c.ReadFrom == plan.ReadAny
		cluster.RouteRandomly = c.ReadFrom == plan.ReadAny
		return goredis.NewClusterClient(cluster), nil
	case plan.TopologySentinel:
		return goRedisSentinelClient(r, o)
	}
	simple := o.Simple()
	// with plain replication the primary at the start: go-redis does not follow a failover there
	simple.Addr = r.Routes.Servers()[0]
	return goredis.NewClient(simple), nil
}

// goRedisOptions returns the options that all topologies share.
func goRedisOptions(r *load.State) (*goredis.UniversalOptions, error) {
	c, t := &r.Plan.Client, &r.Plan.Target
	o := &goredis.UniversalOptions{
		Addrs:           t.Addresses,
		Username:        t.Username,
		DB:              t.Database,
		Protocol:        r.Routes.Dialer.Speaks(),
		DialTimeout:     c.DialTimeout,
		ReadTimeout:     c.RequestTimeout,
		WriteTimeout:    c.RequestTimeout,
		PoolSize:        c.Connections,
		ConnMaxLifetime: c.MaxAge,
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			password, err := r.Routes.Dialer.Secret()
			return t.Username, password, err
		},
	}
	if own := c.GoRedis; own != nil {
		o.PoolSize = cmp.Or(own.PoolSize, o.PoolSize)
		if own.MaxRetries != nil {
			o.MaxRetries = *own.MaxRetries
		}
	}
	if r.Portable || slices.ContainsFunc(t.Addresses, plan.IsSocket) {
		o.Dialer = r.Routes.Dialer.TCP
	}
	var err error
	if t.TLS != nil {
		o.TLSConfig, err = dial.TLSConfig(t.TLS) // go-redis fills in the server's name
	}
	return o, err
}

func goRedisSentinelClient(
	r *load.State, o *goredis.UniversalOptions,
) (goredis.UniversalClient, error) {
	sentinel := r.Plan.Target.Sentinel
	if sentinel == nil { // detected: the target's addresses are those of the sentinels
		sentinel = &plan.Sentinel{Addresses: r.Plan.Target.Addresses}
	}
	if o.Addrs, o.MasterName = sentinel.Addresses, sentinel.MasterName; o.MasterName == "" {
		o.MasterName = r.Routes.Current().Shards[0].ID
	}
	failover := o.Failover()
	failover.SentinelUsername = sentinel.Username
	var err error
	if failover.SentinelPassword, err = dial.ReadPassword(sentinel.PasswordFile); err != nil {
		return nil, err
	}
	if r.Plan.Client.ReadFrom == plan.ReadAny {
		failover.RouteRandomly = true
		return goredis.NewFailoverClusterClient(failover), nil
	}
	failover.ReplicaOnly = r.Plan.Client.ReadFrom == plan.ReadReplica
	return goredis.NewFailoverClient(failover), nil
}

// goRedisCaller sends the requests of a workload with go-redis.
type goRedisCaller struct {
	client  goredis.UniversalClient
	source  workload.Source
	samples *load.Samples
	out     []byte
}

func (g *goRedisCaller) Pick() int {
	return g.source.Pick()
}

// Call performs a request as an application does: it includes go-redis' retries and redirections,
// and is bounded by go-redis' own timeouts.
func (g *goRedisCaller) Call(
	ctx context.Context, op int, user int64, tally []uint64,
) workload.Result {
	r := workload.Request{User: user}
	g.source.Draw(op, &r)
	var replies int
	g.out, replies = g.source.Append(g.out[:0], &r)
	follower, _ := g.source.(workload.Follower)
	result := workload.Result{Slot: r.Slot}
	for {
		result.BytesOut += len(g.out)
		values, err := g.exchange(ctx, g.out, replies)
		if err != nil {
			result.Outcome, result.Class = outcomeOfError(err)
			if reply, ok := errors.AsType[goredis.Error](err); ok {
				g.samples.Note(result.Class, []byte(reply.Error()))
			}
			return result
		}
		if follower == nil || !follower.Follows(op) {
			result.Null = len(values) == 1 && values[0].Type == '_'
			return result
		}
		if g.out, replies = follower.Next(g.out[:0], &r, values, tally); replies == 0 {
			return result
		}
	}
}

// exchange sends the encoded commands, several of them as a pipeline.
func (g *goRedisCaller) exchange(
	ctx context.Context, out []byte, replies int,
) ([]resp.Value, error) {
	in := bufio.NewReader(bytes.NewReader(out))
	commands := make([]*goredis.Cmd, 0, replies)
	for range replies {
		v, err := resp.ReadValue(in)
		if err != nil {
			return nil, err
		}
		words := make([]any, len(v.Items))
		for i := range v.Items {
			words[i] = v.Items[i].Text
		}
		commands = append(commands, goredis.NewCmd(ctx, words...))
	}
	if len(commands) == 1 {
		err := g.client.Process(ctx, commands[0])
		if err != nil && !errors.Is(err, goredis.Nil) {
			return nil, err
		}
	} else {
		pipe := g.client.Pipeline()
		for _, c := range commands {
			_ = pipe.Process(ctx, c)
		}
		_, err := pipe.Exec(ctx)
		if err != nil && !errors.Is(err, goredis.Nil) {
			return nil, err
		}
	}
	values := make([]resp.Value, len(commands))
	for i, c := range commands {
		values[i] = valueOf(c.Val())
	}
	return values, nil
}

// valueOf converts a go-redis reply to the type that workloads read.
func valueOf(v any) resp.Value {
	switch v := v.(type) {
	case nil:
		return resp.Value{Type: '_'}
	case string:
		return resp.Value{Type: '$', Text: v}
	case int64:
		return resp.Value{Type: ':', Text: fmt.Sprint(v)}
	case float64:
		return resp.Value{Type: ',', Text: fmt.Sprint(v)}
	case []any:
		items := make([]resp.Value, len(v))
		for i := range v {
			items[i] = valueOf(v[i])
		}
		return resp.Value{Type: '*', Items: items}
	}
	return resp.Value{Type: '$', Text: fmt.Sprint(v)}
}

// outcomeOfError returns the outcome for an error of go-redis: after an error reply or a failed
// dial the request was certainly not applied.
func outcomeOfError(err error) (workload.Outcome, record.Class) {
	var reply goredis.Error
	var network *net.OpError
	switch {
	case errors.As(err, &reply):
		return workload.Fail, resp.Classify([]byte(err.Error()))
	case errors.As(err, &network) && network.Op == "dial":
		return workload.Fail, record.ClassRefused
	case errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrClosed):
		return workload.Fail, record.ClassTimeout
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled):
		return workload.Unknown, record.ClassTimeout
	case errors.Is(err, io.EOF), redis.IsBroken(err):
		return workload.Unknown, record.ClassReset
	case strings.Contains(err.Error(), "all sentinels"),
		strings.Contains(err.Error(), "cluster has no nodes"):
		return workload.Fail, record.ClassRefused
	}
	return workload.Unknown, record.ClassOther
}
