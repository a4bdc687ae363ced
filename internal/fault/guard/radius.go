package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// scene is all that the guards judge by, read at one time.
type scene struct {
	redis     target.Redis
	census    *target.Census
	sentinels electorate
	data      []target.Data
	forgets   map[string]string // why primaries that are hit come back without their data, by pod
}

// Occupied is the Problem of a fault that would not be too wide without other faults.
type Occupied struct {
	*problem.Problem
	// the faults that hold other copies; none = they are over, and what they have hit is not in sync
	// yet
	By    []string
	Guard v1alpha1.Allowance // that would permit it nevertheless
}

// Unwrap returns the Problem.
func (o *Occupied) Unwrap() error {
	return o.Problem
}

// withinRadius refuses to silence the last copy in sync of data that has several, so many sentinels
// or primaries of a cluster that the others cannot elect a primary, and to end a primary that would
// give its replicas an empty data set, unless that is allowed. It is Occupied where it would do
// none of these without other faults.
func withinRadius(
	ctx context.Context, redis target.Redis, census *target.Census, b *blow,
	spec *v1alpha1.RedisFaultSpec, traits contract.Traits,
) (*scene, error) {
	s := &scene{redis: redis, census: census}
	if !disturbs(traits) && !spec.Action.Removes() {
		return s, nil
	}
	s.data = redis.DataOf(ctx, census, func(pod string) bool { return slices.Contains(b.now, pod) })
	if !disturbs(traits) { // it removes some: its record has which there were
		return s, nil
	}
	if traits.Silences && !slices.Contains(spec.Allow, v1alpha1.AllowMajorityOfSentinels) {
		if traits.WholePod {
			lookBeside(ctx, redis, census.Servers, b)
		}
		var err error
		if s.sentinels, err = electorateOf(ctx, redis, census.Servers, b); err != nil {
			return s, err
		}
	}
	s.forgets = s.askForgetful(ctx, redis, b, traits)
	err := s.judge(b, spec, traits)
	wide, refused := errors.AsType[*tooWide](err)
	switch {
	case !refused:
		return s, err
	case len(b.others) == 0 || s.judge(b.later(), spec, traits) != nil:
		return s, problem.TooWide("%v", wide)
	}
	p := problem.TooWide("%v", wide)
	p.Lasting = false
	return s, &Occupied{
		Problem: p,
		By:      wide.by(),
		Guard:   wide.lifts,
	}
}

// judge returns why a blow is too wide; nil where it is not.
func (s *scene) judge(b *blow, spec *v1alpha1.RedisFaultSpec, traits contract.Traits) error {
	guards := []func(*blow) *tooWide{s.keepsData}
	switch {
	case traits.Silences && traits.Waits && !Together(spec, traits):
		guards = []func(*blow) *tooWide{
			inTurn(s.sparesCopies), s.keepsData, inTurn(s.sparesSentinels), inTurn(s.sparesPrimaries),
		}
	case traits.Silences:
		guards = []func(*blow) *tooWide{s.sparesCopies, s.keepsData, s.sparesSentinels, s.sparesPrimaries}
	case traits.RollsPods:
		guards = []func(*blow) *tooWide{inTurn(s.sparesCopies), s.keepsData}
	}
	for _, guard := range guards {
		wide := guard(b)
		if wide != nil && !slices.Contains(spec.Allow, wide.lifts) {
			return wide
		}
	}
	return nil
}

// reason is why a server cannot take over.
type reason struct {
	text string
	by   string // the fault that holds it; "" = none
}

// tooWide is the refusal of a guard.
type tooWide struct {
	lifts v1alpha1.Allowance
	what  string
	lost  []reason // why other servers cannot take over
}

// mostReasons is how many servers a refusal names.
const mostReasons = 8

func (w *tooWide) Error() string {
	var why []string
	for _, r := range w.lost[:min(len(w.lost), mostReasons)] {
		why = append(why, r.text)
	}
	text := "spec.select: " + w.what
	if len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	if more := len(w.lost) - mostReasons; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%s; spec.allow: [%s] lifts this guard", text, w.lifts)
}

// by are the faults that hold other servers.
func (w *tooWide) by() []string {
	var names []string
	for _, r := range w.lost {
		if r.by != "" && !slices.Contains(names, r.by) {
			names = append(names, r.by)
		}
	}
	return names
}
