package confine

import (
	"context"
	"net/netip"
	"slices"

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
		if ip, err := netip.ParseAddr(text); err == nil && !slices.Contains(kept.ips, ip.Unmap()) {
			kept.ips = append(kept.ips, ip.Unmap())
		}
	}
	return kept
}

// through finds the Service that has an address, and its port; nil = none has it.
func through(all []service, w *wanted) (*service, corev1.ServicePort) {
	for i := range all {
		if s := &all[i]; w.pod == "" && w.service != "" && s.name == w.service {
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
