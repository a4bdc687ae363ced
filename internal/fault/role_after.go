package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// What became of a primary that was ended.
const (
	EventFailedOver = "FailedOver" // another server is the primary now
	EventNoFailover = "NoFailover" // the pod of the same name is the primary again
)

// RolesAfter says for each target that was a primary with replicas who is the primary now. The sightings bear no time. What does not answer,
// and what had no replica, is passed over.
func RolesAfter(ctx context.Context, redis target.Redis, hit []v1alpha1.FaultTarget) []contract.Sighting {
	if !slices.ContainsFunc(hit, func(t v1alpha1.FaultTarget) bool { return t.Role == v1alpha1.RolePrimary }) {
		return nil
	}
	found, err := redis.Survey(ctx)
	if err != nil {
		return nil
	}
	var seen []contract.Sighting
	for i := range hit {
		if event, message := roleAfter(found, &hit[i]); event != "" {
			seen = append(seen, contract.Sighting{Event: event, Object: hit[i].Pod, Message: message})
		}
	}
	return seen
}

// roleAfter compares a primary that was ended with the servers of its shard. Its pod's name stands for it; where none bears it any more, as in a
// Deployment, a primary whose pod is older than the injection was a replica before.
func roleAfter(found []target.Server, t *v1alpha1.FaultTarget) (event, message string) {
	if t.Role != v1alpha1.RolePrimary || t.InjectedAt == nil {
		return "", ""
	}
	own := slices.IndexFunc(found, func(s target.Server) bool { return s.Pod.Name == t.Pod && s.Err == nil })
	var primaries []string
	replicas := 0
	for i := range found {
		s := &found[i]
		if i == own || s.Err != nil || own >= 0 && s.Shard != found[own].Shard {
			continue
		}
		switch {
		case s.Said.Role == topology.Replica:
			replicas++
		case s.Said.Role == topology.Primary && (own >= 0 || s.Pod.CreationTimestamp.Time.Before(t.InjectedAt.Time)):
			primaries = append(primaries, s.Pod.Name)
		}
	}
	now := strings.Join(primaries, ", ")
	switch {
	case own >= 0 && found[own].Said.Role == topology.Primary && replicas > 0:
		return EventNoFailover, fmt.Sprintf("%s is the primary again, with %d replicas", t.Pod, replicas)
	case own >= 0 && found[own].Said.Role == topology.Replica && len(primaries) > 0:
		return EventFailedOver, fmt.Sprintf("%s is the primary now, %s its replica", now, t.Pod)
	case own < 0 && len(primaries) == 1:
		return EventFailedOver, fmt.Sprintf("%s is the primary now", now)
	}
	return "", ""
}
