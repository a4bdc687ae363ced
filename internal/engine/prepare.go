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

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/loop"
	"github.com/redquake/redquake/internal/engine/observer"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

const (
	dialsAtOnce = 64 // connections that are dialled concurrently before the start
	// between two tries of the other protocol, TLS or none, at a port that gives no reply
	checkEvery = 10 * time.Second
	// of a command that gets no reply, although the server has replied to others just before
	triesMost = 3
	// between two of them: longer than a failover that holds writes, or a proxy's search for its
	// servers
	triesEvery = 15 * time.Second
)

// Prepare connects to Redis, if the plan has a target, reads INFO, runs each command once, prefills
// this pod's part of the keyspace, and establishes the load's connections. A step that fails for a
// reason that can pass is repeated, see WithPatience. progress is called with human-readable
// messages; it may be nil. Errors are *Error, or ctx's.
func (r *Runner) Prepare(ctx context.Context, progress func(string)) (err error) {
	if progress == nil {
		progress = func(string) {}
	}
	defer func() {
		if err != nil {
			r.close()
			r.stopFollowing()
		}
	}()
	if r.run.Plan.Target.IsSet() {
		if err := r.prepareRedis(ctx, progress); err != nil {
			return err
		}
		if err := r.checkDriver(ctx); err != nil {
			return err
		}
	}
	if r.callers != nil {
		if err := r.checkFiles(int(r.callers.Count)); err != nil {
			return err
		}
		if client := r.run.Plan.Client; client.Adapter != nil {
			progress(fmt.Sprintf("waiting for the adapter of driver %s", client.Driver))
		}
		if err := r.patiently(ctx, progress, func(ctx context.Context) error {
			return r.callers.Open(ctx,
				r.run.Routes.Kind())
		}); err != nil {
			return err
		}
	}
	if r.run.Plan.Verify != nil {
		progress("preparing the ledger of acknowledged writes")
		err := r.patiently(ctx, progress, r.openBooks)
		if err != nil {
			return err
		}
	}
	return r.establish(ctx, progress)
}

// prepareRedis connects to Redis, finds its servers, reads INFO, runs each command once and
// prefills this pod's part of the keyspace. The addresses of the plan are tried first: an error
// there names what the user has configured.
func (r *Runner) prepareRedis(ctx context.Context, progress func(string)) error {
	addresses := r.run.Plan.Target.Addresses
	if len(addresses) > 0 {
		progress("connecting to " + addresses[0])
		if err := r.patiently(ctx, progress,
			r.reach(func(context.Context, *redis.Conn) error { return nil })); err != nil {
			return err
		}
	}
	if err := r.discover(ctx, progress); err != nil {
		return err
	}
	if r.run.Routes.Tracker != nil {
		progress("connecting to " + r.run.Routes.AnyServer())
	}
	err := r.patiently(ctx, progress, r.reach(func(ctx context.Context, c *redis.Conn) error {
		return r.examine(ctx, c, progress)
	}))
	if err != nil || r.run.Redis == nil {
		return err
	}
	w, said := r.newWait(progress), ""
	most := map[string]int64{} // by what is written; an attempt that fails begins again
	filled := func(what string, done, total int64) {
		if done > most[what] {
			most[what] = done
			w.advanced()
		}
		// an attempt that fails at once says nothing new
		text := fmt.Sprintf("prefilling %s of %s %s", grouped(done), grouped(total), what)
		if text != said {
			said = text
			progress(text)
		}
	}
	return r.patientlyOn(ctx, w, func(ctx context.Context) error { return r.fill(ctx, filled) })
}

// examine reads INFO of a primary and runs each command once.
func (r *Runner) examine(ctx context.Context, c *redis.Conn, progress func(string)) error {
	r.noteProtocol(progress)
	limit := max(r.run.Plan.Client.RequestTimeout, time.Second)
	if err := r.readInfo(ctx, c, limit, progress); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.idleRoundTrip = measureIdle(within, c)
	if r.run.Redis == nil {
		return nil
	}
	if err := r.findKeys(ctx, c, limit); err != nil {
		return err
	}
	return r.tryCommands(ctx, c)
}

// readInfo reads INFO, which an ACL may deny, and a proxy may not pass on.
func (r *Runner) readInfo(
	ctx context.Context, c *redis.Conn, limit time.Duration, progress func(string),
) error {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := observer.ReadInfo(within, c)
	switch {
	case err == nil:
		r.server.Store(&s)
	case redis.IsReply(err):
	case r.withoutInfo(ctx, c.RemoteAddr()):
		r.note(progress, fmt.Sprintf("%s gives no reply to INFO though it answers PING: it looks like a "+
			"proxy, such as twemproxy, and the servers behind it are not observed; set the address of a "+
			"server of Redis for their figures", c.RemoteAddr()))
	default:
		return &plan.Error{
			Reason:  plan.TargetUnreachable,
			Err:     err,
			Passes:  true,
			Message: fmt.Sprintf("%s gives no answer to INFO: %s", c.RemoteAddr(), dial.ShortMessage(err)),
		}
	}
	return nil
}

