package guard

import (
	"cmp"
	"errors"
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
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func TestWithinRadius(t *testing.T) {
	type one struct {
		role  topology.Role
		shard int
		mute  bool
		hit   bool
	}
	const p, r, s = topology.Primary, topology.Replica, topology.Sentinel
	for _, tc := range []struct {
		name    string
		servers []one
		allow   []v1alpha1.Allowance
		refused string // the allowance that would permit it
	}{
		{"the only server", []one{{p, target.NoShard, false, true}}, nil, ""},
		{"the primary of two", []one{{p, target.NoShard, false, true}, {r, target.NoShard, false, false}}, nil, ""},
		{"both of two", []one{{p, target.NoShard, false, true}, {r, target.NoShard, false, true}}, nil, "AllCopies"},
		{
			"both of two, allowed",
			[]one{{p, target.NoShard, false, true}, {r, target.NoShard, false, true}},
			[]v1alpha1.Allowance{v1alpha1.AllowAllCopies},
			"",
		},
		{
			"the one of two that answers",
			[]one{{p, target.NoShard, false, true}, {r, target.NoShard, true, false}},
			nil,
			"AllCopies",
		},
		{
			"all primaries of a cluster",
			[]one{
				{p, 0, false, true},
				{r, 0, false, false},
				{p, 1, false, true},
				{r, 1, false, false},
				{p, 2, false, true},
				{r, 2, false, false},
			},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"two primaries of three",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, true}, {r, 1, false, false}, {p, 2, false, false}},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"the same, allowed",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, true}, {r, 1, false, false}, {p, 2, false, false}},
			[]v1alpha1.Allowance{v1alpha1.AllowMajorityOfPrimaries},
			"",
		},
		{
			"one primary of three",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, false}, {p, 2, false, false}},
			nil,
			"",
		},
		{
			"one primary of three, of which one is down",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, true, false}, {p, 2, false, false}},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"one primary of two",
			[]one{{p, 0, false, true}, {r, 0, false, false}, {p, 1, false, false}},
			nil,
			"MajorityOfPrimaries",
		},
		{
			"a replica, whatever its primaries",
			[]one{{p, 0, false, false}, {r, 0, false, true}, {p, 1, true, false}, {p, 2, true, false}},
			nil,
			"",
		},
		{
			"a whole shard",
			[]one{{p, 0, false, false}, {r, 0, false, false}, {p, 1, false, true}, {r, 1, false, true}, {p, 2, false, false}},
			nil,
			"AllCopies",
		},
		{
			"a shard that is down is not this fault's",
			[]one{
				{p, 0, true, false},
				{r, 0, true, false},
				{p, 1, false, true},
				{r, 1, false, false},
				{p, 2, false, false},
				{p, 3, false, false},
				{p, 4, false, false},
			},
			nil,
			"",
		},
		{"a shard without a copy", []one{{p, 0, false, true}, {p, 1, false, false}, {p, 2, false, false}}, nil, ""},
		{
			"one of three sentinels",
			[]one{{s, target.NoShard, false, true}, {s, target.NoShard, false, false}, {s, target.NoShard, false, false}},
			nil,
			"",
		},
		{
			"two of three sentinels",
			[]one{{s, target.NoShard, false, true}, {s, target.NoShard, false, true}, {s, target.NoShard, false, false}},
			nil,
			"MajorityOfSentinels",
		},
		{
			"two of five sentinels",
			[]one{{s, 0, false, true}, {s, 0, false, true}, {s, 0, false, false}, {s, 0, false, false}, {s, 0, false, false}},
			nil,
			"",
		},
		{
			"the other allowance does not help",
			[]one{{s, target.NoShard, false, true}},
			[]v1alpha1.Allowance{v1alpha1.AllowAllCopies},
			"MajorityOfSentinels",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			scene, b := scene{census: &target.Census{}}, &blow{}
			data := map[int]*target.Data{}
			for i, o := range tc.servers {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("redis-%d", i)}}
				srv := target.Server{Pod: pod, State: topology.Server{Role: o.role}, Shard: o.shard}
				c := target.Copy{Name: pod.Name, Server: &srv}
				if o.mute {
					srv.Err, c.Behind = errors.New("no answer"), "does not answer"
				}
				scene.census.Servers = append(scene.census.Servers, srv)
				if o.role == p && o.shard != target.NoShard {
					scene.census.Voters = append(scene.census.Voters, target.Voter{Name: pod.Name, Answers: !o.mute})
				}
				if data[o.shard] == nil {
					data[o.shard] = &target.Data{Name: "the data"}
				}
				if o.role != s {
					data[o.shard].Copies = append(data[o.shard].Copies, c)
				}
				if o.hit {
					b.now = append(b.now, pod.Name)
				}
			}
			for _, d := range data {
				scene.data = append(scene.data, *d)
			}
			err := scene.judge(b, &v1alpha1.RedisFaultSpec{Allow: tc.allow}, contract.Traits{Silences: true})
			if tc.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if wide, is := errors.AsType[*tooWide](err); !is || string(wide.lifts) != tc.refused {
				t.Errorf("%v, want one that %s lifts", err, tc.refused)
			}
		})
	}
}

