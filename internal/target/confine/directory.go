package confine

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/target/podstate"
)

// directory is pods of a namespace by their addresses, at one instant. Which pods they are does not
// change.
type directory struct {
	residents []*resident // by name
	byIP      map[netip.Addr][]*resident
}

// resident is what a directory keeps of a pod.
type resident struct {
	name, hostname, subdomain string
	uid                       types.UID
	labels                    map[string]string
	ips                       []netip.Addr
	ports                     []corev1.ContainerPort
	// it has the addresses of its node, at whose other ports others listen
	onHost bool
	ready  bool

	// when the API server has shown it last; these two change, under the lock of the book
	seen time.Time
	gone bool // the API server has shown that the pod has ended, or has other addresses
}

// place is where a pod is dialled.
type place struct {
	address string
	of      *resident
}

func newDirectory(residents []*resident) *directory {
	slices.SortFunc(residents, func(a, b *resident) int { return strings.Compare(a.name, b.name) })
	d := &directory{residents: residents, byIP: make(map[netip.Addr][]*resident, len(residents))}
	for _, r := range residents {
		for _, ip := range r.ips {
			d.byIP[ip] = append(d.byIP[ip], r)
		}
	}
	return d
}

// residentsOf are the pods that have an address. One that has ended shows an address that may be
// another pod's by now.
func residentsOf(pods []corev1.Pod, seen time.Time) []*resident {
	var all []*resident
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		r := &resident{
			name:      pod.Name,
			uid:       pod.UID,
			seen:      seen,
			hostname:  cmp.Or(pod.Spec.Hostname, pod.Name),
			subdomain: pod.Spec.Subdomain,
			labels:    pod.Labels,
			onHost: pod.Spec.HostNetwork ||
				pod.Status.HostIP != "" && pod.Status.HostIP == pod.Status.PodIP,
		}
		for _, text := range append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...) {
			ip, err := netip.ParseAddr(text.IP)
			if err == nil && !slices.Contains(r.ips, ip.Unmap()) {
				r.ips = append(r.ips, ip.Unmap())
			}
		}
		if len(r.ips) == 0 {
			continue
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			r.ports = append(r.ports, c.Ports...)
		}
		r.ready = podstate.IsReady(pod)
		all = append(all, r)
	}
	return all
}

// unlabelled drops what only Services need: a namespace may have thousands of pods.
func unlabelled(all []*resident) []*resident {
	for _, r := range all {
		r.labels = nil
		if !r.onHost {
			r.ports = nil
		}
	}
	return all
}

// same reports whether both are the same pod at the same addresses.
func (r *resident) same(other *resident) bool {
	return r.uid == other.uid && r.onHost == other.onHost && slices.Equal(r.ips, other.ips)
}

// at are the pods that have an address.
func (d *directory) at(ip netip.Addr, port int32) []place {
	var found []place
	for _, r := range d.byIP[ip] {
		if r.has(port) {
			found = append(found, place{placeOf(ip, port), r})
		}
	}
	return found
}

// named finds a pod by its host name in a headless Service.
func (d *directory) named(hostname, service string, port int32) []place {
	if hostname == "" {
		return nil
	}
	for _, r := range d.residents {
		if r.hostname == hostname && r.subdomain == service && r.has(port) {
			return []place{{placeOf(r.ips[0], port), r}}
		}
	}
	return nil
}

// behind are the pods of a Service, ready ones first.
func (d *directory) behind(s *service, p corev1.ServicePort) []place {
	selects := labels.SelectorFromSet(s.selector)
	var ready, others []place
	for _, r := range d.residents {
		port := r.targetOf(p)
		switch {
		case !selects.Matches(labels.Set(r.labels)) || !r.has(port):
		case r.ready:
			ready = append(ready, place{placeOf(r.ips[0], port), r})
		default:
			others = append(others, place{placeOf(r.ips[0], port), r})
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

// has reports whether a port is the pod's: on the network of its node only those that it declares,
// which no other pod of the node can have.
func (r *resident) has(port int32) bool {
	return port > 0 && (!r.onHost ||
		slices.ContainsFunc(r.ports, func(p corev1.ContainerPort) bool {
			return p.ContainerPort == port
		}))
}

func placeOf(ip netip.Addr, port int32) string {
	return net.JoinHostPort(ip.String(), strconv.Itoa(int(port)))
}
