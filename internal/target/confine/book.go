package confine

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Book knows which addresses are pods of a namespace. It is created by NewBook and safe for
// concurrent use.
type Book struct {
	namespace string
	// pods that are watched anyway, so that polls cost nothing; nil = none
	watched func() []corev1.Pod
	live    client.Reader // for the others
	lookup  Lookup

	all      reading[*directory] // all pods of the namespace
	services reading[[]service]
	// reads of single pods; by resident, as the same pod may be in several directories
	checks singleflight.Group

	mu       sync.Mutex
	pods     *directory // of the watched ones
	readAt   time.Time
	learned  *directory                      // pods that others have read
	selected map[string]*reading[*directory] // pods behind Services, by selector
	// until then the API server is not asked again for a pod: it did not answer
	silent time.Time
}

// PodTimeout limits the read of a target's pod: an API server that does not answer must not hold up
// a revert.
const PodTimeout = 500 * time.Millisecond

// Lookup resolves host names, as net.Resolver.LookupNetIP does.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// How often pods and Services are read.
const (
	bookFresh = time.Second // what a read has found is used for so long
	// an unknown address does not cause a look at the watched pods before this
	bookAgain     = 50 * time.Millisecond
	bookLive      = time.Second     // nor one of the API server
	bookServices  = 5 * time.Second // nor one of the Services
	lookupTimeout = PodTimeout
)

// NewBook returns the addresses of a namespace. watched are those of its pods that are known
// without a query, in whatever state; nil = none. lookup resolves names that are not the cluster's
// own; nil = none is resolved.
func NewBook(
	namespace string, watched func() []corev1.Pod, live client.Reader, lookup Lookup,
) *Book {
	b := &Book{
		namespace: namespace,
		watched:   watched,
		live:      live,
		lookup:    lookup,
		pods:      &directory{},
		learned:   &directory{},
		selected:  map[string]*reading[*directory]{},
	}
	b.all.list, b.all.rest, b.all.value = b.listPods, bookLive, &directory{}
	b.services.list, b.services.rest = b.listServices, bookServices
	return b
}

// Resolve returns where an address is dialled: always at pods of the namespace, by their IP, so
// that nothing resolves it again. It may name a pod, by IP or host name, or a Service of the
// namespace that selects pods, by name, IP or node port; then all its pods are returned, ready ones
// first. Any other address is a Foreign error, and Unlisted as long as that is not known.
func (b *Book) Resolve(ctx context.Context, address string) ([]string, error) {
	host, w, ok := b.parse(address)
	if !ok {
		return nil, &Foreign{Address: address, Namespace: b.namespace}
	}
	found, err := b.near(ctx, w)
	if len(found) == 0 && b.lookup != nil && len(w.ips) == 0 {
		if w.ips = b.lookUp(ctx, host); len(w.ips) > 0 {
			found, err = b.near(ctx, w)
		}
	}
	if len(found) == 0 && (w.pod != "" || len(w.ips) > 0) {
		var unlisted error
		if found, unlisted = b.listed(ctx, w); err == nil {
			err = unlisted
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case err != nil:
		return nil, err
	}
	return nil, &Foreign{Address: address, Namespace: b.namespace}
}

// Occupant is the pod at a place to which Resolve has led; "" = none any more. It lists nothing: at
// most that pod is read.
func (b *Book) Occupant(ctx context.Context, at string) (uid types.UID, name string) {
	if _, w, ok := b.parse(at); ok {
		if p, is := b.known(ctx, w); is {
			return p.of.uid, p.of.name
		}
	}
	return "", ""
}

// wanted is what an address may lead to.
type wanted struct {
	port int32
	ips  []netip.Addr
	// POD.SERVICE in the namespace, or SERVICE alone; empty where it is not the name of one
	pod, service string
}

// in are the pods of a directory that have the address.
func (w *wanted) in(d *directory) []place {
	found := d.named(w.pod, w.service, w.port)
	for _, ip := range w.ips {
		found = append(found, d.at(ip, w.port)...)
	}
	return found
}

// parse reads HOST:PORT.
func (b *Book) parse(address string) (string, *wanted, bool) {
	host, port, err := net.SplitHostPort(address)
	number, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || numberErr != nil || host == "" || number == 0 {
		return "", nil, false
	}
	w := &wanted{port: int32(number)}
	if ip, err := netip.ParseAddr(host); err == nil {
		w.ips = []netip.Addr{ip.Unmap().WithZone("")}
	} else {
		w.pod, w.service = b.parseName(host)
	}
	return host, w, true
}

// parseName reads SERVICE or POD.SERVICE in the namespace, with or without the rest of the name.
// Names of other namespaces have neither.
func (b *Book) parseName(host string) (pod, service string) {
	words := strings.Split(strings.TrimSuffix(strings.ToLower(host), "."), ".")
	if svc := slices.Index(words, "svc"); svc >= 2 {
		if words[svc-1] != b.namespace {
			return "", ""
		}
		words = words[:svc-1]
	} else if last := len(words) - 1; last > 0 && words[last] == b.namespace {
		words = words[:last]
	}
	switch len(words) {
	case 1:
		return "", words[0]
	case 2:
		return words[0], words[1]
	}
	return "", ""
}

// lookUp resolves a host name; an unknown one has no address.
func (b *Book) lookUp(ctx context.Context, host string) []netip.Addr {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	ips, _ := b.lookup(ctx, "ip", host)
	for i := range ips {
		ips[i] = ips[i].Unmap().WithZone("")
	}
	return ips
}

// near finds what can be found without a list of the namespace's pods: a pod that is known, else
// the pods of a Service.
func (b *Book) near(ctx context.Context, w *wanted) ([]string, error) {
	if p, ok := b.known(ctx, w); ok {
		return []string{p.address}, nil
	}
	if len(w.ips) == 0 && (w.pod != "" || w.service == "") { // no Service has it
		return nil, nil
	}
	services, err := b.services.latest(ctx)
	if s, port := through(services, w); s != nil {
		return b.behind(ctx, s, port)
	}
	return nil, b.unlisted("Services", err)
}

// recent are the watched pods of the last second.
func (b *Book) recent() *directory {
	return b.readWatched(bookFresh)
}

// again are the watched pods of just now: one may be new.
func (b *Book) again() *directory {
	return b.readWatched(bookAgain)
}

func (b *Book) readWatched(fresh time.Duration) *directory {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watched != nil && (b.readAt.IsZero() || time.Since(b.readAt) >= fresh) {
		b.pods = newDirectory(residentsOf(b.watched(), time.Now()))
		b.readAt = time.Now()
	}
	return b.pods
}
