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
	Over    bool
	Removed bool // with its pod, by a smaller number of replicas
	// the fault that is judged acts beside it: the server is missed, and not waited for
	Beside bool
	Power  bool // with its machine, and all else on it
	// what the server was when the fault selected it
	UID, RunID string
	Restarts   int32 // of its container
	Role       v1alpha1.RedisRole
}

// of reports whether the hit is one of a data set: of one of its copies, or of one that had these.
func (h *Hit) of(d *target.Data) bool {
	return slices.ContainsFunc(d.Copies, func(c target.Copy) bool {
		return h.is(c.Name, c.Place) || slices.Contains(h.Copies, c.Name)
	})
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
// which the fault that is judged acts; nil where that is not the reason, or its process is another
// one since.
func silencedBeside(redis target.Redis, s *target.Server, others []Hit) *Hit {
	if s.Err == nil {
		return nil
	}
	i := slices.IndexFunc(others, func(h Hit) bool {
		return h.Beside && !h.Over && h.Pod == s.Pod.Name && h.UID == string(s.Pod.UID) &&
			h.Restarts == redis.RestartCount(s.Pod, redis.Container(s.Pod).Name)
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
func HitsOf(
	f *v1alpha1.RedisFault, traits contract.Traits, judged *v1alpha1.RedisFault, now time.Time,
) []Hit {
	status := &f.Status
	holds := status.Holding != nil && *status.Holding
	if holds && f.Spec.Action.Removes() {
		return removedBy(f, judged)
	}
	recent := holds || status.RevertedAt != nil && now.Sub(status.RevertedAt.Time) < remembered
	if !recent || !disturbs(traits) {
		return nil
	}
	var hits []Hit
	for i := range status.Targets {
		t := &status.Targets[i]
		silenced := holds && silences(t, status, traits)
		if !silenced && t.InjectedAt == nil {
			continue
		}
		hits = append(hits, Hit{
			Pod:     t.Pod,
			Address: t.Address,
			Fault:   f.Name,
			Copies:  t.Copies,
			Over:    !silenced,
			Beside:  silenced && slices.Contains(judged.Spec.Beside, f.Name),
			Power:   f.Spec.Action.SwitchesPower(),

			UID:      t.UID,
			RunID:    t.RunID,
			Restarts: t.RestartCount,
			Role:     t.Role,
		})
	}
	return hits
}

// silences reports whether a fault that acts keeps a target from serving: one that rolls pods only
// until they are replaced, and again while it is reverted.
func silences(
	t *v1alpha1.FaultTarget, status *v1alpha1.RedisFaultStatus, traits contract.Traits,
) bool {
	return traits.Silences || traits.RollsPods && (t.ActiveAt == nil || status.RevertingSince != nil)
}

// removedBy are the copies of which a fault removes some: until it has, none of them can be relied
// on, from then on those that are not there.
func removedBy(f, judged *v1alpha1.RedisFault) []Hit {
	var hits []Hit
	for i := range f.Status.Targets {
		t := &f.Status.Targets[i]
		for _, pod := range t.Copies {
			hits = append(hits, Hit{
				Pod:     pod,
				Fault:   f.Name,
				Copies:  []string{t.Pod},
				Over:    t.ActiveAt != nil,
				Removed: true,
				Beside:  slices.Contains(judged.Spec.Beside, f.Name) || ofItsLoad(f, judged),
			})
		}
	}
	return hits
}

// ofItsLoad reports whether a fault is a setting of the load of another one: that acts beside it.
func ofItsLoad(setting, f *v1alpha1.RedisFault) bool {
	a, b := setting.Spec.LoadTestRef, f.Spec.LoadTestRef
	return setting.Spec.Setting && a != nil && b != nil && a.Name == b.Name
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
	node   string // that loses its power; "" = none
	before []Hit  // by this fault
	others []Hit
	// the other faults are taken for over, and what they hit for well, except for those beside which
	// this one acts
	passed bool
	// this fault has hit a primary: replicas that have lost theirs are no worse than before
	lostPrimary bool
}

// hasLostPrimary reports whether this fault has hit a primary, or one beside which it acts that of
// a data set.
func (b *blow) hasLostPrimary(d *target.Data) bool {
	return b.lostPrimary || slices.ContainsFunc(b.others, func(h Hit) bool {
		return h.Beside && h.Role == v1alpha1.RolePrimary && h.of(d)
	})
}

// silencedPrimary is the primary of a data set that does not answer, as a fault beside which this
// one acts holds it, and that fault; nil where there is none.
func (b *blow) silencedPrimary(redis target.Redis, d *target.Data) (*target.Server, *Hit) {
	for i := range d.Copies {
		s := d.Copies[i].Server
		if s == nil {
			continue
		}
		if h := silencedBeside(redis, s, b.others); h != nil && h.Role == v1alpha1.RolePrimary {
			return s, h
		}
	}
	return nil, nil
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
