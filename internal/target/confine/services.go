package confine

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/target/paging"
)

// service is what an address book keeps of a Service.
type service struct {
	name     string
	headless bool
	ips      []netip.Addr
	ports    []corev1.ServicePort
	selector map[string]string
}

// listServices lists the Services of the namespace.
func (b *Book) listServices(ctx context.Context) ([]service, error) {
	var page corev1.ServiceList
	var all []service
	err := paging.Each(ctx, b.live, &page, func() bool {
		for i := range page.Items {
			all = append(all, serviceOf(&page.Items[i]))
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(b.namespace))
	return all, err
}

func serviceOf(s *corev1.Service) service {
	kept := service{
		name:     s.Name,
		headless: s.Spec.ClusterIP == corev1.ClusterIPNone,
		ports:    s.Spec.Ports,
		selector: s.Spec.Selector,
	}
	texts := slices.Concat([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs, s.Spec.ExternalIPs)
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		texts = append(texts, ingress.IP)
	}
	for _, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err == nil && !slices.Contains(kept.ips, ip.Unmap()) {
			kept.ips = append(kept.ips, ip.Unmap())
		}
	}
	return kept
}

// through finds the Service that has an address, and its port; nil = none has it.
func through(all []service, w *wanted) (*service, corev1.ServicePort) {
	for i := range all {
		s := &all[i]
		if w.pod == "" && w.service != "" && s.name == w.service {
			return s, s.portOf(w.port)
		}
	}
	for i := range all {
		for _, p := range all[i].ports {
			if len(w.ips) > 0 && p.NodePort != 0 && p.NodePort == w.port ||
				p.Port == w.port && all[i].hasAny(w.ips) {
				return &all[i], p
			}
		}
	}
	return nil, corev1.ServicePort{}
}

func (s *service) hasAny(ips []netip.Addr) bool {
	return slices.ContainsFunc(ips, func(ip netip.Addr) bool { return slices.Contains(s.ips, ip) })
}

// portOf is the port of a Service; that of its pods where it has no such port, as clients of a
// headless one connect to the pods.
func (s *service) portOf(port int32) corev1.ServicePort {
	for _, p := range s.ports {
		if p.Port == port && !s.headless {
			return p
		}
	}
	return corev1.ServicePort{Port: port}
}

// How lists of the API server are read.
const (
	listTimeout = 30 * time.Second // limits a list, however many pages it has
	// the next list begins at the earliest after this many times what the last one took,
	listShare = 4
	listRest  = 10 * time.Second // or after this time
)

// reading is what the latest complete list of the API server shows. One list at a time is under
// way, for all who ask: it goes on when one of them cannot wait for it.
type reading[T any] struct {
	list func(context.Context) (T, error)
	rest time.Duration // no list begins earlier after another one

	under singleflight.Group
	mu    sync.Mutex
	value T         // of the latest complete list; zero before
	due   time.Time // when the next list may begin
	err   error     // why the latest list is not complete
}

// latest lists unless it has just done so. With an error, the value is that of an earlier list.
func (r *reading[T]) latest(ctx context.Context) (T, error) {
	if value, err, due := r.known(); !due {
		return value, err
	}
	detached := context.WithoutCancel(ctx)
	done := r.under.DoChan("", func() (any, error) {
		r.renew(detached)
		return nil, nil
	})
	select {
	case <-done:
		value, err, _ := r.known()
		return value, err
	case <-ctx.Done():
		value, _, _ := r.known()
		return value, fmt.Errorf("in time: %w", context.Cause(ctx))
	}
}

// known is the result of the latest list, and whether the next one may begin.
func (r *reading[T]) known() (value T, err error, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, r.err, !time.Now().Before(r.due)
}

func (r *reading[T]) renew(ctx context.Context) {
	if _, _, due := r.known(); !due { // another list ended meanwhile
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	began := time.Now()
	value, err := r.list(ctx)
	if ctx.Err() != nil {
		err = fmt.Errorf("in time: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err = err; err == nil {
		r.value = value
	}
	r.due = time.Now().Add(max(r.rest, min(listShare*time.Since(began), listRest)))
}
