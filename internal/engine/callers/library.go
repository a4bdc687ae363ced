package callers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/adapter"
	"github.com/redquake/redquake/internal/adapter/goclients"
	"github.com/redquake/redquake/internal/adapter/wire"
	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redact"
	"github.com/redquake/redquake/internal/redis/resp"
)

// library is a client library that performs the requests, by its adapter.
type library struct {
	run     *load.State
	session conversation
	now     func() int64 // the adapter's clock
	began   atomic.Bool  // offset is set
	offset  atomic.Int64 // the run's clock minus the adapter's
	secrets []string     // which no text of the library must show
}

// conversation is a session with an adapter, whether that is a process of this machine or not.
type conversation interface {
	Connect(ctx context.Context, s wire.Settings) error
	Capacity() int
	Perform(ctx context.Context, commands [][][]byte, wanted bool) (wire.Outcome, bool, error)
	Noted(o *wire.Outcome)
	Settled() int64
	Ended() <-chan struct{}
	Err() error
	Close()
}

// openLibrary starts the adapter of the plan's driver, unless that has been done, and has it connect.
func (c *Callers) openLibrary(ctx context.Context, kind plan.Topology) error {
	if c.library == nil {
		now := c.adapterClock()
		session, err := c.startAdapter(ctx, adapter.Options{
			Driver:  string(c.State.Plan.Client.Driver),
			Now:     now,
			Stalled: c.noteAdapterStall,
		})
		if err != nil {
			return c.adapterFailed(ctx, err)
		}
		c.library = &library{run: c.State, session: session, now: now}
		c.free = func() error {
			if client := c.State.Plan.Client; client.Adapter == nil || client.Adapter.Socket == "" {
				session.Close()
			}
			// A sidecar ends with this process: if it did before, it would be started again, and
			// Kubernetes would end that one while it begins, which takes 30 s.
			return nil
		}
	}
	settings, err := c.settings(kind)
	if err != nil {
		return &plan.Error{Reason: plan.AuthenticationFailed, Message: err.Error(), Err: err}
	}
	c.library.secrets = []string{settings.Password, settings.SentinelPassword}
	if err := c.library.session.Connect(ctx, settings); err != nil {
		return c.adapterFailed(ctx, err)
	}
	c.Count = min(c.Count, int64(c.library.session.Capacity()))
	c.make = func(number, of int64) workload.Caller {
		source := c.State.Redis.Source(number, of, kind == plan.TopologyCluster)
		follower, _ := source.(workload.Follower)
		actor, _ := source.(workload.Actor)
		return &libraryCaller{
			library:  c.library,
			source:   source,
			follower: follower,
			actor:    actor,
			ledger:   c.Ledger,
		}
	}
	return nil
}

// adapterClock is the clock that the adapter reads: in virtual time there is no other than Go's.
func (c *Callers) adapterClock() func() int64 {
	if !c.State.Portable {
		return adapter.Monotonic
	}
	began := time.Now()
	return func() int64 { return int64(time.Since(began)) + 1 }
}

// startAdapter starts the adapter of the plan's driver, or waits for it.
func (c *Callers) startAdapter(ctx context.Context, o adapter.Options) (conversation, error) {
	client := &c.State.Plan.Client
	switch {
	case client.Adapter == nil: // in Go
		return c.serveHere(ctx, o)
	case len(client.Adapter.Command) > 0:
		return adapter.Start(ctx, client.Adapter.Command, o)
	}
	return adapter.Await(ctx, client.Adapter.Socket, o)
}

// serveHere runs the adapter of a library in Go in this process.
func (c *Callers) serveHere(ctx context.Context, o adapter.Options) (conversation, error) {
	here, there := net.Pipe()
	own := goclients.Options{Now: o.Now}
	if c.State.Portable {
		own.Dial = c.State.Routes.Dialer.TCP
	}
	driver := string(c.State.Plan.Client.Driver)
	unbounded := context.WithoutCancel(ctx) // it ends with the session
	go func() { _ = goclients.Serve(unbounded, there, driver, own) }()
	session, err := adapter.Open(ctx, here, o)
	if err != nil {
		_ = here.Close()
		return nil, err
	}
	return session, nil
}

// noteAdapterStall records that the adapter answered nothing, by its clock.
func (c *Callers) noteAdapterStall(from, to int64) {
	if l := c.library; l.began.Load() {
		c.noteStall(record.Stall{From: l.at(from), To: l.at(to)})
	}
}