func TestGuardedProtected(t *testing.T) {
	for value, refused := range map[string]bool{
		"true": true, "True": true, "yes": true, "1": true, "": true, "false": false, "FALSE": false, "absent": false,
	} {
		namespace := &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name:        faulttest.Namespace,
				Annotations: map[string]string{v1alpha1.AnnotationProtected: value},
			},
		}
		if value == "absent" {
			namespace.Annotations = nil
		}
		w := faulttest.NewWorld(t, namespace)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
			&v1alpha1.RedisFaultSpec{}, contract.Traits{Silences: true})
		if !refused {
			if err != nil || len(found) != 1 {
				t.Errorf("%q: %v, %v", value, found, err)
			}
			continue
		}
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonProtected || !p.Lasting ||
			!strings.Contains(p.Message, faulttest.Namespace) {
			t.Errorf("%+v", p)
		}
	}
}

const nodes = `07c37dfeb235213a872192d90877d0cd55635b91 10.0.0.1:6379@16379,, master - 0 1 2 connected 5461-16383
67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 10.0.0.2:6379@16379,, myself,master - 0 1 1 connected 0-5460
292f8b365bb7edb5e285caf0b7e6ddc7265d2f4f 10.0.0.3:6379@16379,, slave 67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 0 1 1 connected
`

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

func TestSelectShard(t *testing.T) {
	w := faulttest.NewWorld(t)
	for i, role := range []topology.Role{topology.Primary, topology.Primary, topology.Replica} {
		pod := w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
		w.Servers.Change(faulttest.AddressOf(pod), func(s *memredis.State) { s.Mode = "cluster" })
	}
	noPermission := faulttest.Reply(redis.Error("NOPERM this user has no permissions"))
	w.Servers.Script("CLUSTER MYID", noPermission) // then the address identifies a node
	w.Servers.Script("CLUSTER NODES", faulttest.Reply(nodes))
	for shard, want := range map[int32]string{0: "redis-1 redis-2", 1: "redis-0"} {
		found, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
			&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: &shard, Mode: v1alpha1.SelectAll}}, contract.Traits{})
		var names []string
		for _, f := range found {
			names = append(names, f.Pod)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("shard %d: %v, %v, want %s", shard, names, err, want)
		}
	}
	_, err := Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: new(int32(2))}}, contract.Traits{})
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNoTarget ||
		!strings.Contains(p.Message, "spec.select.shard") {
		t.Errorf("%+v", p)
	}
	// The primary of shard 0 and its only replica: a whole shard.
	_, err = Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: new(int32(0)), Mode: v1alpha1.SelectAll}},
		contract.Traits{Silences: true})
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonBlastRadius ||
		!strings.Contains(p.Message, "shard 0") {
		t.Errorf("%+v", p)
	}
	w.Servers.Script("CLUSTER NODES", noPermission)
	_, err = Choose(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{}}, contract.Traits{})
	if p := faulttest.ProblemOf(t, err); !p.Lasting || !strings.Contains(p.Message, "+cluster|nodes") {
		t.Errorf("a user without CLUSTER NODES: %+v", p)
	}
}

// KeyDB's active replicas are refused, whatever the fault: no guard can count their copies.
func TestActiveReplicasAreRefused(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Active, nil)
	_, err := Choose(t.Context(), on(w), &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultConfig}},
		contract.Traits{})
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported || !p.Lasting ||
		!strings.Contains(p.Message, "redis-1 has active-replica yes (KeyDB)") {
		t.Errorf("%+v", p)
	}
}
