package guard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/rows"
)

// searched is how many histories TestGuardIsNeverFooled makes.
const searched = 500

// Whatever the Services, selectors, StatefulSets, roles and disks, and however faults meet: without an allowance data
// of which there are several copies, or one on a disk, are never lost, and no fault silences its last copy in sync. No
// sentinel helps: an empty primary is copied as soon as it is back.
func TestGuardIsNeverFooled(t *testing.T) {
	t.Parallel()
	var hits, refused, waited, beside, inTurn int
	for seed := range uint64(searched) {
		h := newHistory(t, seed)
		h.run()
		left := h.fewestLeft()
		rows.Add(t, "REDQUAKE_GUARD_OUT", map[string]any{
			"seed":       seed,
			"servers":    "virtual",
			"faults":     len(h.faults),
			"refused":    h.refused,
			"copiesLeft": left,
			"ok":         left > 0 && !t.Failed(),
		})
		hits, refused, waited, beside = hits+h.hits, refused+h.refused, waited+h.waited, beside+h.beside
		inTurn += h.inTurn
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
		}
	}
	t.Logf("%d histories: %d servers hit, %d of them hung already, %d faults refused, %d had to wait, "+
		"%d times between two targets", searched, hits, beside, refused, waited, inTurn)
	if hits < searched || refused < searched/5 || waited < searched/50 || beside < searched/50 || inTurn < searched/50 {
		t.Errorf("the search is too tame: %d hits, %d refused, %d waited, %d beside, %d in turn", hits, refused, waited, beside,
			inTurn)
	}
}

// history is a namespace with random data sets, and random faults on them.
type history struct {
	*faulttest.World
	random  *rand.Rand
	servers []*played
	faults  []*attacker
	now     time.Time
	log     []string

	hung bool // the first fault hangs a primary, and the others act beside it

	hits, refused, waited int
	inTurn                int // how often a fault has waited between two of its targets
	beside                int // hits of servers that another fault has hung
}

// played is a server of a history.
type played struct {
	name, app, set string
	data           int     // the number of its data set
	follows        *played // nil = it is a primary
	durable        bool    // its memory comes back from its disk
	pods           int     // how many pods it has had

	up, muted, synced bool
	full              bool // its memory has all data
	disk              bool // its disk has
}

// attacker is a fault of a history.
type attacker struct {
	*v1alpha1.RedisFault
	traits contract.Traits
	app    string
	next   int  // the target that it hits next
	passed bool // the guard has let it: what happens now, the guard of others has to foresee
	ends   int  // steps until it is reverted
	over   bool

	patience int // steps are fewer
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{World: faulttest.NewWorld(t), random: rand.New(rand.NewPCG(seed, 0)), now: time.Now()}
	apps := []string{"a", "b", "c"}[:1+h.random.IntN(3)]
	for data := range 1 + h.random.IntN(2) {
		var primary *played
		for n := range 1 + h.random.IntN(4) {
			s := &played{
				name: fmt.Sprintf("d%d-%d", data, n), app: apps[h.random.IntN(len(apps))],
				set:  fmt.Sprintf("set-%d-%d", data, h.random.IntN(2)),
				data: data, follows: primary, durable: h.random.IntN(4) > 0, up: true, synced: true, full: true, disk: true,
			}
			if primary == nil {
				primary = s
			}
			h.servers = append(h.servers, s)
			h.place(s)
		}
	}
	h.Servers.Script("CONFIG GET dir", faulttest.Reply(redis.Error("NOPERM this user has no permissions")))
	h.hung = h.random.IntN(3) == 0
	for n := range 4 + h.random.IntN(6) {
		h.faults = append(h.faults, h.newAttacker(n, apps))
	}
	h.show()
	return h
}

// place makes the pod of a server, at a new address.
func (h *history) place(s *played) {
	s.pods++
	h.Pod(s.name, fmt.Sprintf("%s-%d", s.name, s.pods), s.ip(), "", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": s.app}
		p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = s.set, types.UID(s.set)
	})
}

func (s *played) ip() string {
	var data, n int
	_, _ = fmt.Sscanf(s.name, "d%d-%d", &data, &n)
	return fmt.Sprintf("10.%d.%d.%d", data, n, s.pods)
}

