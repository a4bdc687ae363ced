package fault

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// What is recorded of a failover through Sentinel beside what every failover records.
const (
	failoverMaster   = "masterName"
	failoverSentinel = "sentinel" // host:port of the one that gets the command, so that it refuses a second
	failoverPause    = "pause"    // for how long writes are paused; absent where they are not
	failoverHeld     = "held"     // whether the pause held until the old primary was demoted: true | false
	failoverOption   = "option"   // COORDINATED, where the sentinel knows it
)

const (
	// leastPause is how long writes must stay paused for a failover to fit in: from the command to the switch the sentinels need about 2 s.
	leastPause = 3 * time.Second
	// unknownToAll is a name under which no sentinel watches anything: by it they tell which commands they know, without carrying one out.
	unknownToAll = "redquake-asks-what-you-know"
)

// sentinelFailover sends SENTINEL FAILOVER. By itself that stops nobody from writing to the old primary, for as long as ten seconds after the
// promotion, and what is written there is lost. Coordinated, no write is taken in between.
type sentinelFailover struct{ failover }

func (s sentinelFailover) plan(ctx context.Context, target *v1alpha1.FaultTarget, _ topology.Server) error {
	name, err := s.watchedName(ctx)
	if err != nil {
		return err
	}
	w, err := s.askAll(ctx, name)
	if err != nil {
		return err
	}
	primary, votes := w.majority()
	if primary == "" {
		return busy("%s", votes)
	}
	if ours, err := s.names(ctx, primary, target); err != nil || !ours {
		return busy("%s, which is not %s at %s (%v): a failover may have been a moment ago", votes, target.Pod, target.Address, orNothing(err))
	}
	if at := w.failingOver(); at != "" {
		return busy("the sentinel at %s is failing %s over already", at, name)
	}
	if _, err := s.replicasOf(ctx, target.Address); err != nil {
		return err
	}
	setUndo(target, failoverMaster, name)
	setUndo(target, failoverPrimary, primary)
	setUndo(target, failoverEpoch, strconv.FormatInt(w.epoch(), 10))
	for _, a := range w.answered {
		if a.primary == primary {
			setUndo(target, failoverSentinel, a.address)
			break
		}
	}
	if s.mode != v1alpha1.FailoverCoordinated {
		return s.maySend(ctx, target)
	}
	return s.planCare(ctx, target, w)
}

func orNothing(err error) string {
	if err == nil {
		return "it has another run_id"
	}
	return err.Error()
}

// maySend asks the sentinel whether the operator's user may send the command.
func (s sentinelFailover) maySend(ctx context.Context, target *v1alpha1.FaultTarget) error {
	around := s.Surroundings
	around.Login = s.SentinelLogin
	address, name := s.recorded(target, failoverSentinel), s.recorded(target, failoverMaster)
	return mayRun(ctx, around, address, "SENTINEL", "FAILOVER", name)
}

// planCare finds how to keep writes from being lost: the sentinel's own way (Valkey 9), else a pause that ends by itself before any sentinel
// calls the silent primary down and fails over on its own.
func (s sentinelFailover) planCare(ctx context.Context, target *v1alpha1.FaultTarget, w watchers) error {
	if err := s.maySend(ctx, target); err != nil {
		return err
	}
	_, err := s.sentinel(ctx, s.recorded(target, failoverSentinel), "FAILOVER", unknownToAll, "COORDINATED")
	switch {
	case err != nil && !redis.IsReply(err):
		return err
	case err == nil, !strings.Contains(strings.ToLower(err.Error()), "wrong number of arguments"):
		setUndo(target, failoverOption, "COORDINATED")
		return nil
	}
	pause := min(s.timeout, w.downAfter()*4/5)
	switch {
	case s.timeout < leastPause:
		return invalid("spec.action.failover.timeout: %s: this sentinel does not know COORDINATED, so writes are paused until the sentinels have switched, for which they need %s", s.timeout, leastPause)
	case pause < leastPause:
		return unsupported("spec.action.failover.mode: Coordinated: this sentinel does not know COORDINATED, and writes cannot be paused for the %s that a failover takes: "+
			"with down-after-milliseconds %d the sentinels would call the paused primary down and fail over on their own. Raise it to %d, or use Plain",
			leastPause, w.downAfter().Milliseconds(), (leastPause * 5 / 4).Milliseconds())
	}
	setUndo(target, failoverPause, pause.String())
	host, port, _ := net.SplitHostPort(target.Address)
	for _, command := range [][]string{{"CLIENT", "PAUSE", "1", "WRITE"}, {"CLIENT", "UNPAUSE"}, {"REPLICAOF", host, port}, {"CONFIG", "REWRITE"}} {
		if err := mayRun(ctx, s.Surroundings, target.Address, command...); err != nil {
			return err
		}
	}
	return nil
}