// reach returns a step that connects to a server, waits until it replies to PING and serves data,
// and passes the connection to use.
func (r *Runner) reach(use func(context.Context, *redis.Conn) error) func(context.Context) error {
	n := r.run
	var checked time.Time // when the port was last tried for the other protocol
	return func(ctx context.Context) error {
		c := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) {
			return n.Routes.DialNode(ctx,
				route.Place{})
		})
		defer c.Close()
		err := r.answers(ctx, c)
		failed, ok := errors.AsType[*redis.DialError](err)
		if ok && failed.Stage > redis.StageTCP && time.Since(checked) >= checkEvery {
			checked = time.Now()
			// a proxy may wait for the rest of what is no command: its port is not tried for TLS
			if r.proxied(ctx, failed) {
				err = r.answers(ctx, c)
			} else if wrong := n.Routes.Dialer.WrongPort(ctx, err); wrong != nil {
				err = wrong
			}
		}
		if err != nil {
			return dial.Explain(err)
		}
		return use(ctx, c)
	}
}

// answers connects, and checks that the server replies and serves data.
func (r *Runner) answers(ctx context.Context, c *redis.Conn) error {
	if err := c.Connect(ctx); err != nil {
		return err
	}
	return r.ping(ctx, c)
}

// ping checks that the server replies and serves data. An ACL that denies PING is accepted.
func (r *Runner) ping(ctx context.Context, c *redis.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, r.run.Plan.Client.DialTimeout)
	defer cancel()
	failed := &redis.DialError{
		Stage:   redis.StageHello,
		Command: "PING",
		Secured: r.run.Plan.Target.TLS != nil,
	}
	v, err := c.Exchange(ctx, resp.AppendCommand(nil, "PING"), 1)
	failed.Address = c.RemoteAddr()
	if err != nil {
		failed.Err = err
		return failed
	}
	text := v[0].Text
	if v[0].IsError() &&
		(dial.IsTemporary(text) || dial.ReasonOfReply(text) == plan.AuthenticationFailed ||
			dial.ReasonOfReply(text) == plan.ProtectedMode) {
		failed.Stage, failed.Err = redis.StageAnswer, redis.Error(text)
		return failed
	}
	return nil
}

// tryCommands runs each command of the workload and of the probe once, to find commands that cannot
// work before the start. Only replies that show that a command can never succeed are errors; a
// reply such as WRONGTYPE may be intended.
func (r *Runner) tryCommands(ctx context.Context, c *redis.Conn) error {
	n := r.run
	source := n.Redis.Source(int64(n.Pod-n.Plan.Pods), int64(n.Plan.Pods), false)
	follower, follows := source.(workload.Follower)
	for op, o := range n.Workload.Operations() {
		if op < r.tried { // before a failure that passed
			continue
		}
		request := workload.Request{}
		source.Draw(op, &request)
		out, replies := source.Append(nil, &request)
		// an operation of several round trips is completed: a part of it may leave data behind
		for replies > 0 {
			answers, err := r.tryCommand(ctx, c, out, replies, o.Name)
			if err != nil {
				return err
			}
			replies = 0
			if follows && follower.Follows(op) && !slices.ContainsFunc(answers, resp.Value.IsError) {
				out, replies = follower.Next(out[:0], &request, answers, make([]uint64, len(n.Plan.Tallies())))
			}
		}
		r.tried = op + 1
	}
	if len(r.probes) > 0 {
		_, err := r.tryCommand(ctx, c, r.probes[0].Request(), 1, "probe")
		return err
	}
	return nil
}