// adapterFailed is the error of a preparation that an adapter, or its library, has ended.
func (c *Callers) adapterFailed(ctx context.Context, err error) error {
	driver := c.State.Plan.Client.Driver
	refusal, refused := errors.AsType[*wire.Refusal](err)
	var secrets []string
	if c.library != nil {
		secrets = c.library.secrets
	}
	if refused {
		refusal.Message = redact.Text(refusal.Message, secrets...)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !refused:
		return &plan.Error{
			Reason:  plan.AdapterFailed,
			Message: "spec.client.driver: " + redact.Text(err.Error(), secrets...),
		}
	case refusal.Kind == wire.Login:
		return &plan.Error{
			Reason:  plan.AuthenticationFailed,
			Message: fmt.Sprintf("%s was refused: %s", driver, refusal.Message),
			Err:     err,
		}
	case refusal.Kind == wire.Unreachable:
		return &plan.Error{
			Reason:  plan.TargetUnreachable,
			Message: fmt.Sprintf("%s does not connect: %s", driver, refusal.Message),
			Err:     err,
			Passes:  true,
		}
	}
	return &plan.Error{
		Reason:  plan.PlanInvalid,
		Message: fmt.Sprintf("spec.client.%s: %s: %s", fieldOf(refusal), driver, refusal.Message),
		Err:     err,
	}
}

// fieldOf is the field of the plan's client that a refusal is about.
func fieldOf(r *wire.Refusal) string {
	if strings.HasPrefix(r.Field, "options") {
		return r.Field
	}
	return "driver"
}

// settings are what the adapter connects to.
func (c *Callers) settings(kind plan.Topology) (wire.Settings, error) {
	t, client := &c.State.Plan.Target, &c.State.Plan.Client
	s := wire.Settings{
		Addresses: t.Addresses,
		Username:  t.Username,
		Database:  t.Database,
		Options:   client.Options,
		InFlight:  int(max(c.Count, 1)), // a pod may have no user at all
	}
	var err error
	if s.Password, err = c.State.Routes.Dialer.Secret(); err != nil {
		return s, err
	}
	switch kind {
	case plan.TopologyCluster:
		s.Topology = wire.Cluster
	case plan.TopologySentinel:
		s.Topology = wire.Sentinel
		if err := c.setSentinels(&s); err != nil {
			return s, err
		}
	default: // with plain replication the primary at the start: no library follows a failover there
		s.Topology, s.Addresses = wire.Standalone, c.State.Routes.Servers()[:1]
	}
	s.TLS, err = tlsOf(t.TLS)
	return s, err
}

// setSentinels sets what there is of sentinels.
func (c *Callers) setSentinels(s *wire.Settings) error {
	s.PrimaryName = c.State.Routes.Current().Shards[0].ID
	sentinel := c.State.Plan.Target.Sentinel
	if sentinel == nil { // detected: the target's addresses are those of the sentinels
		return nil
	}
	s.Addresses, s.SentinelUsername = sentinel.Addresses, sentinel.Username
	if sentinel.MasterName != "" {
		s.PrimaryName = sentinel.MasterName
	}
	var err error
	s.SentinelPassword, err = dial.ReadPassword(sentinel.PasswordFile)
	return err
}

// tlsOf reads the files of TLS settings; nil without TLS.
func tlsOf(t *plan.TLS) (*wire.TLS, error) {
	if t == nil {
		return nil, nil
	}
	sent := &wire.TLS{ServerName: t.ServerName, Insecure: t.InsecureSkipVerify}
	for _, part := range []struct {
		file string
		to   *string
	}{
		{t.CAFile, &sent.CA},
		{t.CertFile, &sent.Certificate},
		{t.KeyFile, &sent.Key},
	} {
		if part.file == "" {
			continue
		}
		text, err := os.ReadFile(part.file)
		if err != nil {
			return nil, err
		}
		*part.to = string(text)
	}
	sent.Key = inPKCS8(sent.Key)
	return sent, nil
}

