package failover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/sentinel"
)

const (
	// leastPause is the shortest pause of writes for a failover: from the command to the switch the
	// sentinels take about 2 s.
	leastPause = 3 * time.Second
	// unknownToAll is a name that no sentinel watches: the replies to commands with it show which
	// commands a sentinel supports, and nothing is executed.
	unknownToAll = "redquake-asks-what-you-know"
)

// sentinelFailover sends SENTINEL FAILOVER. By itself that does not stop clients from writing to
// the old primary, for up to ten seconds after the promotion, and those writes are lost. With
// Coordinated, no write is accepted in between.
type sentinelFailover struct {
	failover
	primary string
	record  *sentinelRecord
}

func (f failover) planSentinel(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (failoverRecord, error) {
	none := failoverRecord{}
	name, err := f.Sentinels.WatchedName(ctx)
	if err != nil {
		return none, err
	}
	w, err := f.Sentinels.AskAll(ctx, name)
	if err != nil {
		return none, err
	}
	primary, err := f.agreedPrimary(ctx, target, w)
	if err != nil {
		return none, err
	}
	if _, err := f.replicasOf(ctx, target.Address); err != nil {
		return none, err
	}
	record := &sentinelRecord{MasterName: name, Epoch: w.Epoch()}
	for _, a := range w.Answered {
		if a.Primary == primary {
			record.Sentinel = a.Address
			break
		}
	}
	if err := f.maySend(ctx, record); err != nil {
		return none, err
	}
	if f.mode == v1alpha1.FailoverCoordinated {
		err = f.planCoordination(ctx, target, w, record)
	}
	return failoverRecord{Primary: primary, Sentinel: record}, err
}

// agreedPrimary is the target's address as most sentinels give it. A Problem returns why the target
// is not their primary, or is failed over already.
func (f failover) agreedPrimary(
	ctx context.Context, at *v1alpha1.FaultTarget, w sentinel.Watchers,
) (string, error) {
	primary, votes := w.Majority()
	if primary == "" {
		return "", problem.NotYet("%s", votes)
	}
	err := f.Reaches(ctx, primary, "the majority of the sentinels", "the primary")
	if err != nil {
		return "", err
	}
	same, err := f.Same(ctx, primary, at.Address, at.RunID)
	if err == nil && !same {
		err = errors.New("it has another run_id")
	}
	if err != nil {
		return "", problem.NotYet("%s, which is not %s at %s (%v): a failover may have been a moment ago",
			votes, at.Pod, at.Address, err)
	}
	if at := w.FailingOver(); at != "" {
		return "", problem.NotYet("the sentinel at %s is failing %s over already", at, w.Name)
	}
	return primary, nil
}

// maySend checks that the operator's user may send the command to the sentinel.
func (f failover) maySend(ctx context.Context, record *sentinelRecord) error {
	sentinels := f.Redis
	sentinels.Login = f.Sentinels.Login
	return sentinels.MayRun(ctx, record.Sentinel, "SENTINEL", "FAILOVER", record.MasterName)
}

// planCoordination chooses how to avoid lost writes: the sentinel's option COORDINATED (Valkey 9),
// else a pause that ends before any sentinel considers the paused primary down and starts a
// failover itself.
func (f failover) planCoordination(
	ctx context.Context, target *v1alpha1.FaultTarget, w sentinel.Watchers, record *sentinelRecord,
) error {
	_, err := f.Sentinels.Do(ctx, record.Sentinel, "FAILOVER", unknownToAll, "COORDINATED")
	switch {
	case err != nil && !redis.IsReply(err):
		return err
	case err == nil, !strings.Contains(strings.ToLower(err.Error()), "wrong number of arguments"):
		record.Option = "COORDINATED"
		return nil
	}
	pause := min(f.timeout, w.DownAfter()*4/5)
	switch {
	case f.timeout < leastPause:
		return problem.Invalid(
			"spec.action.failover.timeout: %s: this sentinel does not support COORDINATED, so writes are "+
				"paused until the sentinels have switched, for which they need %s", f.timeout, leastPause)
	case pause < leastPause:
		return problem.Unsupported(
			"spec.action.failover.mode: Coordinated: this sentinel does not support COORDINATED, and "+
				"writes cannot be paused for the %s that a failover takes: "+
				"with down-after-milliseconds %d the sentinels would consider the paused primary down and "+
				"start a failover themselves. Raise it to %d, or use Plain",
			leastPause, w.DownAfter().Milliseconds(), (leastPause * 5 / 4).Milliseconds())
	}
	record.Pause = pause
	host, port, _ := net.SplitHostPort(target.Address)
	for _, command := range [][]string{
		{"CLIENT", "PAUSE", "1", "WRITE"},
		{"CLIENT", "UNPAUSE"},
		{"REPLICAOF", host, port},
		{"CONFIG", "REWRITE"},
	} {
		err := f.MayRun(ctx, target.Address, command...)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s sentinelFailover) begin(ctx context.Context, target *v1alpha1.FaultTarget) error {
	paused := s.record.Pause > 0
	if paused {
		// A pause that a previous operator process left is ended first: two in a row would last longer
		// than down-after-milliseconds.
		if err := s.unpause(ctx, target); err != nil {
			return err
		}
		_, err := s.Servers.Do(ctx, target.Address, s.Login, "CLIENT", "PAUSE",
			s.record.Pause.Milliseconds(), "WRITE")
		if err != nil {
			return s.Refusal(err, target.Address, "CLIENT", "PAUSE")
		}
	}
	words := []any{"FAILOVER", s.record.MasterName}
	if s.record.Option != "" {
		words = append(words, s.record.Option)
	}
	_, err := s.Sentinels.Do(ctx, s.record.Sentinel, words...)
	// a failover is in progress, whoever began it
	if err == nil || strings.Contains(err.Error(), "INPROG") {
		return nil
	}
	if paused && redis.IsReply(err) {
		if err := s.unpause(ctx, target); err != nil {
			return err
		}
	}
	return s.Sentinels.UnknownName(err, s.record.MasterName)
}

// revert ends a pause, but not during a failover: that must be complete first. If it is not, the
// pause ends by itself.
func (s sentinelFailover) revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	if s.record.Pause == 0 {
		return contract.Progress{}, nil
	}
	now, err := s.observe(ctx, target)
	switch {
	case err == nil && now.phase == promoted:
		return s.finish(ctx, target, now)
	case s.now().Sub(begunAt(target)) > s.record.Pause && target.InjectedAt != nil:
		return contract.Progress{}, nil
	case err == nil && now.phase == underWay:
		return contract.Underway("%s", now.proof), nil
	}
	here, err := s.here(ctx, target)
	if err != nil || !here {
		return contract.Progress{}, err
	}
	return contract.Progress{}, s.unpause(ctx, target)
}

func (s sentinelFailover) observe(
	ctx context.Context, _ *v1alpha1.FaultTarget,
) (observation, error) {
	w, err := s.Sentinels.AskAll(ctx, s.record.MasterName)
	if err != nil {
		return observation{}, err
	}
	primary, votes := w.Majority()
	recorded, before := s.primary, s.record.Epoch
	at := w.FailingOver()
	switch {
	case primary != "" && w.HaveEpochAfter(before) && (primary != recorded || at == ""):
		return observation{
			phase:   promoted,
			primary: primary,
			since:   w.Switched(primary),
			proof:   fmt.Sprintf("%s instead of %s (%d)", votes, recorded, before),
		}, nil
	case at != "":
		return observation{
			phase: underWay,
			proof: fmt.Sprintf("the sentinel at %s is failing over; %s", at, votes),
		}, nil
	case w.Epoch() > before: // not all sentinels have the new epoch yet
		return observation{phase: underWay, proof: votes}, nil
	case primary == "":
		return observation{}, problem.NotYet("%s", votes)
	}
	return observation{
		phase:   resting,
		primary: primary,
		proof:   votes,
	}, nil
}

// finish demotes the paused primary before its clients may write again. The sentinels demote it up
// to ten seconds later, and until then a client that does not use the sentinels would write to the
// old primary.
func (s sentinelFailover) finish(
	ctx context.Context, target *v1alpha1.FaultTarget, now observation,
) (contract.Progress, error) {
	return contract.Progress{}, s.complete(ctx, target, now)
}

func (s sentinelFailover) complete(
	ctx context.Context, target *v1alpha1.FaultTarget, now observation,
) error {
	if s.record.Pause == 0 {
		return nil
	}
	if here, err := s.here(ctx, target); err != nil || !here {
		return err
	}
	old, err := s.replication(ctx, target.Address)
	if err != nil {
		return err
	}
	late, first := old.Role == topology.Primary, s.record.Held == nil
	moved := now.primary != s.primary
	if moved && (late || first) {
		err := s.Reaches(ctx, now.primary, "the majority of the sentinels", "the primary")
		if err != nil {
			return err
		}
		err = s.demote(ctx, target, now.primary, late)
		if err != nil {
			return err
		}
	}
	if first {
		if err := s.recordHeld(target, late); err != nil {
			return err
		}
	}
	return s.unpause(ctx, target)
}

func (s sentinelFailover) unpause(ctx context.Context, target *v1alpha1.FaultTarget) error {
	_, err := s.Servers.Do(ctx, target.Address, s.Login, "CLIENT", "UNPAUSE")
	return s.Refusal(err, target.Address, "CLIENT", "UNPAUSE")
}

// recordHeld records whether the pause lasted until the old primary was demoted. A primary that was
// demoted by the sentinels after the pause does not show when.
func (s sentinelFailover) recordHeld(target *v1alpha1.FaultTarget, late bool) error {
	held := s.now().Sub(begunAt(target)) < s.record.Pause
	if !held && !late {
		return nil
	}
	s.record.Held = &held
	return contract.Save(target, failoverRecord{
		Method:   v1alpha1.FailoverSentinel,
		Primary:  s.primary,
		Sentinel: s.record,
	})
}

// demote does what the sentinels do to an old primary. A server that is a replica already still
// needs its file written: the operator may have restarted before that.
func (s sentinelFailover) demote(
	ctx context.Context, target *v1alpha1.FaultTarget, primary string, late bool,
) error {
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return err
	}
	if late {
		_, err := s.Servers.Do(ctx, target.Address, s.Login, "REPLICAOF", host, port)
		if err != nil {
			return s.Refusal(err, target.Address, "REPLICAOF")
		}
	}
	// So that it does not restart as a primary. A server without a configuration file returns an
	// error, and restarts as its command line says.
	_, err = s.Servers.Do(ctx, target.Address, s.Login, "CONFIG", "REWRITE")
	if err != nil && !redis.IsReply(err) {
		return err
	}
	return nil
}

