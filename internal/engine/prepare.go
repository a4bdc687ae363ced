package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// dialsAtOnce is how many connections are dialled concurrently before the start.
const dialsAtOnce = 64

// Prepare connects to Redis, if the plan has a target, within max(3 x dialTimeout, 5 s), reads INFO, runs each command once, prefills this pod's
// part of the keyspace, and establishes the load's connections. progress is called with human-readable messages; it may be nil.
// Errors are *Error, or ctx's.
func (r *Runner) Prepare(ctx context.Context, progress func(string)) error {
	if progress == nil {
		progress = func(string) {}
	}
	if r.run.plan.Target.IsSet() {
		if err := r.prepareRedis(ctx, progress); err != nil {
			return err
		}
	}
	if r.callers != nil {
		if err := r.callers.open(ctx, r.run.kind()); err != nil {
			return err
		}
	}
	if err := r.openBooks(ctx, progress); err != nil {
		return err
	}
	return r.establish(ctx, progress)
}

// prepareRedis connects to Redis, reads INFO, runs each command once and prefills this pod's part of the keyspace.
func (r *Runner) prepareRedis(ctx context.Context, progress func(string)) error {
	c, err := r.connectToPrimary(ctx, progress)
	if err != nil {
		return err
	}
	defer c.Close()
	within, cancel := context.WithTimeout(ctx, r.run.plan.Client.RequestTimeout)
	defer cancel()
	if s, err := readInfo(within, c); err == nil {
		r.server.Store(&s)
	}
	r.idleRoundTrip = measureIdle(within, c)
	if r.run.redis == nil {
		return nil
	}
	if err := r.tryCommands(ctx, c); err != nil {
		return err
	}
	return r.run.fill(ctx, progress)
}

// connectToPrimary discovers the topology and connects to the first primary. The addresses of the plan are tried first: an error there names what
// the user has configured.
func (r *Runner) connectToPrimary(ctx context.Context, progress func(string)) (*redis.Conn, error) {
	var c *redis.Conn
	if addresses := r.run.plan.Target.Addresses; len(addresses) > 0 {
		progress("connecting to " + addresses[0])
		var err error
		if c, err = r.connectUntilReady(ctx); err != nil {
			return nil, err
		}
	}
	err := r.discover(ctx, progress)
	if err == nil && r.run.routes.tracker == nil {
		return c, nil
	}
	if c != nil {
		c.Close()
	}
	if err != nil {
		return nil, err
	}
	progress("connecting to " + r.run.anyServer())
	return r.connectUntilReady(ctx)
}

// connectUntilReady dials until the server replies to PING and has loaded its data, or the dial budget is used up.
func (r *Runner) connectUntilReady(ctx context.Context) (*redis.Conn, error) {
	n := r.run
	c := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) { return n.dialNode(ctx, place{}) })
	budget := dialBudget(n.plan.Client)
	within, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	wait := backoffFirst
	var last error
	for number := 0; ; number++ {
		err := c.Connect(within)
		if err == nil {
			if err = n.ping(within, c); err == nil {
				return c, nil
			}
			c.Close()
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if number == 0 {
			if wrong := n.dialer.wrongPort(within, err); wrong != nil {
				err = wrong
			}
		}
		if last == nil || within.Err() == nil || isPermanent(err) { // an attempt that the budget interrupted has a less precise error than the previous one
			last = err
		}
		if isPermanent(err) || within.Err() != nil {
			return nil, explain(last, budget)
		}
		select {
		case <-within.Done():
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, explain(last, budget)
		case <-time.After(jitter(wait)):
			wait = min(2*wait, backoffLast)
		}
	}
}

// ping checks that the server replies and serves data. An ACL that denies PING is accepted.
func (r *runState) ping(ctx context.Context, c *redis.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, r.plan.Client.DialTimeout)
	defer cancel()
	failed := &redis.DialError{Stage: redis.StageHello, Command: "PING", Secured: r.plan.Target.TLS != nil}
	v, err := c.Exchange(ctx, resp.AppendCommand(nil, "PING"), 1)
	failed.Address = c.RemoteAddr()
	if err != nil {
		failed.Err = err
		return failed
	}
	if text := v[0].Text; v[0].IsError() && (isTemporary(text) || reasonOfReply(text) == plan.AuthenticationFailed) {
		failed.Stage, failed.Err = redis.StageAnswer, redis.Error(text)
		return failed
	}
	return nil
}

// tryCommands runs each command of the workload and of the probe once, to find commands that cannot work before the start. Only replies that show
// that a command can never succeed are errors; a reply such as WRONGTYPE may be intended.
func (r *Runner) tryCommands(ctx context.Context, c *redis.Conn) error {
	n := r.run
	source := n.redis.Source(int64(n.pod), int64(n.plan.Pods), false)
	follower, follows := source.(workload.Follower)
	for op, o := range n.workload.Operations() {
		request := workload.Request{}
		source.Draw(op, &request)
		out, replies := source.Append(nil, &request)
		for replies > 0 { // an operation of several round trips is completed: a part of it may leave data behind
			answers, err := n.tryCommand(ctx, c, out, replies, o.Name)
			if err != nil {
				return err
			}
			replies = 0
			if follows && follower.Follows(op) && !slices.ContainsFunc(answers, resp.Value.IsError) {
				out, replies = follower.Next(out[:0], &request, answers, make([]uint64, len(n.plan.Tallies())))
			}
		}
	}
	if len(r.probes) > 0 {
		_, err := n.tryCommand(ctx, c, r.probes[0].request(), 1, "probe")
		return err
	}
	return nil
}

