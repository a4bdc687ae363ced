package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
)

// Proxies in front of Redis, such as twemproxy and Envoy, and servers before Redis 6 do not know
// all that the load asks a server besides its commands. What the load can do without is noted, and
// what it cannot is named.

// findings are what Prepare has found in the deployment.
type findings struct {
	// the address that gives no reply to what every server of Redis answers; "" = none does
	proxy string
	mu    sync.Mutex
	notes []string // what the user should know, once each
}

func (f *findings) add(note string) (added bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.notes, note) {
		return false
	}
	f.notes = append(f.notes, note)
	return true
}

// Notes are what Prepare has found in the deployment that the user should know: sentences. It is
// safe for use during Prepare and Run.
func (r *Runner) Notes() []string {
	r.findings.mu.Lock()
	defer r.findings.mu.Unlock()
	return slices.Clone(r.findings.notes)
}

// note adds a note, and tells it.
func (r *Runner) note(progress func(string), text string) {
	if r.findings.add(text) {
		progress(text)
	}
}

// noteProtocol notes that the load uses RESP2 although the plan says RESP3.
func (r *Runner) noteProtocol(progress func(string)) {
	if how := r.run.Routes.Dialer.Hello.Missing(); how != "" {
		r.note(progress, "RESP2: "+how)
	}
}

// proxied reports whether a dial failed because of a proxy that gives no reply to HELLO. From then
// on the load uses RESP2. A server that hangs takes a second timeout to tell, which a Runner
// without patience does not have.
func (r *Runner) proxied(ctx context.Context, failed *redis.DialError) bool {
	d := r.run.Routes.Dialer
	if failed.Stage != redis.StageHello || failed.Command != "HELLO" ||
		!redis.IsBroken(failed.Err) && (!redis.IsTimeout(failed.Err) || r.patience == 0) ||
		!d.Ignores(ctx, "HELLO", "3") {
		return false
	}
	r.findings.proxy = failed.Address
	d.Hello.Lack(fmt.Sprintf("%s gives no reply to HELLO though it answers PING, as proxies such as "+
		"twemproxy do", failed.Address))
	return true
}

// withoutInfo reports whether the server gives no reply to INFO, although it answers others.
func (r *Runner) withoutInfo(ctx context.Context, address string) bool {
	if !r.run.Routes.DialerTo(route.Place{}, 0).Ignores(ctx, "INFO") {
		return false
	}
	r.findings.proxy, r.observer = address, nil
	return true
}

// checkDriver returns why the plan's driver cannot speak to the deployment; nil = it can.
func (r *Runner) checkDriver(ctx context.Context) error {
	if r.findings.proxy == "" || r.run.Plan.Client.Driver != plan.GoRedisDriver ||
		!r.run.Routes.Dialer.Ignores(ctx, "HELLO", "2") {
		return nil
	}
	return &plan.Error{
		Reason: plan.PlanInvalid,
		Message: fmt.Sprintf(
			"spec.client.driver: GoRedis sends HELLO on every connection, to which %s gives "+
				"no reply: set Native, which does without it", r.findings.proxy),
	}
}

// silent is the error of a proxy that does not pass on what the plan needs.
func silent(address, command string, err error) *plan.Error {
	return &plan.Error{
		Reason: plan.CommandInvalid,
		Err:    err,
		Message: fmt.Sprintf(
			"%s gives no reply to %s though it answers PING (%s): it looks like a proxy, "+
				"which does not pass it on; leave it out, or set the address of a server of Redis",
			address, command, dial.ShortMessage(err)),
	}
}
