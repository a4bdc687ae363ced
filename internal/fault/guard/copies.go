package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/podstate"
)

// toll is what a blow leaves of a data set.
type toll struct {
	known int
	now   []string // pods that are hit now
	spare int      // copies in sync that no fault hits
	lost  []reason // why the others cannot take over

	counted map[string]bool // the pods of the copies that are known
}

// tollOf counts the copies of a data set: those that show, those that faults have hit and that do not
// show any more, and those of which nothing is known.
func tollOf(d *target.Data, b *blow) toll {
	t := toll{counted: map[string]bool{}}
	orphans := d.Primary() == nil && b.hasLostPrimary(d)
	for i := range d.Copies {
		t.count(&d.Copies[i], b, orphans)
	}
	for t.countGone(d, b) { // copies of copies
		continue
	}
	if d.Primary() == nil {
		t.countUnlisted(b)
	}
	return t
}

// countGone counts the copies that faults have hit and that do not show any more, of those that are
// counted, and reports whether there were any.
func (t *toll) countGone(d *target.Data, b *blow) (found bool) {
	for _, h := range slices.Concat(b.before, b.others) {
		of := slices.ContainsFunc(h.Copies, func(pod string) bool { return t.counted[pod] })
		if !of || t.counted[h.Pod] ||
			slices.ContainsFunc(d.Copies, func(c target.Copy) bool { return c.Place != "" && c.Place == h.Address }) {
			continue
		}
		found = true
		t.add(h.Pod)
		if b.passed && h.by() != "" {
			t.spare++
			continue
		}
		t.lost = append(t.lost, missed(h))
	}
	return found
}

// countUnlisted counts the copies elsewhere, which only the primary lists, and that does not answer,
// as a fault holds it beside which this one acts.
func (t *toll) countUnlisted(b *blow) {
	for _, h := range b.others {
		if !h.Beside || h.Over || h.Role != v1alpha1.RolePrimary || !t.counted[h.Pod] {
			continue
		}
		for _, pod := range h.Copies {
			if t.counted[pod] {
				continue
			}
			t.add(pod)
			t.lost = append(t.lost, reason{
				text: fmt.Sprintf("whether %s is in sync is not known, while RedisFault %s keeps its primary from "+
					"answering", pod, h.Fault),
			})
		}
	}
}

func (t *toll) add(pod string) {
	t.counted[pod] = true
	t.known++
}

// missed is why a copy that a fault has hit cannot take over.
func missed(h Hit) reason {
	switch {
	case h.Fault == "":
		return reason{text: "this fault has hit " + h.Pod}
	case h.Removed:
		return reason{text: fmt.Sprintf("RedisFault %s has removed %s", h.Fault, h.Pod), by: h.by()}
	case h.Over:
		return reason{
			text: fmt.Sprintf("%s, which RedisFault %s has hit, is not in sync again", h.Pod, h.Fault),
		}
	}
	return reason{text: fmt.Sprintf("RedisFault %s holds %s", h.Fault, h.Pod), by: h.by()}
}

// count counts one copy. orphans tells that faults have hit the primary, which does not answer.
func (t *toll) count(c *target.Copy, b *blow, orphans bool) {
	t.add(c.Name)
	behind := c.Behind
	if orphans && isOrphan(c.Server) {
		behind = ""
	}
	switch kept := b.kept(c.Name, c.Place); {
	case slices.Contains(b.now, c.Name):
		t.now = append(t.now, c.Name)
	case b.passed && (kept.text == "" || kept.by != "") && b.hitByOthers(c.Name, c.Place):
		t.spare++
	case kept.text != "":
		t.lost = append(t.lost, kept)
	case behind != "":
		t.lost = append(t.lost, reason{text: c.Name + " " + behind})
	default:
		t.spare++
	}
}

// isOrphan reports whether a server is a replica that has its data, whether its primary is there or
// not.
func isOrphan(s *target.Server) bool {
	return s != nil && s.Err == nil && !s.State.Loading && s.State.Role == topology.Replica &&
		!s.State.Replication.Syncing && s.State.Replication.WasUp
}

