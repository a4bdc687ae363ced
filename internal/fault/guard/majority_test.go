package guard

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// Some charts run each sentinel in the pod of a server: the deletion of two of three pods also deletes two of three
// sentinels. Two more may run elsewhere, or be down.
func TestSentinelsBesideTheirServers(t *testing.T) {
	whole, process := contract.Traits{Silences: true, WholePod: true}, contract.Traits{Silences: true}
	majority := []v1alpha1.Allowance{v1alpha1.AllowMajorityOfSentinels}
	for name, tc := range map[string]struct {
		hit      int32
		traits   contract.Traits
		allow    []v1alpha1.Allowance
		unnamed  bool // the target has no sentinels by its spec
		mute     bool // the operator's user has no permission for the query
		more     int  // other sentinels that answer
		dead     int  // sentinels that the others list and that do not answer
		wantText string
	}{
		"one of three":                       {hit: 1, traits: whole},
		"two of three":                       {hit: 2, traits: whole, wantText: "2 of 3 sentinels and leave 1"},
		"two of three, allowed":              {hit: 2, traits: whole, allow: majority},
		"only their servers":                 {hit: 2, traits: process},
		"two of three that refuse the user":  {hit: 2, traits: whole, mute: true, wantText: "2 of 3 sentinels"},
		"two of five":                        {hit: 2, traits: whole, more: 2},
		"one of five, of which two are dead": {hit: 1, traits: whole, dead: 2, wantText: "1 of 5 sentinels and leave 2"},
		"two of three that nobody named": {
			hit:      2,
			traits:   whole,
			unnamed:  true,
			wantText: "2 of 3 sentinels and leave 1",
		},
		"one of three that nobody named": {hit: 1, traits: whole, unnamed: true},
		"two of five that nobody named":  {hit: 2, traits: whole, unnamed: true, more: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			for i, role := range []topology.Role{topology.Primary, topology.Replica, topology.Replica} {
				w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
			}
			for i := range tc.more + tc.dead {
				w.Bystander(fmt.Sprintf("sentinel-%d", i), fmt.Sprintf("10.0.0.%d", i+4))
			}
			var hosts []string
			for n := range 3 + tc.more + tc.dead {
				hosts = append(hosts, fmt.Sprintf("10.0.0.%d", n+1))
			}
			watchEachOther(w, hosts[:3+tc.more], hosts, tc.mute)
			deps := w.Deps()
			if !tc.unnamed {
				deps.Sentinels = sentinel.Set{Addresses: []string{"10.0.0.1:26379"}, Servers: deps.Servers}
			}
			spec := &v1alpha1.RedisFaultSpec{
				Select: v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectCount, Count: &tc.hit},
				Allow:  tc.allow,
			}
			_, err := Choose(t.Context(), faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis, spec,
				tc.traits)
			if tc.wantText == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonBlastRadius ||
				!strings.Contains(p.Message, tc.wantText) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// watchEachOther starts sentinels at the IPs, which list those at all hosts. mute ones refuse the user.
func watchEachOther(w *faulttest.World, ips, hosts []string, mute bool) {
	for n, host := range ips {
		sentinel := w.Servers.Start(net.JoinHostPort(host, "26379"), memredis.State{Mode: "sentinel"})
		if mute {
			sentinel.Answer("SENTINEL", "-NOPERM this user has no permissions")
			continue
		}
		var peers []any
		for i, peer := range hosts {
			if i != n {
				peers = append(peers, []any{"runid", fmt.Sprintf("id-%d", i), "ip", peer, "port", "26379"})
			}
		}
		for words, reply := range map[string]any{
			"SENTINEL MYID":                      fmt.Sprintf("id-%d", n),
			"SENTINEL MASTERS":                   []any{[]any{"name", "m"}},
			"SENTINEL MASTER m":                  []any{"name", "m", "flags", "master"},
			"SENTINEL GET-MASTER-ADDR-BY-NAME m": []any{"10.0.0.1", "6379"},
			"SENTINEL SENTINELS m":               peers,
		} {
			sentinel.Script(words, faulttest.Reply(reply))
		}
	}
}

// A node that loses its power takes the sentinels with it that run there in pods of their own, however they are known.
func TestSentinelsOnANodeWithoutPower(t *testing.T) {
	ips := []string{"10.0.0.4", "10.0.0.5", "10.0.0.6"}
	onHost := []string{"10.0.1.1", "10.0.1.2", "10.0.1.3"} // also the servers' there
	one, two := []string{"node-1", "node-2", "node-3"}, []string{"node-1", "node-2", "node-1"}
	const tooMany = "2 of 3 sentinels and leave 1, too few to elect a primary; spec.allow: [MajorityOfSentinels]"
	declares := func(port int32) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, Name: "sentinel"}}
		}
	}
	for name, tc := range map[string]struct {
		nodes   []string // of the sentinels
		ips     []string // theirs; nil = those of pods
		hosts   []string // by which they know each other; nil = these IPs
		given   string   // host of the one that the target names; "" = the first of them
		change  func(i int, p *corev1.Pod)
		also    *corev1.Pod // what differs in another pod of the node
		method  v1alpha1.LossMethod
		allow   v1alpha1.Allowance
		others  []Hit
		refused string
		waits   bool
	}{
		"one of three":             {nodes: one},
		"two of three":             {nodes: two, refused: tooMany},
		"two of three, allowed":    {nodes: two, allow: v1alpha1.AllowMajorityOfSentinels},
		"two of three, which stay": {nodes: two, method: v1alpha1.LossTaint},
		"two of three that know each other by name": {
			nodes: two, hosts: []string{"sentinel-0.redis.shop.svc", "sentinel-1.redis.shop.svc", "sentinel-2.redis.shop.svc"},
			refused: tooMany,
		},
		"two of three, each behind a Service": {
			nodes: two, hosts: []string{"10.96.0.10", "10.96.0.11", "10.96.0.12"}, refused: tooMany,
		},
		"two of three, each behind a Service whose name they give": {
			nodes: two, hosts: []string{"announce-0.shop.svc", "announce-1.shop.svc", "announce-2.shop.svc"}, refused: tooMany,
		},
		"the only one, known by its Service": {
			nodes: one[:1], given: "announce-0.shop.svc", refused: "1 of 1 sentinels",
		},
		"one of three, whose pods have the name of the Service": {
			nodes: []string{"node-2", "node-1", "node-3"}, given: "announce-0.shop.svc",
			change: func(_ int, p *corev1.Pod) { p.Spec.Hostname = "announce-0" },
		},
		"one of three in the network of the node": {nodes: one, ips: onHost, change: declares(26379)},
		"two of three in the network of the node": {
			nodes: []string{"node-1", "node-2"}, ips: onHost[:2], hosts: onHost, change: declares(26379), refused: "1 of 3 sentinels",
		},
		"one of three, and an ended pod had the address of another": {
			nodes: one, also: &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded, PodIP: ips[1]}},
		},
		"one of two, while another fault keeps the third": {
			nodes: one[:2], hosts: ips, refused: "1 of 3 sentinels", waits: true,
			others: []Hit{{Pod: "redis-2", Address: "10.0.0.3:6379", Fault: "other", UID: "u2", Power: true}},
		},
		"one of two, and the third is down": {nodes: one[:2], hosts: ips, refused: "1 of 3 sentinels"},
	} {
		t.Run(name, func(t *testing.T) {
			var services []client.Object
			for i := range 3 {
				services = append(services, &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: fmt.Sprintf("announce-%d", i)},
					Spec: corev1.ServiceSpec{
						Selector: map[string]string{"sentinel": strconv.Itoa(i)}, ClusterIP: fmt.Sprintf("10.96.0.%d", 10+i),
						Ports: []corev1.ServicePort{{Port: 26379, TargetPort: intstr.FromInt32(26379)}},
					},
				})
			}
			w := faulttest.NewWorld(t, services...)
			for i, role := range []topology.Role{topology.Primary, topology.Replica, topology.Replica} {
				ip := fmt.Sprintf("10.0.0.%d", i+1)
				if tc.ips != nil {
					ip = onHost[i]
				}
				w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), ip, role, func(p *corev1.Pod) {
					p.Spec.NodeName, p.Spec.HostNetwork = fmt.Sprintf("node-%d", i+1), tc.ips != nil
				})
			}
			if tc.ips == nil {
				tc.ips = ips[:len(tc.nodes)]
			}
			if tc.hosts == nil {
				tc.hosts = tc.ips
			}
			apart := func(name, ip, node string, change func(*corev1.Pod)) {
				w.Pod(name, "u-"+name, ip, "", func(p *corev1.Pod) {
					p.Labels, p.OwnerReferences, p.Spec.NodeName = nil, nil, node
					change(p)
				})
			}
			for i, node := range tc.nodes {
				apart(fmt.Sprintf("sentinel-%d", i), tc.ips[i], node, func(p *corev1.Pod) {
					p.Labels = map[string]string{"sentinel": strconv.Itoa(i)}
					if tc.change != nil {
						tc.change(i, p)
					}
				})
			}
			if tc.also != nil {
				apart("other", tc.also.Status.PodIP, "node-1", func(p *corev1.Pod) { p.Status.Phase = tc.also.Status.Phase })
			}
			watchEachOther(w, tc.ips, tc.hosts, false)
			deps := w.Deps()
			deps.Sentinels = sentinel.Set{
				Addresses: []string{net.JoinHostPort(cmp.Or(tc.given, tc.hosts[0]), "26379")}, Servers: deps.Servers,
			}
			spec := &v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultNodeLoss, NodeLoss: &v1alpha1.NodeLoss{
					Node: "node-1", Method: cmp.Or(tc.method, v1alpha1.LossPower),
				}},
				Select: v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll},
				Allow:  []v1alpha1.Allowance{v1alpha1.AllowAllCopies, tc.allow},
			}
			traits := contract.Traits{Silences: true, WholePod: true, Place: contract.Place{Node: "node-1"}}
			redis := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis
			selected, err := Select(t.Context(), redis, spec, traits, nil, tc.others)
			if err == nil { // and again, just before it is hit
				err = Check(t.Context(), redis, spec, traits, &selected.Targets[0], selected.Targets, tc.others)
			}
			if tc.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonBlastRadius || p.Lasting == tc.waits ||
				!strings.Contains(p.Message, tc.refused) {
				t.Errorf("%+v", p)
			}
		})
	}
}
