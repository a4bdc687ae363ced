package guard

import (
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
)

// Hit is a pod that another fault has hit or will hit.
type Hit struct {
	Pod, Address string
	Fault        string   // its name
	Copies       []string // pods in which other copies of its data were
	// it does not keep the server from serving any more: whether the copy is in sync again has to be
	// seen
	Over bool
	// the fault that is judged acts beside it: the server is missed, and not waited for
	Beside bool
	// what the server was when the fault selected it
	UID, RunID string
	Role       v1alpha1.RedisRole
}

// by is the fault that has to be waited for until the server serves again; "" = none, as the fault
// that is judged acts beside it.
func (h *Hit) by() string {
	if h.Beside {
		return ""
	}
	return h.Fault
}

// is reports whether the hit is one of a server, which is known by its pod, else by its address.
func (h *Hit) is(pod, address string) bool {
	return h.Pod == pod || address != "" && h.Address == address
}

// silencedBeside returns what is known of a server that does not answer, as a fault holds it beside
// which the fault that is judged acts; nil where that is not the reason.
func silencedBeside(s *target.Server, others []Hit) *Hit {
	if s.Err == nil {
		return nil
	}
	i := slices.IndexFunc(others, func(h Hit) bool {
		return h.Beside && h.Pod == s.Pod.Name && h.UID == string(s.Pod.UID)
	})
	if i < 0 {
		return nil
	}
	return &others[i]
}

// remembered is how long a copy that a fault has hit is missed where it does not show: its server
// may still be starting.
const remembered = 10 * time.Minute

// HitsOf returns the pods that a fault has hit or will hit, and that are not known to have
// recovered, for the fault that is judged.
func HitsOf(f *v1alpha1.RedisFault, traits contract.Traits, judged *v1alpha1.RedisFault, now time.Time) []Hit {
	status := &f.Status
	holds := status.Holding != nil && *status.Holding
	recent := holds || status.RevertedAt != nil && now.Sub(status.RevertedAt.Time) < remembered
	if !recent || !disturbs(traits) {
		return nil
	}
	var hits []Hit
	for i := range status.Targets {
		t := &status.Targets[i]
		rolls := traits.RollsPods && (t.ActiveAt == nil || status.RevertingSince != nil)
		silenced := holds && (traits.Silences || rolls)
		if silenced || t.InjectedAt != nil {
			hits = append(hits, Hit{
				Pod:     t.Pod,
				Address: t.Address,
				Fault:   f.Name,
				Copies:  t.Copies,
				Over:    !silenced,
				Beside:  silenced && slices.Contains(judged.Spec.Beside, f.Name),
				UID:     t.UID,
				RunID:   t.RunID,
				Role:    t.Role,
			})
		}
	}
	return hits
}

// disturbs reports whether a fault keeps servers from serving, if only for as long as they need to
// start.
func disturbs(traits contract.Traits) bool {
	return traits.Silences || ends(traits)
}

// ends reports whether a fault ends the processes of servers.
func ends(traits contract.Traits) bool {
	return traits.EndsServer || traits.RollsPods
}

// blow is the pods that a fault is about to hit, and those that are hit already.
type blow struct {
	now    []string
	before []Hit // by this fault
	others []Hit
	// the other faults are taken for over, and what they hit for well, except for those beside which
	// this one acts
	passed bool
	// this fault has hit a primary, or one beside which it acts: replicas that have lost theirs are no
	// worse than before
	lostPrimary bool
}

func newBlow(others []Hit) *blow {
	return &blow{
		others:      others,
		lostPrimary: slices.ContainsFunc(others, func(h Hit) bool { return h.Beside && h.Role == v1alpha1.RolePrimary }),
	}
}

// add adds a target that is hit already. One whose process has been replaced since counts by what
// it shows.
func (b *blow) add(t *v1alpha1.FaultTarget, census *target.Census, traits contract.Traits) {
	if t.InjectedAt == nil || slices.Contains(b.now, t.Pod) {
		return
	}
	b.lostPrimary = b.lostPrimary || t.Role == v1alpha1.RolePrimary
	replaced := slices.ContainsFunc(census.Servers, func(s target.Server) bool {
		return s.Pod.Name == t.Pod && s.Err == nil && s.State.RunID != t.RunID
	})
	b.before = append(b.before, Hit{
		Pod:     t.Pod,
		Address: t.Address,
		Copies:  t.Copies,
		Over:    replaced && (traits.Lasts == 0 || traits.RollsPods),
	})
}

// hits reports whether this fault hits a pod, or has.
func (b *blow) hits(pod string) bool {
	return slices.Contains(b.now, pod) ||
		slices.ContainsFunc(b.before, func(h Hit) bool { return !h.Over && h.Pod == pod })
}

// kept is why a server does not serve although it seems to: this fault or another one keeps it from
// that. The text is empty where none does.
func (b *blow) kept(pod, address string) reason {
	is := func(h Hit) bool { return !h.Over && h.is(pod, address) }
	if i := slices.IndexFunc(b.before, is); i >= 0 {
		return reason{text: "this fault has hit " + b.before[i].Pod}
	}
	if i := slices.IndexFunc(b.others, is); i >= 0 {
		return reason{
			text: "RedisFault " + b.others[i].Fault + " holds " + b.others[i].Pod,
			by:   b.others[i].by(),
		}
	}
	return reason{}
}

// hitByOthers reports whether another fault has hit a server, or will.
func (b *blow) hitByOthers(pod, address string) bool {
	return slices.ContainsFunc(b.others, func(h Hit) bool { return h.is(pod, address) })
}

// later is the same blow after the other faults, except for those beside which this one acts.
func (b *blow) later() *blow {
	then := *b
	then.passed = true
	return &then
}
