package target

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AddressBook knows which addresses are pods of a namespace. It is created by NewAddressBook and safe for concurrent use.
type AddressBook struct {
	namespace string
	watched   func() []corev1.Pod // pods that are watched anyway, so that polls cost nothing; nil = none
	live      client.Reader       // for the others
	lookup    Lookup

	mu         sync.Mutex
	pods       *directory // of the watched ones
	readAt     time.Time
	services   []corev1.Service
	servicesAt time.Time
	loading    sync.Mutex // held while the Services are read

	listing  sync.Mutex // held while the API server lists the pods of the namespace
	listed   *directory // the latest list
	listedAt time.Time
}

// Lookup resolves host names, as net.Resolver.LookupNetIP does.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// How often pods and Services are read.
const (
	bookFresh     = time.Second           // what a read has found is used for so long
	bookAgain     = 50 * time.Millisecond // an unknown address does not cause a look at the watched pods before this
	bookLive      = time.Second           // nor one of the API server
	bookServices  = 5 * time.Second       // nor one of the Services
	lookupTimeout = podTimeout
)

// NewAddressBook returns the addresses of a namespace. watched are those of its pods that are known without a query, in whatever state; nil = none.
// lookup resolves names that are not the cluster's own; nil = none is resolved.
func NewAddressBook(namespace string, watched func() []corev1.Pod, live client.Reader, lookup Lookup) *AddressBook {
	return &AddressBook{namespace: namespace, watched: watched, live: live, lookup: lookup, pods: &directory{}, listed: &directory{}}
}

// Resolve returns where an address is dialled: always at pods of the namespace, by their IP, so that nothing resolves it again. It may name a pod, by IP
// or host name, or a Service of the namespace that selects pods, by name, IP or node port; then all its pods are returned, ready ones first. Any
// other address is a Foreign error.
func (b *AddressBook) Resolve(ctx context.Context, address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	number, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || numberErr != nil || host == "" || number == 0 {
		return nil, &Foreign{Address: address, Namespace: b.namespace}
	}
	for _, pods := range []func(context.Context) *directory{b.recent, b.again, b.readLive} {
		if found := b.find(ctx, pods(ctx), host, int32(number)); len(found) > 0 {
			return found, nil
		}
	}
	return nil, &Foreign{Address: address, Namespace: b.namespace}
}

// find returns the places of a host and port.
func (b *AddressBook) find(ctx context.Context, pods *directory, host string, port int32) []string {
	if pods == nil {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return b.byAddress(ctx, pods, ip, port)
	}
	if found := b.byName(ctx, pods, strings.TrimSuffix(strings.ToLower(host), "."), port); len(found) > 0 || b.lookup == nil {
		return found
	}
	within, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	ips, _ := b.lookup(within, "ip", host) // an unknown host has no address
	for _, ip := range ips {
		if found := b.byAddress(ctx, pods, ip, port); len(found) > 0 {
			return found
		}
	}
	return nil
}

// byAddress finds a pod, else the pods of a Service.
func (b *AddressBook) byAddress(ctx context.Context, pods *directory, ip netip.Addr, port int32) []string {
	ip = ip.Unmap().WithZone("")
	if pods.has(ip, port) {
		return []string{placeOf(ip, port)}
	}
	for _, s := range b.servicesNow(ctx) {
		for _, p := range s.Spec.Ports {
			if p.Port == port && hasAddress(&s, ip) || p.NodePort != 0 && p.NodePort == port {
				return pods.behind(&s, p)
			}
		}
	}
	return nil
}

// hasAddress reports whether a Service has an IP.
func hasAddress(s *corev1.Service, ip netip.Addr) bool {
	is := func(text string) bool {
		other, err := netip.ParseAddr(text)
		return err == nil && other.Unmap() == ip
	}
	return is(s.Spec.ClusterIP) || slices.ContainsFunc(s.Spec.ClusterIPs, is) || slices.ContainsFunc(s.Spec.ExternalIPs, is) ||
		slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool { return is(i.IP) })
}

// byName finds SERVICE or POD.SERVICE in the namespace, with or without the rest of the name. Names of other namespaces have none.
func (b *AddressBook) byName(ctx context.Context, pods *directory, host string, port int32) []string {
	words := strings.Split(host, ".")
	if svc := slices.Index(words, "svc"); svc >= 2 {
		if words[svc-1] != b.namespace {
			return nil
		}
		words = words[:svc-1]
	} else if last := len(words) - 1; last > 0 && words[last] == b.namespace {
		words = words[:last]
	}
	switch len(words) {
	case 1:
		for _, s := range b.servicesNow(ctx) {
			if s.Name == words[0] {
				return pods.behind(&s, portOf(&s, port))
			}
		}
	case 2:
		return pods.named(words[0], words[1], port)
	}
	return nil
}

// portOf is the port of a Service; that of its pods where it has no such port, as clients of a headless one connect to the pods.
func portOf(s *corev1.Service, port int32) corev1.ServicePort {
	for _, p := range s.Spec.Ports {
		if p.Port == port && s.Spec.ClusterIP != corev1.ClusterIPNone {
			return p
		}
	}
	return corev1.ServicePort{Port: port}
}

// recent are the watched pods of the last second.
func (b *AddressBook) recent(context.Context) *directory { return b.readWatched(bookFresh) }

// again are the watched pods of just now: one may be new.
func (b *AddressBook) again(context.Context) *directory { return b.readWatched(bookAgain) }

func (b *AddressBook) readWatched(fresh time.Duration) *directory {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watched != nil && (b.readAt.IsZero() || time.Since(b.readAt) >= fresh) {
		b.pods, b.readAt = newDirectory(residentsOf(b.watched())), time.Now()
	}
	return b.pods
}

// readLive lists the pods at the API server: those that are not watched, such as sentinels, and those that are too new. What it listed before remains for a
// moment, and where it does not answer.
func (b *AddressBook) readLive(ctx context.Context) *directory {
	b.listing.Lock() // whoever asks meanwhile gets the result, not what was known before
	defer b.listing.Unlock()
	if !b.listedAt.IsZero() && time.Since(b.listedAt) < bookLive {
		return b.listed
	}
	defer func() { b.listedAt = time.Now() }()
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	var page corev1.PodList
	var all []resident
	err := EachPage(ctx, b.live, &page, func() bool {
		all = append(all, residentsOf(page.Items)...)
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(b.namespace))
	if err == nil {
		b.listed = newDirectory(all)
	}
	return b.listed
}

// servicesNow are the Services of the namespace; those of before where they cannot be read.
func (b *AddressBook) servicesNow(ctx context.Context) []corev1.Service {
	b.loading.Lock()
	defer b.loading.Unlock()
	if !b.servicesAt.IsZero() && time.Since(b.servicesAt) < bookServices {
		return b.services
	}
	b.servicesAt = time.Now()
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	var page corev1.ServiceList
	var all []corev1.Service
	err := EachPage(ctx, b.live, &page, func() bool {
		all = append(all, page.Items...)
		page.Items = nil
		return true
	}, client.InNamespace(b.namespace))
	if err == nil {
		b.services = all
	}
	return b.services
}