func (s sentinelFailover) command(target *v1alpha1.FaultTarget) string {
	text := strings.TrimSpace(fmt.Sprintf("SENTINEL FAILOVER %s %s", s.record.MasterName,
		s.record.Option))
	if pause := s.record.Pause; pause > 0 {
		text = fmt.Sprintf("CLIENT PAUSE %d WRITE at %s, then %s", pause.Milliseconds(), target.Address,
			text)
	}
	return text + " at " + s.record.Sentinel
}

func (s sentinelFailover) manualRevertCommand(target *v1alpha1.FaultTarget) string {
	if s.record.Pause == 0 {
		return ""
	}
	return s.CLIAt(target.Address, "CLIENT UNPAUSE")
}

func (s sentinelFailover) coordination(context.Context, *v1alpha1.FaultTarget) string {
	switch held := s.record.Held; {
	case s.record.Option != "":
		return "coordinated by the sentinel"
	case s.record.Pause > 0 && held == nil:
		return "uncoordinated: whether the pause lasted until the old primary was demoted is unknown"
	case s.record.Pause > 0 && *held:
		return "coordinated: writes were paused until the old primary was demoted"
	case s.record.Pause > 0:
		return fmt.Sprintf("uncoordinated: the pause of %s was over before the old primary was demoted",
			s.record.Pause)
	}
	return "uncoordinated: what the old primary acknowledged from the promotion to its demotion is lost"
}
