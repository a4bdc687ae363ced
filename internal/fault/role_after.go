package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// What followed the end of a primary.
const (
	EventFailedOver = "FailedOver" // another server is the primary now
	EventNoFailover = "NoFailover" // the pod of the same name is the primary again
	// it was not decided which server is the primary when the observation ended
	EventTwoPrimaries = "TwoPrimaries"
)

// After is what became of the primaries that a fault has ended.
type After struct {
	Seen []contract.Sighting // without a time
	// why it is not decided yet which server is the primary; "" = it is decided, or cannot be known
	Open string
}

// RolesAfter returns, for each target that was a primary with replicas, which server is the primary
// now: where there are sentinels, the one that most of them name. Servers that do not answer and
// primaries that had no replica are skipped.
func RolesAfter(ctx context.Context, redis target.Redis, hit []v1alpha1.FaultTarget) After {
	var after After
	if !slices.ContainsFunc(hit, func(t v1alpha1.FaultTarget) bool {
		return t.Role == v1alpha1.RolePrimary
	}) {
		return after
	}
	found, err := redis.Survey(ctx)
	if err != nil {
		return after
	}
	if err := redis.ConfirmPrimaries(ctx, found); err != nil {
		after.Open = err.Error()
		undecided, ok := errors.AsType[*target.Undecided](err)
		if ok {
			after.Open = undecided.Why
		}
		return after
	}
	for i := range hit {
		event, message, open := roleAfter(found, &hit[i])
		if event != "" {
			after.Seen = append(after.Seen, contract.Sighting{
				Event:   event,
				Object:  hit[i].Pod,
				Message: message,
			})
		}
		after.Open = cmp.Or(after.Open, open)
	}
	return after
}

// roleAfter compares a primary that was ended with the servers that run now.
func roleAfter(found []target.Server, t *v1alpha1.FaultTarget) (event, message, open string) {
	if t.Role != v1alpha1.RolePrimary || t.InjectedAt == nil {
		return "", "", ""
	}
	i := slices.IndexFunc(found, func(s target.Server) bool {
		return s.Pod.Name == t.Pod &&
			s.Err == nil
	})
	if i < 0 {
		event, message = roleUnderOtherName(found, t.InjectedAt.Time)
		return event, message, ""
	}
	return roleUnderSameName(found, &found[i])
}

// roleUnderSameName is for a pod that has the name of the primary that was ended: it is compared
// with the other servers of its shard. Its role is unknown where it reports to be the primary, and
// the sentinels name another server.
func roleUnderSameName(
	found []target.Server, successor *target.Server,
) (event, message, open string) {
	var primaries []string
	var replicas []*target.Server
	for i := range found {
		s := &found[i]
		if s == successor || s.Err != nil || s.Shard != successor.Shard {
			continue
		}
		switch s.State.Role {
		case topology.Replica:
			replicas = append(replicas, s)
		case topology.Primary:
			primaries = append(primaries, s.Pod.Name)
		}
	}
	now := strings.Join(primaries, ", ")
	switch {
	case successor.State.Role == topology.Primary && len(replicas) > 0:
		return EventNoFailover, fmt.Sprintf("%s is the primary again, with %s", successor.Pod.Name,
			asReplicas(replicas)), ""
	case successor.State.Role == topology.Replica && len(primaries) > 0:
		return EventFailedOver, fmt.Sprintf("%s is the primary now, %s %s", now, successor.Pod.Name,
			asReplica(successor)), ""
	case successor.State.Role == topology.Unknown && len(primaries) > 0:
		return EventFailedOver, fmt.Sprintf("%s is the primary now, by the sentinels", now),
			fmt.Sprintf("%s still reports to be the primary, the sentinels name %s", successor.Pod.Name, now)
	case successor.State.Role == topology.Unknown:
		return "", "", successor.Pod.Name +
			" reports to be the primary, the sentinels name another server"
	}
	return "", "", ""
}

// asReplicas counts replicas, and names those that are not connected to their primary: in a cluster
// one may go on asking for it at its former address.
func asReplicas(all []*target.Server) string {
	var lost []string
	for _, s := range all {
		if !follows(s) {
			lost = append(lost, s.Pod.Name)
		}
	}
	counted := fmt.Sprintf("%d replicas", len(all))
	if len(lost) > 0 {
		counted += fmt.Sprintf(", of which %s is not connected to its primary", strings.Join(lost, ", "))
	}
	return counted
}

// asReplica is what a replica is to the primary. One that nobody has told of the failover is none
// of it: some operators start each server as a replica of itself, and tell it later which to follow.
func asReplica(s *target.Server) string {
	if !follows(s) {
		return "a replica that is not connected to its primary"
	}
	return "its replica"
}

// follows reports whether a replica is connected to a primary, or copies its data.
func follows(s *target.Server) bool {
	return s.State.Replication.LinkUp || s.State.Replication.Syncing
}

// roleUnderOtherName is for a primary whose name no pod has any more, as in a Deployment: a primary
// whose pod is older than the injection was a replica before.
func roleUnderOtherName(found []target.Server, injected time.Time) (event, message string) {
	var promoted []string
	for i := range found {
		s := &found[i]
		if s.Err == nil && s.State.Role == topology.Primary &&
			s.Pod.CreationTimestamp.Time.Before(injected) {
			promoted = append(promoted, s.Pod.Name)
		}
	}
	if len(promoted) != 1 {
		return "", ""
	}
	return EventFailedOver, promoted[0] + " is the primary now"
}