func (s *played) at() string { return s.ip() + ":6379" }

func (h *history) newAttacker(n int, apps []string) *attacker {
	const hang = 3
	kinds := []contract.Traits{
		{Silences: true, EndsServer: true, NewPod: true, WholePod: true},
		{Silences: true, EndsServer: true, NewPod: true, WholePod: true, Lasts: time.Minute},
		{Silences: true, EndsServer: true, Abrupt: true},
		{Silences: true, Lasts: time.Minute},
		{RollsPods: true, Lasts: time.Minute},
		{Silences: true, EndsServer: true, NewPod: true, WholePod: true, Waits: true, Together: true},
	}
	f := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: faulttest.Namespace,
			Name:      fmt.Sprintf("f%d", n),
			UID:       types.UID(fmt.Sprintf("f%d", n)),
		},
	}
	f.Spec.Select = v1alpha1.FaultSelector{
		Role: []v1alpha1.RedisRole{v1alpha1.RoleAny, v1alpha1.RolePrimary, v1alpha1.RoleReplica}[h.random.IntN(3)],
		Mode: []v1alpha1.SelectMode{v1alpha1.SelectOne, v1alpha1.SelectOne, v1alpha1.SelectAll}[h.random.IntN(3)],
		Pick: v1alpha1.PickRandom,
	}
	kind, app, patience := h.random.IntN(len(kinds)), apps[h.random.IntN(len(apps))], 4
	switch {
	case h.hung && n == 0: // a primary hangs for long
		kind, f.Spec.Select.Role, f.Spec.Select.Mode, patience = hang, v1alpha1.RolePrimary, v1alpha1.SelectOne, 40
	case h.hung: // and others act beside that, or wait
		f.Spec.Beside, app = []string{h.faults[0].Name}, h.faults[0].app
	case n > 0 && h.random.IntN(2) == 0:
		f.Spec.Beside = []string{fmt.Sprintf("f%d", h.random.IntN(n))}
	}
	f.Spec.Action.Type = v1alpha1.FaultType(fmt.Sprint("kind ", kind))
	return &attacker{RedisFault: f, traits: kinds[kind], app: app, patience: patience}
}

// run lets things happen in a random order, one at a time.
func (h *history) run() {
	for range 150 {
		h.now = h.now.Add(time.Second)
		if i := h.random.IntN(len(h.faults) + len(h.servers)); i < len(h.faults) {
			h.attack(h.faults[i])
		} else {
			h.live(h.servers[i-len(h.faults)])
		}
		h.show()
		h.survives()
		if h.T.Failed() {
			return
		}
	}
}

// attack is the next step of a fault, as the controller takes it.
func (h *history) attack(f *attacker) {
	switch {
	case f.over:
	case f.Status.StartTime == nil:
		h.choose(f)
	case f.next < len(f.Status.Targets):
		h.hitNext(f)
	case f.traits.RollsPods && f.Status.Targets[0].ActiveAt == nil:
		h.complete(f)
	case f.ends > 0:
		f.ends--
	default:
		h.revert(f)
	}
}

func (h *history) choose(f *attacker) {
	selected, err := Select(h.T.Context(), of(h.World, f.app), &f.Spec, f.traits, new(int32(h.random.Uint32()>>1)),
		h.others(f))
	if occupied, is := errors.AsType[*Occupied](err); is {
		h.waited++
		h.note("%s waits: %v", f.Name, occupied)
		return
	}
	if err != nil {
		h.refused++
		f.over = h.random.IntN(2) == 0
		h.note("%s refused: %v", f.Name, err)
		return
	}
	targets := selected.Targets
	if h.contested(f, targets) {
		return
	}
	for i := range targets {
		targets[i].IntendedAt = new(metav1.NewMicroTime(h.now))
	}
	f.Status.Targets, f.Status.StartTime, f.Status.Holding = targets, new(metav1.NewMicroTime(h.now)), new(true)
	f.next, f.ends = 0, h.random.IntN(f.patience)
	h.note("%s recorded: %s", f.Name, podsOf(targets))
}