func (r *Runner) tryCommand(
	ctx context.Context, c *redis.Conn, request []byte, replies int, name string,
) ([]resp.Value, error) {
	word := firstWord(request)
	limit := max(r.run.Plan.Client.RequestTimeout, time.Second)
	if time.Now().Before(r.unanswered.again) {
		return nil, r.unanswered.last
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers, err := c.Exchange(within, request, replies)
	if err != nil {
		failed := &plan.Error{
			Reason: plan.TargetUnreachable,
			Err:    err,
			Passes: true,
			Message: fmt.Sprintf("the command %q (%s) got no reply from %s: %s", name, word, c.RemoteAddr(),
				dial.ShortMessage(err)),
		}
		if r.findings.proxy != "" && redis.IsBroken(err) {
			return nil, silent(c.RemoteAddr(), fmt.Sprintf("the command %q (%s)", name, word), err)
		}
		if redis.IsTimeout(err) && !errors.Is(err, redis.ErrNotSent) {
			r.unanswered.add(failed)
		}
		if r.unanswered.attempts >= triesMost {
			failed.Reason, failed.Passes = plan.CommandInvalid, false
			failed.Message = fmt.Sprintf(
				"the command %q (%s) got no reply from %s within %s in %d attempts, though others did: it "+
					"takes longer, or waits; set spec.client.requestTimeout above its duration",
				name, word, c.RemoteAddr(), limit, triesMost)
		}
		return nil, failed
	}
	r.unanswered = unanswered{}
	for _, v := range answers {
		if !v.IsError() {
			continue
		}
		if strings.Contains(v.Text, "Hash slot not served") && r.run.Routes.Current().Unassigned() > 0 {
			continue // other slots are
		}
		if dial.IsTemporary(v.Text) {
			return nil, &plan.Error{
				Reason: plan.TargetUnreachable,
				Passes: true,
				Message: fmt.Sprintf("%s does not serve the command %q (%s) yet: %s", c.RemoteAddr(), name,
					word, v.Text),
			}
		}
		if reason := dial.ReasonOfReply(v.Text); reason != "" {
			return nil, &plan.Error{
				Reason: reason,
				Message: fmt.Sprintf("the command %q (%s) is rejected by %s: %s", name, word, c.RemoteAddr(),
					v.Text),
			}
		}
	}
	return answers, nil
}

// unanswered are attempts of one command that got no reply, in a row. Each may take an item from a
// list, or keep the server busy.
type unanswered struct {
	attempts int
	last     *plan.Error
	again    time.Time // when it is tried again
}

func (s *unanswered) add(failed *plan.Error) {
	s.attempts++
	s.last, s.again = failed, time.Now().Add(triesEvery)
}

// firstWord returns the name of an encoded command.
func firstWord(request []byte) string {
	_, rest, _ := strings.Cut(string(request), "\r\n") // *n
	_, rest, _ = strings.Cut(rest, "\r\n")             // $n
	word, _, _ := strings.Cut(rest, "\r\n")
	return word
}

// fill writes this pod's part of the workload's initial data.
func (r *Runner) fill(ctx context.Context, progress func(what string, done, total int64)) error {
	return r.writeData(ctx, func(f *workload.Filler) error {
		f.Progress = progress
		return r.run.Redis.Fill(ctx, f)
	})
}

// writeData has write send data beside the load, and explains why it failed.
func (r *Runner) writeData(ctx context.Context, write func(*workload.Filler) error) error {
	f := &workload.Filler{
		Pod:  r.run.Pod,
		Pods: r.run.Plan.Pods,
		Dial: func(ctx context.Context, shard int) (net.Conn, error) {
			return r.run.Routes.DialNode(ctx, route.Place{Shard: shard})
		},
	}
	m := r.run.Routes.Current()
	if m.Kind == topology.KindCluster {
		f.NodeOf = route.ShardOrNone(m)
	}
	err := write(f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	refused, ok := errors.AsType[*workload.FillError](err)
	if !ok {
		return dial.Explain(err)
	}
	failed := &plan.Error{
		Reason:  plan.PrefillFailed,
		Message: err.Error(),
		Err:     err,
	}
	switch reason := dial.ReasonOfReply(refused.Reply); {
	case reason != "":
		failed.Reason = reason
	case refused.Err != nil:
		failed.Passes = true
		failed.Message = fmt.Sprintf("%s at %s: %s", refused.Step, refused.Address,
			dial.ShortMessage(refused.Err))
	case dial.IsTemporary(refused.Reply) || dial.IsMoved(refused.Reply):
		failed.Passes = true
		r.run.Routes.Refresh("the " + refused.Step + " was refused: " + refused.Reply)
	}
	return failed
}

// establish establishes all connections of the load and the probes.
func (r *Runner) establish(ctx context.Context, progress func(string)) error {
	var conns []*loop.Conn
	for _, l := range r.loops {
		if err := l.Open(); err != nil {
			return err
		}
		conns = append(conns, l.Connections()...)
	}
	if err := r.checkFiles(len(conns)); err != nil {
		return err
	}
	if len(conns) > 0 {
		progress(fmt.Sprintf("establishing %s connections", grouped(int64(len(conns)))))
	}
	w := r.newWait(progress)
	defer w.over()
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tokens := make(chan struct{}, dialsAtOnce)
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, own := range conns {
		tokens <- struct{}{}
		all.Go(func() {
			defer func() { <-tokens }()
			c, err := r.establishOne(within, own, w, cancel)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			own.Adopt(c)
			w.over()
		})
	}
	all.Wait()
	if within.Err() != nil {
		return context.Cause(within)
	}
	return r.patiently(ctx, progress, r.establishProbes)
}

// establishOne dials until the connection is established, ctx ends, or it is not needed any more.
// It gives up with the cause of a failure that does not pass.
func (r *Runner) establishOne(
	ctx context.Context, own *loop.Conn, w *wait, giveUp context.CancelCauseFunc,
) (dial.Line, error) {
	dialing, stop := context.WithCancel(ctx)
	defer stop()
	return r.run.Routes.DialerTo(own.Place(), own.Number).Connect(dialing,
		func(err error, _ time.Time) {
			if own.Place().Replica && errors.Is(err, dial.ErrNoServer) {
				stop() // the last replica has left: the primary takes the reads
				return
			}
			if err := w.failed(dial.Explain(err)); err != nil {
				giveUp(err)
			}
		})
}

// establishProbes establishes a connection for each probe.
func (r *Runner) establishProbes(ctx context.Context) error {
	for _, p := range r.probes {
		if err := p.Establish(ctx); err != nil {
			return dial.Explain(err)
		}
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