func (r *runState) tryCommand(ctx context.Context, c *redis.Conn, request []byte, replies int, name string) ([]resp.Value, error) {
	word := firstWord(request)
	within, cancel := context.WithTimeout(ctx, max(r.plan.Client.RequestTimeout, time.Second))
	defer cancel()
	answers, err := c.Exchange(within, request, replies)
	if err != nil {
		return nil, &plan.Error{Reason: plan.CommandInvalid, Err: err,
			Message: fmt.Sprintf("the command %q (%s) got no reply from %s: %v", name, word, c.RemoteAddr(), err)}
	}
	for _, v := range answers {
		if !v.IsError() {
			continue
		}
		if reason := reasonOfReply(v.Text); reason != "" {
			return nil, &plan.Error{Reason: reason, Message: fmt.Sprintf("the command %q (%s) is rejected by %s: %s", name, word, c.RemoteAddr(), v.Text)}
		}
	}
	return answers, nil
}

// firstWord returns the name of an encoded command.
func firstWord(request []byte) string {
	_, rest, _ := strings.Cut(string(request), "\r\n") // *n
	_, rest, _ = strings.Cut(rest, "\r\n")             // $n
	word, _, _ := strings.Cut(rest, "\r\n")
	return word
}

// fill writes this pod's part of the workload's initial data.
func (r *runState) fill(ctx context.Context, progress func(string)) error {
	f := &workload.Filler{
		Pod: r.pod, Pods: r.plan.Pods,
		Dial: func(ctx context.Context, shard int) (net.Conn, error) { return r.dialNode(ctx, place{shard: shard}) },
		Progress: func(what string, done, total int64) {
			progress(fmt.Sprintf("prefilling %s of %s %s", grouped(done), grouped(total), what))
		},
	}
	if m := r.routes.current(); len(m.Shards) > 1 {
		f.NodeOf = func(slot uint16) int {
			shard, _ := m.ShardOf(slot)
			return shard
		}
	}
	err := r.redis.Fill(ctx, f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	refused, ok := errors.AsType[*workload.FillError](err)
	if !ok {
		return explain(err, r.plan.Client.DialTimeout)
	}
	failed := &plan.Error{Reason: plan.PrefillFailed, Message: err.Error(), Err: err}
	if reason := reasonOfReply(refused.Reply); reason != "" {
		failed.Reason = reason
	} else if refused.Err != nil {
		failed.Message = fmt.Sprintf("prefill at %s: %s", refused.Address, shortMessage(refused.Err))
	}
	return failed
}

// establish establishes all connections of the load and the probes.
func (r *Runner) establish(ctx context.Context, progress func(string)) error {
	n := r.run
	var conns []*conn
	for _, l := range r.loops {
		if err := l.open(); err != nil {
			return err
		}
		conns = append(conns, l.conns...)
	}
	if len(conns) > 0 {
		progress(fmt.Sprintf("establishing %s connections", grouped(int64(len(conns)))))
	}
	budget := dialBudget(n.plan.Client)
	within, cancel := context.WithTimeout(ctx, budget+time.Duration(len(conns))*time.Millisecond)
	defer cancel()
	tokens := make(chan struct{}, dialsAtOnce)
	var all sync.WaitGroup
	var once sync.Once
	var failure, last error
	var mu sync.Mutex
	for _, own := range conns {
		tokens <- struct{}{}
		all.Go(func() {
			defer func() { <-tokens }()
			dialing, stop := context.WithCancel(within)
			defer stop()
			gone := false
			c, err := n.dialerTo(own.pool.place, own.number).connect(dialing, func(err error, _ time.Time) {
				if gone = own.pool.place.replica && errors.Is(err, errNoServer); gone {
					stop() // the last replica has left: the primary takes the reads
					return
				}
				mu.Lock()
				last = err
				mu.Unlock()
				if isPermanent(err) {
					cancel()
				}
			})
			if err != nil {
				if !gone {
					once.Do(func() { failure = err })
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			own.adopt(c)
		})
	}
	all.Wait()
	if failure == nil {
		return r.establishProbe(within)
	}
	r.close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if last == nil {
		last = &redis.DialError{Stage: redis.StageTCP, Address: n.anyServer(), Err: failure}
	}
	return explain(last, budget)
}

// establishProbe establishes a connection for the first arrival of each probe, so that it does not have to dial.
func (r *Runner) establishProbe(ctx context.Context) error {
	for _, p := range r.probes {
		c, err := p.dialer().dial(ctx, 0, nil)
		if err != nil {
			return explain(err, r.run.plan.Client.DialTimeout)
		}
		p.putIdle(&probeConn{line: c})
	}
	return nil
}

// grouped formats n with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