func (s sentinelFailover) look(ctx context.Context, target *v1alpha1.FaultTarget) (standing, error) {
	w, err := s.askAll(ctx, s.recorded(target, failoverMaster))
	if err != nil {
		return standing{}, err
	}
	before, err := strconv.ParseInt(s.recorded(target, failoverEpoch), 10, 64)
	if err != nil {
		return standing{}, err
	}
	primary, votes := w.majority()
	recorded := s.recorded(target, failoverPrimary)
	at := w.failingOver()
	switch {
	case primary != "" && w.knowOf(before) && (primary != recorded || at == ""):
		return standing{phase: promoted, primary: primary, since: w.switched(primary), proof: fmt.Sprintf("%s instead of %s (%d)", votes, recorded, before)}, nil
	case at != "":
		return standing{phase: underWay, proof: fmt.Sprintf("the sentinel at %s is failing over; %s", at, votes)}, nil
	case w.epoch() > before: // it told the others, which have not all heard
		return standing{phase: underWay, proof: votes}, nil
	case primary == "":
		return standing{}, busy("%s", votes)
	}
	return standing{phase: resting, primary: primary, proof: votes}, nil
}

func (s sentinelFailover) begin(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pause, paused := s.pause(target)
	if paused {
		// One that an operator left which died is ended first: two in a row would be longer than the sentinels bear.
		if err := s.unpause(ctx, target); err != nil {
			return err
		}
		if _, err := s.Servers.Do(ctx, target.Address, s.Login, "CLIENT", "PAUSE", pause.Milliseconds(), "WRITE"); err != nil {
			return refused(err, s.Surroundings, target.Address, "CLIENT", "PAUSE")
		}
	}
	words := []any{"FAILOVER", s.recorded(target, failoverMaster)}
	if option := s.recorded(target, failoverOption); option != "" {
		words = append(words, option)
	}
	_, err := s.sentinel(ctx, s.recorded(target, failoverSentinel), words...)
	if err == nil || strings.Contains(err.Error(), "INPROG") { // one that runs already is ours, or as good
		return nil
	}
	if paused && redis.IsReply(err) {
		if err := s.unpause(ctx, target); err != nil {
			return err
		}
	}
	return unknownName(err, s.recorded(target, failoverMaster))
}

// pause is for how long writes are paused, and whether they are.
func (s sentinelFailover) pause(target *v1alpha1.FaultTarget) (time.Duration, bool) {
	pause, err := time.ParseDuration(s.recorded(target, failoverPause))
	return pause, err == nil
}

func (s sentinelFailover) unpause(ctx context.Context, target *v1alpha1.FaultTarget) error {
	_, err := s.Servers.Do(ctx, target.Address, s.Login, "CLIENT", "UNPAUSE")
	return refused(err, s.Surroundings, target.Address, "CLIENT", "UNPAUSE")
}

