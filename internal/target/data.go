package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/podstate"
)

// longestLag is the time since a replica's last acknowledgement, in seconds, from which it counts
// as lost: the default of min-replicas-max-lag.
const longestLag = 10

// Data is one data set with all its copies, whatever selects their pods: that of a shard of a
// cluster, else that of a primary.
type Data struct {
	Name   string // for people
	Copies []Copy
}

// Copy is a copy of the data that exists, or should exist.
type Copy struct {
	Name   string  // of its pod, else of the node of the cluster or its address
	Place  string  // its address; "" = unknown
	Server *Server // nil where it is in no running pod of the namespace
	Behind string  // why it cannot replace another copy, such as "loads its data"; "" = it is in sync
}

// Primary is the server that accepts the writes to the data; nil where none answers.
func (d *Data) Primary() *Server {
	for i := range d.Copies {
		s := d.Copies[i].Server
		if s != nil && s.Err == nil && s.State.Role == topology.Primary {
			return s
		}
	}
	return nil
}

// DataOf returns the data of which some servers of a target hold copies: of a server of a plain
// replication all that its primary lists, and that replicate from it, in whatever pods of the
// namespace they are. They are found by their addresses, and asked like those of the target. What
// cannot be assigned counts as a copy of each data set.
func (r Redis) DataOf(ctx context.Context, c *Census, of func(pod string) bool) []Data {
	ctx, cancel := context.WithTimeout(ctx, SurveyTimeout)
	defer cancel()
	k := newKin(ctx, r, c)
	var all []Data
	seen := map[*Server]bool{}
	for i := range c.Servers {
		s := &c.Servers[i]
		if !of(s.Pod.Name) || seen[s] || s.State.Role == topology.Sentinel ||
			c.InCluster && s.Shard == NoShard {
			continue
		}
		members, missing := k.membersOf(s)
		for _, m := range members {
			seen[m] = true
		}
		name := "the data"
		if c.InCluster {
			name = fmt.Sprintf("shard %d", s.Shard)
		}
		all = append(all, Data{Name: name, Copies: k.copiesIn(members, missing)})
	}
	return all
}

// kin finds out which servers hold the same data.
type kin struct {
	Redis
	ctx     context.Context //nolint:containedctx // it lives as long as one DataOf
	census  *Census
	servers []*Server // those of the target, and those that were found beside it

	mu      sync.Mutex
	byPlace map[string]*Server // by each address that leads to it; nil = none does
	byPod   map[types.UID]*Server
}

func newKin(ctx context.Context, r Redis, c *Census) *kin {
	k := &kin{
		Redis:   r,
		ctx:     ctx,
		census:  c,
		byPlace: map[string]*Server{},
		byPod:   map[types.UID]*Server{},
	}
	for i := range c.Servers {
		k.add(&c.Servers[i])
	}
	beside := make([]Server, len(c.unselected))
	r.askAll(ctx, c.unselected, beside)
	for i := range beside {
		k.add(&beside[i])
	}
	return k
}

func (k *kin) add(s *Server) *Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.byPod[s.Pod.UID]
	if known != nil && s.Pod.UID != "" {
		return known
	}
	k.servers = append(k.servers, s)
	k.byPlace[s.Address], k.byPod[s.Pod.UID] = s, s
	return s
}

// membersOf are the servers that hold the same data as one of the target, and the copies that no
// server has.
func (k *kin) membersOf(s *Server) (members []*Server, missing []Missing) {
	if k.census.InCluster {
		return k.inShard(s.Shard)
	}
	members = k.linkedTo(s)
	return append(members, k.others(members, k.isLoose)...), k.census.Missing
}

// others are the servers that hold data and are not among the members, as far as a condition is
// met.
func (k *kin) others(members []*Server, condition func(*Server) bool) (found []*Server) {
	for _, s := range slices.Clone(k.servers) { // the condition may find more
		if s.State.Role != topology.Sentinel && !slices.Contains(members, s) && condition(s) {
			found = append(found, s)
		}
	}
	return found
}

func (k *kin) selected(s *Server) bool {
	return slices.ContainsFunc(k.census.Servers, func(o Server) bool { return o.Pod == s.Pod })
}

// isLoose reports whether it is not known whose data a server holds: it does not answer, is not the
// primary that the sentinels name, or follows none that answers.
func (k *kin) isLoose(s *Server) bool {
	for range maxChain {
		switch {
		case s == nil || s.Err != nil:
			return true
		case s.State.Role == topology.Primary:
			return false
		case s.State.Role != topology.Replica:
			return true
		}
		s = k.at(s.State.Replication.Primary)
	}
	return true
}