// contested reports whether another fault acts on what one is about to act on.
func (h *history) contested(f *attacker, targets []v1alpha1.FaultTarget) bool {
	wanted := lock.Wanted(f.RedisFault, f.traits, targets, nil, nil, h.now)
	return slices.ContainsFunc(h.faults, func(other *attacker) bool {
		c, holds := lock.Held(other.RedisFault, other.traits)
		return holds && lock.Contested(wanted, c) != ""
	})
}

func (h *history) others(f *attacker) (hits []Hit) {
	for _, other := range h.faults {
		if other != f {
			hits = append(hits, HitsOf(other.RedisFault, other.traits, f.RedisFault, h.now)...)
		}
	}
	return hits
}

// hitNext hits the next target, unless the guard refuses.
func (h *history) hitNext(f *attacker) {
	t := &f.Status.Targets[f.next]
	if f.traits.RollsPods && f.next > 0 && !h.named(f.Status.Targets[f.next-1].Pod).serves() {
		return // one after the other
	}
	if f.passed {
		f.passed = false
		h.strike(f, t)
		return
	}
	err := Check(h.T.Context(), of(h.World, f.app), &f.Spec, f.traits, t, f.Status.Targets, h.others(f))
	if err != nil {
		h.note("%s may not hit %s: %v", f.Name, t.Pod, err)
		switch {
		case f.next > 0 && f.traits.Waits: // until the copies are in sync again
			h.inTurn++
		case f.next > 0:
			h.revert(f)
		default:
			h.stepBack(f, err)
		}
		return
	}
	f.passed = true
}

// strike hits a target, and stores that.
func (h *history) strike(f *attacker, t *v1alpha1.FaultTarget) {
	s := h.named(t.Pod)
	if string(h.PodNamed(s.name).UID) == t.UID && s.up {
		h.hit(f, s)
	}
	t.InjectedAt, t.Attempts = new(metav1.NewMicroTime(h.now)), 1
	if f.next++; f.next == len(f.Status.Targets) && f.traits.Lasts == 0 {
		h.revert(f)
	}
}

// complete ends a roll when all its servers are in sync again.
func (h *history) complete(f *attacker) {
	for i := range f.Status.Targets {
		if !h.named(f.Status.Targets[i].Pod).serves() {
			return
		}
	}
	for i := range f.Status.Targets {
		f.Status.Targets[i].ActiveAt = new(metav1.NewMicroTime(h.now))
	}
}

// stepBack withdraws the record, unless another fault has to.
func (h *history) stepBack(f *attacker, err error) {
	if occupied, is := errors.AsType[*Occupied](err); is {
		h.waited++
		own, _ := lock.Held(f.RedisFault, f.traits)
		for _, other := range h.faults {
			if c, holds := lock.Held(other.RedisFault, other.traits); holds && slices.Contains(occupied.By, other.Name) &&
				!lock.Yields(own, c) {
				return
			}
		}
	}
	f.Status = v1alpha1.RedisFaultStatus{}
}

func (h *history) hit(f *attacker, s *played) {
	h.hits++
	if s.muted {
		h.beside++
	}
	h.note("%s hits %s", f.Name, s.name)
	if f.traits.Silences && h.copies(s.data) > 1 && !slices.ContainsFunc(h.servers, func(o *played) bool {
		return o != s &&
			o.data == s.data && o.serves()
	}) {
		h.T.Errorf("%s silences the last copy in sync, %s", f.Name, s.name)
	}
	switch {
	case ends(f.traits):
		s.up, s.synced, s.full = false, false, false
		s.disk = s.disk && s.durable
	default:
		s.muted = true
	}
}

func (h *history) revert(f *attacker) {
	h.note("%s reverted", f.Name)
	f.Status.RevertedAt, f.Status.Holding, f.over = new(metav1.NewMicroTime(h.now)), nil, true
	for _, t := range f.Status.Targets {
		h.named(t.Pod).muted = slices.ContainsFunc(h.faults, func(other *attacker) bool { return other.mutes(t.Pod) })
	}
}