// sparesCopies refuses to hit the last copy in sync of data that has several copies. A server
// without a copy is no reason to refuse: its outage is the purpose of the fault.
func (s *scene) sparesCopies(b *blow) *tooWide {
	for i := range s.data {
		d := &s.data[i]
		t := tollOf(d, b)
		if len(t.now) > 0 && t.spare == 0 && t.known > 1 {
			return &tooWide{
				v1alpha1.AllowAllCopies,
				fmt.Sprintf("it would hit the last copy in sync of %s (%s)", d.Name, strings.Join(t.now, ", ")),
				t.lost,
			}
		}
	}
	return nil
}

// inTurn is a guard of a fault that hits one pod after the other, the next when the one before is in
// sync again.
func inTurn(guard func(*blow) *tooWide) func(*blow) *tooWide {
	return func(b *blow) *tooWide {
		for _, pod := range b.now {
			one := *b
			one.now = []string{pod}
			if wide := guard(&one); wide != nil {
				return wide
			}
		}
		return nil
	}
}

// keepsData refuses to end a primary that would come back without its data while there are other
// copies: they would copy the empty data set.
func (s *scene) keepsData(b *blow) *tooWide {
	for i := range s.data {
		d := &s.data[i]
		p := s.primaryOf(d, b)
		if p == nil || s.forgets[p.Pod.Name] == "" || !slices.Contains(b.now, p.Pod.Name) {
			continue
		}
		t := tollOf(d, b)
		if others := t.known - 1; others > 0 {
			return &tooWide{
				v1alpha1.AllowDataLoss,
				fmt.Sprintf(
					"it would end the server of pod %s, the primary of %d other copies, which comes back without data, as %s; they would copy that",
					p.Pod.Name, others, s.forgets[p.Pod.Name]),
				slices.DeleteFunc(t.lost, func(r reason) bool { return r.by == "" }),
			}
		}
	}
	return nil
}

// primaryOf is the primary of a data set, also one that a fault beside which this one acts keeps from
// answering; nil = there is none.
func (s *scene) primaryOf(d *target.Data, b *blow) *target.Server {
	if p := d.Primary(); p != nil {
		return p
	}
	p, _ := b.silencedPrimary(s.redis, d)
	return p
}

// askForgetful asks the primaries that a fault hits whether they come back without their data;
// others copy them anew.
func (s *scene) askForgetful(
	ctx context.Context, of target.Redis, b *blow, traits contract.Traits,
) map[string]string {
	why := map[string]string{}
	for i := range s.data {
		p := s.primaryOf(&s.data[i], b)
		if p == nil || !slices.Contains(b.now, p.Pod.Name) {
			continue
		}
		end := target.End{
			Abrupt:  traits.Abrupt,
			NewPod:  traits.NewPod || traits.RollsPods,
			NewNode: traits.Taints,
		}
		restarts := ends(traits)
		container := of.Container(p.Pod)
		if !restarts && container.LivenessProbe != nil {
			restarts = traits.Lasts >= podstate.PatienceOf(container.LivenessProbe)
		}
		switch {
		case traits.Empties:
			why[p.Pod.Name] = "its volumes are deleted"
		case restarts && p.Err != nil:
			_, by := b.silencedPrimary(of, &s.data[i])
			why[p.Pod.Name] = "what it has written to its disk is not known, while RedisFault " + by.Fault +
				" keeps it from answering"
		case restarts:
			why[p.Pod.Name] = of.Forgets(ctx, p, end)
		}
	}
	return why
}

// The bounds of what the record of a target says of its data.
const (
	mostCopies = 16  // pods
	mostWords  = 509 // bytes, without the ellipsis
)

// note adds to the record of a target what the guards have learned of its data.
func (s *scene) note(t *v1alpha1.FaultTarget) {
	t.LosesData = redis.Printable(s.forgets[t.Pod], mostWords)
	for i := range s.data {
		d := &s.data[i]
		if !slices.ContainsFunc(d.Copies, func(c target.Copy) bool { return c.Name == t.Pod }) {
			continue
		}
		var primary, inSync, others []string
		for _, c := range d.Copies {
			switch {
			case c.Server == nil || c.Name == t.Pod:
			case c.Server == d.Primary():
				primary = append(primary, c.Name)
			case c.Behind == "":
				inSync = append(inSync, c.Name)
			default:
				others = append(others, c.Name)
			}
		}
		all := slices.Concat(primary, inSync, others)
		t.Copies = all[:min(len(all), mostCopies)]
		return
	}
}