// maxChain bounds a chain of replicas of replicas.
const maxChain = 8

// inShard are the nodes of a shard. Those in pods that the target does not select are found by the
// addresses in CLUSTER NODES.
func (k *kin) inShard(shard int) (members []*Server, missing []Missing) {
	var addresses []string
	for i := range k.census.Missing {
		if m := &k.census.Missing[i]; m.Shard == shard {
			addresses = append(addresses, m.address)
		}
	}
	k.find(addresses)
	for i := range k.census.Servers {
		if s := &k.census.Servers[i]; s.Shard == shard {
			members = append(members, s)
		}
	}
	for _, m := range k.census.Missing {
		if m.Shard != shard {
			continue
		}
		s := k.at(m.address)
		// another node was there before
		if s == nil || slices.Contains(members, s) || k.selected(s) || s.node != "" && s.node != m.node {
			missing = append(missing, m)
			continue
		}
		s.Shard = shard
		members = append(members, s)
	}
	return members, missing
}

// linkedTo are the servers that hold the same data as one, itself included: whom it lists as
// replicas, whom it names as its primary, who lists or names it, and so on.
func (k *kin) linkedTo(s *Server) []*Server {
	linked := []*Server{s}
	for next := linked; len(next) > 0; {
		var named []string
		for _, s := range next {
			named = append(named, peersOf(s)...)
		}
		k.find(named)
		var found []*Server
		add := func(s *Server) {
			if s != nil && !slices.Contains(linked, s) && !slices.Contains(found, s) {
				found = append(found, s)
			}
		}
		for _, address := range named {
			add(k.at(address))
		}
		for _, other := range slices.Clone(k.servers) {
			if slices.Contains(linked, other) {
				continue
			}
			for _, address := range peersOf(other) {
				to := k.known(address)
				if to != nil && slices.Contains(linked, to) {
					add(other)
				}
			}
		}
		linked, next = append(linked, found...), found
	}
	return linked
}

// peersOf are the addresses of the servers that one is linked to, by what it says.
func peersOf(s *Server) []string {
	if s.Err != nil || s.State.Role == topology.Sentinel {
		return nil
	}
	var all []string
	p := s.State.Replication.Primary
	if s.State.Role == topology.Replica && p != "" {
		all = append(all, p)
	}
	for _, a := range s.State.Replication.Replicas {
		all = append(all, a.Address)
	}
	return all
}

// find looks up several addresses at a time.
func (k *kin) find(addresses []string) {
	var looking errgroup.Group
	looking.SetLimit(surveyed)
	for _, address := range addresses {
		looking.Go(func() error {
			k.at(address)
			return nil
		})
	}
	_ = looking.Wait() // what is not found is no server
}

// known is the server at an address, as far as that is known already.
func (k *kin) known(address string) *Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byPlace[address]
}

// at is the server at an address that a server named; nil where no running pod of the namespace has
// it. One beside the target is asked.
func (k *kin) at(address string) *Server {
	k.mu.Lock()
	s, ok := k.byPlace[address]
	k.mu.Unlock()
	if ok || address == "" {
		return s
	}
	s = k.look(address)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byPlace[address] = s
	return s
}

func (k *kin) look(address string) *Server {
	place, uid, name := k.residentAt(k.ctx, address)
	if name == "" {
		return nil
	}
	k.mu.Lock()
	s := k.byPod[uid]
	k.mu.Unlock()
	if s != nil {
		return s
	}
	pod, err := k.Pod(k.ctx, name)
	if err != nil || pod.UID != uid || podstate.Absence(pod) != "" {
		return nil
	}
	s = &Server{
		Pod:     pod,
		Address: place,
		Shard:   NoShard,
	}
	k.ask(k.ctx, s)
	return k.add(s)
}

// listings are the replicas that servers list: by the server where it is known, else by address.
type listings struct {
	servers map[*Server]topology.Attached
	others  []topology.Attached
}

func inSync(a topology.Attached) bool {
	return a.Online && a.Lag <= longestLag
}

func (k *kin) listedBy(members []*Server) listings {
	l := listings{servers: map[*Server]topology.Attached{}}
	for _, m := range members {
		for _, a := range m.State.Replication.Replicas {
			if s := k.at(a.Address); s == nil {
				l.others = append(l.others, a)
			} else if known, twice := l.servers[s]; !twice || !inSync(known) {
				l.servers[s] = a
			}
		}
	}
	slices.SortStableFunc(l.others, func(a, b topology.Attached) int { return rank(a) - rank(b) })
	return l
}

