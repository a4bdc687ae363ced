package target

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// directory is the pods of a namespace by their addresses, at one instant. It does not change.
type directory struct {
	residents []resident // by name
	byIP      map[netip.Addr][]*resident
}

// resident is what a directory keeps of a pod.
type resident struct {
	name, hostname, subdomain string
	labels                    map[string]string
	ips                       []netip.Addr
	ports                     []corev1.ContainerPort
	onHost                    bool // it has the addresses of its node, at whose other ports others listen
	ready                     bool
}

func newDirectory(residents []resident) *directory {
	slices.SortFunc(residents, func(a, b resident) int { return strings.Compare(a.name, b.name) })
	d := &directory{residents: residents, byIP: make(map[netip.Addr][]*resident, len(residents))}
	for i := range residents {
		for _, ip := range residents[i].ips {
			d.byIP[ip] = append(d.byIP[ip], &residents[i])
		}
	}
	return d
}

// residentsOf are the pods that have an address. One that has ended shows an address that may be another pod's by now.
func residentsOf(pods []corev1.Pod) []resident {
	var all []resident
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		r := resident{
			name: pod.Name, hostname: cmp.Or(pod.Spec.Hostname, pod.Name), subdomain: pod.Spec.Subdomain, labels: pod.Labels,
			onHost: pod.Spec.HostNetwork || pod.Status.HostIP != "" && pod.Status.HostIP == pod.Status.PodIP,
		}
		for _, text := range append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...) {
			if ip, err := netip.ParseAddr(text.IP); err == nil && !slices.Contains(r.ips, ip.Unmap()) {
				r.ips = append(r.ips, ip.Unmap())
			}
		}
		if len(r.ips) == 0 {
			continue
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			r.ports = append(r.ports, c.Ports...)
		}
		r.ready = slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		all = append(all, r)
	}
	return all
}

// has reports whether an address is a pod's.
func (d *directory) has(ip netip.Addr, port int32) bool {
	return slices.ContainsFunc(d.byIP[ip], func(r *resident) bool { return r.has(port) })
}

// named finds a pod by its host name in a headless Service.
func (d *directory) named(hostname, service string, port int32) []string {
	for i := range d.residents {
		if r := &d.residents[i]; r.hostname == hostname && r.subdomain == service && r.has(port) {
			return []string{placeOf(r.ips[0], port)}
		}
	}
	return nil
}

// behind are the pods of a Service, ready ones first. One without a selector leads to wherever somebody has written.
func (d *directory) behind(s *corev1.Service, p corev1.ServicePort) []string {
	if len(s.Spec.Selector) == 0 {
		return nil
	}
	selects := labels.SelectorFromSet(s.Spec.Selector)
	var ready, others []string
	for i := range d.residents {
		r := &d.residents[i]
		port := r.targetOf(p)
		switch {
		case !selects.Matches(labels.Set(r.labels)) || !r.has(port):
		case r.ready:
			ready = append(ready, placeOf(r.ips[0], port))
		default:
			others = append(others, placeOf(r.ips[0], port))
		}
	}
	return append(ready, others...)
}

// targetOf is the port of a pod to which a port of a Service leads; 0 = none.
func (r *resident) targetOf(p corev1.ServicePort) int32 {
	if name := p.TargetPort.StrVal; name != "" {
		for _, c := range r.ports {
			if c.Name == name {
				return c.ContainerPort
			}
		}
		return 0
	}
	return cmp.Or(p.TargetPort.IntVal, p.Port)
}

// has reports whether a port is the pod's: on the network of its node only those that it declares, which no other pod of the node can have.
func (r *resident) has(port int32) bool {
	return port > 0 && (!r.onHost || slices.ContainsFunc(r.ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == port }))
}

func placeOf(ip netip.Addr, port int32) string {
	return net.JoinHostPort(ip.String(), strconv.Itoa(int(port)))
}