// finish demotes the paused primary before it lets its clients write again: the sentinels would do so only up to ten seconds later, and a client
// that knows no sentinels would write to a primary that is none any more.
func (s sentinelFailover) finish(ctx context.Context, target *v1alpha1.FaultTarget, now standing) error {
	pause, paused := s.pause(target)
	if !paused {
		return nil
	}
	if here, err := s.here(ctx, target); err != nil || !here {
		return err
	}
	old, err := s.replication(ctx, target.Address)
	if err != nil {
		return err
	}
	late, first := old.Role == topology.Primary, s.recorded(target, failoverHeld) == ""
	if moved := now.primary != s.recorded(target, failoverPrimary); moved && (late || first) {
		if err := s.demote(ctx, target, now.primary, late); err != nil {
			return err
		}
	}
	if first {
		switch held := s.now().Sub(begunAt(target)) < pause; {
		case held:
			setUndo(target, failoverHeld, "true")
		case late:
			setUndo(target, failoverHeld, "false")
		}
	}
	return s.unpause(ctx, target)
}

// demote does what the sentinels do to an old primary. One that is a replica already needs its file written: an operator may have died before that.
func (s sentinelFailover) demote(ctx context.Context, target *v1alpha1.FaultTarget, primary string, late bool) error {
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return err
	}
	if late {
		if _, err := s.Servers.Do(ctx, target.Address, s.Login, "REPLICAOF", host, port); err != nil {
			return refused(err, s.Surroundings, target.Address, "REPLICAOF")
		}
	}
	// So that a restart does not bring it back as a primary. A server without a configuration file refuses, and has nothing to come back by.
	if _, err := s.Servers.Do(ctx, target.Address, s.Login, "CONFIG", "REWRITE"); err != nil && !redis.IsReply(err) {
		return err
	}
	return nil
}

// tidy ends a pause. Where the sentinels are about to switch, that must wait until they have: the pause ends by itself if they do not.
func (s sentinelFailover) tidy(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pause, paused := s.pause(target)
	if !paused {
		return nil
	}
	now, err := s.look(ctx, target)
	switch {
	case err == nil && now.phase == promoted:
		return s.finish(ctx, target, now)
	case s.now().Sub(begunAt(target)) > pause && target.InjectedAt != nil:
		return nil
	case err == nil && now.phase == underWay:
		return &InProgress{now.proof}
	}
	here, err := s.here(ctx, target)
	if err != nil || !here {
		return err
	}
	return s.unpause(ctx, target)
}

func (s sentinelFailover) command(target *v1alpha1.FaultTarget) string {
	text := strings.TrimSpace(fmt.Sprintf("SENTINEL FAILOVER %s %s", s.recorded(target, failoverMaster), s.recorded(target, failoverOption)))
	if pause, paused := s.pause(target); paused {
		text = fmt.Sprintf("CLIENT PAUSE %d WRITE at %s, then %s", pause.Milliseconds(), target.Address, text)
	}
	return text + " at " + s.recorded(target, failoverSentinel)
}

func (s sentinelFailover) manualRevertCommand(target *v1alpha1.FaultTarget) string {
	if _, paused := s.pause(target); !paused {
		return ""
	}
	return atServer(target.Address, "CLIENT UNPAUSE")
}

// atServer is a command for a shell.
func atServer(address, command string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("redis-cli -h %s -p %s %s", host, port, command)
}

func (s sentinelFailover) care(_ context.Context, target *v1alpha1.FaultTarget) string {
	pause, paused := s.pause(target)
	switch held := s.recorded(target, failoverHeld); {
	case s.recorded(target, failoverOption) != "":
		return "coordinated by the sentinel"
	case paused && held == "true":
		return "coordinated: writes were paused until the old primary was demoted"
	case paused && held == "false":
		return fmt.Sprintf("uncoordinated: the pause of %s was over before the old primary was demoted", pause)
	case paused:
		return "uncoordinated: whether the pause held until the old primary was demoted is not known"
	}
	return "uncoordinated: what the old primary acknowledged from the promotion to its demotion is lost"
}
