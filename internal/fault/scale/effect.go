package scale

import (
	"context"
	"fmt"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/format"
)

func (s *replicaScale) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	now, err := s.read(ctx, target)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case now.gone:
		return contract.Inconclusive(
			"StatefulSet %s does not exist any more: something deleted it", now.name)
	case now.replicas == now.old:
		return contract.NotObserved("StatefulSet %s still has %d replicas", now.name,
			now.old)
	}
	var evidence []string
	for i, name := range now.changed() {
		effect, text := s.effectOn(ctx, now, name, i == 0)
		if effect != v1alpha1.EffectConfirmed {
			return effect, text
		}
		evidence = append(evidence, text)
	}
	return v1alpha1.EffectConfirmed, strings.Join(evidence, "; ")
}

// effectOn compares one pod that was added or removed with its primary's list of replicas. In a
// cluster only the first is compared in number, as each may have another primary.
func (s *replicaScale) effectOn(
	ctx context.Context, now *scaling, name string, first bool,
) (v1alpha1.Effect, string) {
	m := now.record.Members[name]
	if m.Address == "" {
		return contract.NotObserved(
			"StatefulSet %s has %d replicas, but pod %s does not exist yet", now.name, now.replicas, name)
	}
	primary, said, err := s.primaryFor(ctx, now, m)
	if err != nil {
		return contract.Unseen(err)
	}
	online := said.lists(name, m.Address)
	if online != (s.by > 0) {
		return contract.NotObserved("primary %s lists %s: %t", primary, name, online)
	}
	verb := "lists"
	if s.by < 0 {
		verb = "no longer lists"
	}
	text := fmt.Sprintf("primary %s %s %s", primary, verb, name)
	if m.Slot == nil || first {
		text += fmt.Sprintf(" (%s instead of %d)", format.Plural(len(said.followers), "replica"),
			now.record.Followers)
	}
	return v1alpha1.EffectConfirmed, text
}

// Follow implements contract.Follower.
func (s *replicaScale) Follow(_ context.Context, target *v1alpha1.FaultTarget) []contract.Sighting {
	record, _, err := contract.Load[scaleRecord](target)
	if err != nil {
		return nil
	}
	var seen []contract.Sighting
	for _, name := range record.pods() {
		m := record.Members[name]
		for _, one := range []contract.Sighting{
			{At: m.Came, Event: eventReplicaAdded, Object: name},
			{At: m.Synced, Event: eventReplicaSynced, Object: name, Message: m.How},
			{At: m.Gone, Event: eventReplicaRemoved, Object: name},
		} {
			if !one.At.IsZero() {
				seen = append(seen, one)
			}
		}
	}
	return seen
}