// rank puts replicas in sync first: the first ones are taken for known copies, which do not count
// twice.
func rank(a topology.Attached) int {
	if inSync(a) {
		return 0
	}
	return 1
}

// take removes the first of the listed replicas that no server is known for, and that meet a
// condition.
func (l *listings) take(condition func(topology.Attached) bool) (topology.Attached, bool) {
	at := slices.IndexFunc(l.others, condition)
	if at < 0 {
		return topology.Attached{}, false
	}
	found := l.others[at]
	l.others = slices.Delete(l.others, at, at+1)
	return found, true
}

// copiesIn are the copies of a data set. Which are in sync is known by their own view and by the
// lists of replicas, in which a replica may have an address that leads nowhere.
func (k *kin) copiesIn(members []*Server, missing []Missing) []Copy {
	slices.SortFunc(members, func(a, b *Server) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	listed := k.listedBy(members)
	var all []Copy
	unlisted := 0
	count := func(c Copy, isListed bool) {
		all = append(all, c)
		if c.Behind != "" && !isListed {
			unlisted++
		}
	}
	for _, s := range members {
		count(k.copyAt(s, &listed))
	}
	for i := range missing {
		count(copyMissing(&missing[i], &listed))
	}
	if !k.census.InCluster {
		all = append(all, k.namedPrimaries(members)...)
	}
	for i, a := range listed.others {
		c := Copy{Name: a.Address, Place: a.Address}
		if !inSync(a) {
			c.Behind = "is not online"
		}
		if i >= unlisted { // else it may be one that counts already
			all = append(all, c)
		}
	}
	return all
}

// namedPrimaries are the primaries that replicas name and that are in no running pod of the
// namespace. One whose replica is connected runs elsewhere, and cannot be hit.
func (k *kin) namedPrimaries(members []*Server) (all []Copy) {
	for _, s := range members {
		link := s.State.Replication
		if s.Err != nil || s.State.Role != topology.Replica || link.Primary == "" ||
			k.at(link.Primary) != nil {
			continue
		}
		at := slices.IndexFunc(all, func(c Copy) bool { return c.Place == link.Primary })
		if at < 0 {
			at = len(all)
			all = append(all, Copy{
				Name:   link.Primary,
				Place:  link.Primary,
				Behind: "is the primary of " + s.Pod.Name + ", and in no running pod",
			})
		}
		if link.LinkUp {
			all[at].Behind = ""
		}
	}
	return all
}

// copyAt is the copy of a server, and whether its primary lists it.
func (k *kin) copyAt(s *Server, listed *listings) (c Copy, is bool) {
	c = Copy{
		Name:   s.Pod.Name,
		Place:  s.Address,
		Server: s,
		Behind: behind(s),
	}
	a, is := listed.servers[s]
	switch {
	case redis.RejectsLogin(s.Err) && is && inSync(a) && !k.selected(s):
		c.Behind = "" // of another Service, with a password of its own: its primary speaks for it
	case c.Behind == "" && s.State.Role == topology.Replica:
		if !is {
			a, is = listed.take(inSync)
		}
		if !is || !inSync(a) {
			c.Behind = "is not listed as online by its primary"
		}
	}
	return c, is
}

// copyMissing is a copy that no server has, and whether a primary lists it: then it runs elsewhere,
// and cannot be hit.
func copyMissing(m *Missing, listed *listings) (c Copy, is bool) {
	c = Copy{
		Name:   m.Name,
		Place:  m.address,
		Behind: m.Why,
	}
	a, is := listed.take(func(a topology.Attached) bool {
		return m.address != "" &&
			a.Address == m.address
	})
	if is && inSync(a) {
		c.Behind = ""
	}
	return c, is
}

// Behind is why the server in a pod is no copy in sync in its own view, as a predicate of it; ""
// where it is one, and where it does not answer.
func (r Redis) Behind(ctx context.Context, pod *corev1.Pod) string {
	s := Server{Pod: pod, Address: r.Address(pod)}
	if r.ask(ctx, &s); s.Err != nil {
		return ""
	}
	return behind(&s)
}

// behind is why a server by itself is no copy in sync.
func behind(s *Server) string {
	link := s.State.Replication
	switch {
	case s.Err != nil:
		return "does not answer"
	case s.State.Loading:
		return "loads its data"
	case s.State.Role == topology.Replica && link.Syncing:
		return "copies the whole data set"
	case s.State.Role == topology.Replica && !link.LinkUp:
		return "is not connected to its primary"
	case s.State.Role == topology.Unknown:
		return "is neither a replica nor the primary that the sentinels name"
	}
	return ""
}
