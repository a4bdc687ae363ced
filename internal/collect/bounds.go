package collect

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Limits of the texts and instants of a load pod, whose image may be anybody's: they get into
// conditions, events and logs.
const (
	maxMessage  = 1024
	maxName     = 128
	maxAddress  = 300
	maxClock    = int64(100 * 365 * 24 * time.Hour)
	maxOfLayout = 64 // servers of each role, as an agent reports them
	maxFindings = 16 // notes about the deployment
)

// reason is what the reason of a condition looks like.
var reason = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,63}$`)

// bound refuses what no load pod can report, and shortens what is only too long or cannot be shown.
func bound(status *agent.Status) error {
	states := []agent.State{
		agent.Preparing, agent.Ready, agent.Running, agent.Verifying,
		agent.Finished, agent.Failed,
	}
	switch {
	case !slices.Contains(states, status.State):
		return fmt.Errorf("its status has the state %q", redis.Printable(string(status.State), maxName))
	case len(status.Instance) > maxName:
		return fmt.Errorf("its status has an instance of %d bytes", len(status.Instance))
	}
	for _, at := range []int64{status.Now, status.StartAt, status.StartedAt, status.Wall} {
		if at < -maxClock || at > maxClock {
			return fmt.Errorf("its status has the instant %d", at)
		}
	}
	if err := boundResults(status); err != nil {
		return fmt.Errorf("its status: %w", err)
	}
	status.Run = redis.Printable(status.Run, maxName)
	status.Message = redis.Printable(status.Message, maxMessage)
	if status.Reason != "" && !reason.MatchString(status.Reason) {
		status.Reason = agent.ReasonOther
	}
	status.Notes = status.Notes[:min(len(status.Notes), maxFindings)]
	for i := range status.Notes {
		status.Notes[i] = redis.Printable(status.Notes[i], maxMessage)
	}
	if status.Server != nil {
		status.Server.Bound(redis.Printable)
	}
	if l := status.Layout; l != nil {
		kinds := []topology.Kind{
			topology.KindStandalone, topology.KindReplication, topology.KindSentinel,
			topology.KindCluster,
		}
		if !slices.Contains(kinds, topology.Kind(l.Topology)) {
			return fmt.Errorf("its status has the topology %q", redis.Printable(l.Topology, maxName))
		}
		l.Primaries, l.Replicas = addresses(l.Primaries), addresses(l.Replicas)
	}
	return nil
}

// boundResults does the same for what the pod read back or found out.
func boundResults(status *agent.Status) error {
	if l := status.Ledger; l != nil {
		if err := l.Check(); err != nil {
			return err
		}
		boundLedger(l)
	}
	if g := status.Guarantees; g != nil {
		if err := g.Check(); err != nil {
			return err
		}
		g.Untold = redis.Printable(g.Untold, maxMessage)
	}
	return nil
}

func boundLedger(l *record.Ledger) {
	l.Settings = redis.Printable(l.Settings, maxMessage)
	l.Unread = redis.Printable(l.Unread, maxMessage)
	for i := range l.Notes {
		l.Notes[i] = redis.Printable(l.Notes[i], maxMessage)
	}
}

// addresses drops what is no host:port.
func addresses(list []string) []string {
	kept := slices.DeleteFunc(list, func(address string) bool {
		_, _, err := net.SplitHostPort(address)
		return err != nil || len(address) > maxAddress || redis.Printable(address, maxAddress) != address
	})
	return kept[:min(len(kept), maxOfLayout)]
}

// boundInterval does the same for an interval.
func boundInterval(iv *record.Interval) error {
	if err := iv.Check(); err != nil {
		return fmt.Errorf("interval %d: %w", iv.Index, err)
	}
	for i := range iv.Servers {
		iv.Servers[i].Bound(redis.Printable)
	}
	for i := range iv.Unobserved {
		u := &iv.Unobserved[i]
		u.Address = redis.Printable(u.Address, maxAddress)
		u.Reason = redis.Printable(u.Reason, maxMessage)
	}
	for i := range iv.Agents {
		iv.Agents[i].Bound()
	}
	for i := range iv.LedgerChecks {
		c := &iv.LedgerChecks[i]
		c.Failure = redis.Printable(c.Failure, maxMessage)
	}
	return nil
}