// inPKCS8 converts a private key in PEM to PKCS #8, the only form that Java reads. What is none is
// left for the library to refuse.
func inPKCS8(text string) string {
	var key any
	var err error
	for rest := []byte(text); key == nil; {
		var block *pem.Block
		block, rest = pem.Decode(rest) // parameters of a curve, or a certificate, may come first
		switch {
		case block == nil:
			return text
		case block.Type == "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case block.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case block.Type == "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		}
		if err != nil {
			return text
		}
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return text
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// begin relates the adapter's clock to that of the run, by the closest of a few pairs of readings.
func (l *library) begin() {
	closest := clock.Never
	for range 5 {
		before := l.run.Now()
		theirs := l.now()
		after := l.run.Now()
		if apart := after - before; apart < closest {
			closest = apart
			l.offset.Store(before + apart/2 - theirs)
		}
	}
	l.began.Store(true)
}

// at converts an instant of the adapter's clock to one of the run.
func (l *library) at(t int64) int64 {
	return t + l.offset.Load()
}

// lookEvery is the time between two looks whether the load is over.
const lookEvery = 100 * time.Millisecond

// until ends the context that it returns once the load is over and what is in flight had the time of
// an operation to end: some libraries wait for a reply without a limit. dealt is closed when the
// last arrival of an open loop has been handed out; nil = a closed loop.
func (l *library) until(ctx context.Context, dealt <-chan struct{}) context.Context {
	bounded, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		looks := time.NewTicker(lookEvery)
		defer looks.Stop()
		for over := false; !over; {
			select {
			case <-ctx.Done():
				return
			case <-dealt:
				over = true
			case <-looks.C:
				over = dealt == nil && (l.run.Over(l.run.Now()) || l.run.Budget.Left.Load() <= 0)
			}
		}
		last := time.NewTimer(l.run.Plan.OperationTimeout())
		defer last.Stop()
		select {
		case <-ctx.Done():
		case <-last.C:
		}
	}()
	return bounded
}

// settled is the instant of the run up to which all outcomes have arrived.
func (l *library) settled() int64 {
	return l.at(l.session.Settled())
}

// err is why the adapter has failed, nil if it has not.
func (l *library) err() error {
	failed := l.session.Err()
	if failed == nil {
		return nil
	}
	return &plan.Error{Reason: plan.AdapterFailed, Message: redact.Text(failed.Error(), l.secrets...)}
}

// libraryCaller sends the requests of a workload with a library.
type libraryCaller struct {
	*library
	source   workload.Source
	follower workload.Follower // nil if no operation has several round trips
	actor    workload.Actor    // nil if users do not decide by what became of their requests
	next     int64             // when the next request of the last one's user may begin
	ledger   *Ledger           // nil if there is none
	write    *write            // that the next call is; nil if it is none
	out      []byte
	last     wire.Outcome // that has not been noted; without an ID there is none
}

// Pick is a part of workload.Caller.
func (l *libraryCaller) Pick() int {
	return l.source.Pick()
}

// Call performs a request as an application does: it includes the library's retries and
// redirections, and is bounded by the library's own limits.
func (l *libraryCaller) Call(
	ctx context.Context, op int, user int64, tally []uint64,
) workload.Result {
	r := workload.Request{User: user}
	l.next = 0
	result := l.perform(ctx, op, &r, tally)
	if l.actor != nil && l.write == nil {
		at := result.Done
		if at == 0 {
			at = l.run.Now()
		}
		l.next = l.actor.Ended(&r, result.Outcome, result.Sent, at)
	}
	return result
}

func (l *libraryCaller) perform(
	ctx context.Context, op int, r *workload.Request, tally []uint64,
) workload.Result {
	replies := l.encode(op, r)
	follows := l.write == nil && l.follower != nil && l.follower.Follows(op)
	result := workload.Result{Slot: r.Slot}
	for {
		result.BytesOut += len(l.out)
		commands, err := commandsOf(l.out, replies)
		if err != nil {
			result.Outcome, result.Class = workload.Fail, record.ClassProtocol
			return result
		}
		l.note()
		o, begun, err := l.session.Perform(ctx, commands, follows)
		earlier := result.Done > 0 // a round trip has succeeded
		if err != nil {
			result.Outcome, result.Class = workload.Unknown, record.ClassTimeout
			if !begun && !earlier {
				result.Outcome = workload.Fail
			}
			if earlier {
				result.Done = l.run.Now()
			}
			return result
		}
		l.last = o
		if !earlier {
			result.Sent = l.at(o.Sent)
		}
		result.Done = l.at(o.Done)
		if !o.Class.Succeeded() {
			l.fail(&result, &o)
			if earlier && o.Class == wire.ClassRefused {
				result.Outcome = workload.Unknown
			}
			return result
		}
		if !follows {
			result.Null = o.Class == wire.ClassNil
			return result
		}
		l.out, replies = l.follower.Next(l.out[:0], r, o.Replies, tally)
		if replies == 0 {
			return result
		}
	}
}

// encode encodes the first round trip of a request and returns how many replies it has.
func (l *libraryCaller) encode(op int, r *workload.Request) (replies int) {
	if w := l.write; w != nil {
		l.out, r.Slot = l.ledger.book.Append(l.out[:0], w.shard, w.number), l.ledger.slot(w)
		return 1
	}
	l.source.Draw(op, r)
	l.out, replies = l.source.Append(l.out[:0], r)
	return replies
}

// fail makes the result that of a request that has failed.
func (l *libraryCaller) fail(result *workload.Result, o *wire.Outcome) {
	result.Outcome, result.Class = workload.Unknown, record.ClassOther
	switch o.Class {
	case wire.ClassReply:
		result.Outcome, result.Class = workload.Fail, resp.Classify([]byte(o.Text))
		result.BytesIn = len(o.Text)
	case wire.ClassRefused:
		result.Outcome, result.Class = workload.Fail, record.ClassRefused
	case wire.ClassTimeout:
		result.Class = record.ClassTimeout
	case wire.ClassLost:
		result.Class = record.ClassReset
	}
	l.run.Samples.Note(result.Class, []byte(redact.Text(o.Text, l.secrets...)))
}

// note says that the last outcome has been noted.
func (l *libraryCaller) note() {
	if l.last.ID > 0 {
		l.session.Noted(&l.last)
		l.last = wire.Outcome{}
	}
}

// commandsOf takes encoded commands apart.
func commandsOf(out []byte, count int) ([][][]byte, error) {
	in := bufio.NewReader(bytes.NewReader(out))
	commands := make([][][]byte, 0, count)
	for range count {
		v, err := resp.ReadValue(in)
		if err != nil {
			return nil, err
		}
		words := make([][]byte, len(v.Items))
		for i := range v.Items {
			words[i] = []byte(v.Items[i].Text)
		}
		commands = append(commands, words)
	}
	return commands, nil
}