// mutes reports whether a fault keeps a server from answering that runs.
func (f *attacker) mutes(pod string) bool {
	return f.Status.Holding != nil && f.traits.Silences && !ends(f.traits) &&
		slices.ContainsFunc(f.Status.Targets, func(t v1alpha1.FaultTarget) bool {
			return t.Pod == pod && t.InjectedAt != nil
		})
}

// live is what happens to a server without a fault: it comes back, connects, or copies.
func (h *history) live(s *played) {
	kept := slices.ContainsFunc(h.faults, func(f *attacker) bool {
		return f.Status.Holding != nil && f.traits.EndsServer && f.traits.Lasts > 0 &&
			slices.ContainsFunc(f.Status.Targets, func(t v1alpha1.FaultTarget) bool {
				return t.Pod == s.name &&
					t.InjectedAt != nil
			})
	})
	switch {
	case !s.up && !kept:
		faulttest.Must(h.T, h.Cluster.Delete(h.T.Context(), h.PodNamed(s.name)))
		h.place(s)
		s.up, s.full = true, s.disk && s.durable
		s.synced = s.follows == nil
		h.note("%s is back, with its data: %t", s.name, s.full)
	case s.up && s.follows != nil && !s.synced && s.follows.up && !s.follows.muted && !s.muted:
		s.synced, s.full = true, s.follows.full
		s.disk = s.full
		h.note("%s has copied %s, with its data: %t", s.name, s.follows.name, s.full)
	}
	if p := s.follows; p != nil && s.up && p.up && p.pods > 0 && !p.full && s.synced {
		s.full, s.disk = false, false // it has copied the empty data set
	}
}

func (s *played) serves() bool { return s.up && !s.muted && s.full && (s.follows == nil || s.synced) }

func (h *history) copies(data int) (n int) {
	for _, s := range h.servers {
		if s.data == data {
			n++
		}
	}
	return n
}

// survives fails the test where the last copy of data is gone that had several copies, or one on a disk.
func (h *history) survives() {
	left, worth := map[int]bool{}, map[int]bool{}
	for _, s := range h.servers {
		left[s.data] = left[s.data] || s.full || s.disk && s.durable
		worth[s.data] = worth[s.data] || s.durable || h.copies(s.data) > 1
	}
	for data, is := range worth {
		if is && !left[data] {
			h.T.Errorf("data set %d is lost", data)
		}
	}
}

// fewestLeft is how many copies are left of the data set of which the fewest are, among those that must survive.
func (h *history) fewestLeft() int {
	left, worth := map[int]int{}, map[int]bool{}
	for _, s := range h.servers {
		worth[s.data] = worth[s.data] || s.durable || h.copies(s.data) > 1
		if s.full || s.disk && s.durable {
			left[s.data]++
		}
	}
	fewest := len(h.servers)
	for data, is := range worth {
		if is {
			fewest = min(fewest, left[data])
		}
	}
	return fewest
}

func (h *history) named(pod string) *played {
	return h.servers[slices.IndexFunc(h.servers, func(s *played) bool { return s.name == pod })]
}

func (h *history) note(format string, words ...any) {
	h.log = append(h.log, fmt.Sprintf(format, words...))
}

// show makes the servers answer as they are.
func (h *history) show() {
	for address, server := range h.Servers.All() {
		if !slices.ContainsFunc(h.servers, func(s *played) bool { return s.at() == address && s.up && !s.muted }) {
			server.Kill()
		}
	}
	for _, s := range h.servers {
		if !s.up || s.muted {
			continue
		}
		state := memredis.State{RunID: fmt.Sprintf("run-%s-%d", s.name, s.pods), Appends: s.durable}
		state.Replicas = []memredis.Replica{}
		if p := s.follows; p != nil {
			state.Primary = p.at()
			switch {
			case !s.synced:
				state.Link = memredis.LinkNever
			case !p.up || p.muted:
				state.Link = memredis.LinkLost
			}
		}
		for _, r := range h.servers {
			if r.follows == s && r.up && !r.muted && r.synced {
				state.Replicas = append(state.Replicas, memredis.Replica{Address: r.at()})
			}
		}
		if server := h.Servers.At(s.at()); server == nil || !server.Running() {
			h.Servers.Start(s.at(), state)
		} else {
			server.Change(func(is *memredis.State) { *is = state })
		}
	}
}
