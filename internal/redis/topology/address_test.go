package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/redis"
)

// Each place that reads an address from a reply reads every form that servers write, in the same way.
func TestAddressesThatServersWrite(t *testing.T) {
	const asked = "[fd00::9]:7000"
	for _, tc := range []struct {
		host, port, want string
		unknown          bool // the server tells no host: it stands for the one that was asked, where that is possible
	}{
		{"10.0.0.1", "6379", "10.0.0.1:6379", false},
		{"::1", "27354", "[::1]:27354", false},
		{"fd00:10:244::17", "6379", "[fd00:10:244::17]:6379", false},
		{"::ffff:10.0.0.1", "6379", "[::ffff:10.0.0.1]:6379", false},
		{"fe80::1%eth0", "6379", "[fe80::1%eth0]:6379", false},
		{"redis-0.redis.ns.svc.cluster.local", "6379", "redis-0.redis.ns.svc.cluster.local:6379", false},
		{"localhost", "1", "localhost:1", false},
		{"", "6379", "[fd00::9]:6379", true},
		{"?", "6379", "[fd00::9]:6379", true},
		{"10.0.0.1", "0", "", false},
		{"10.0.0.1", "65536", "", false},
		{"10.0.0.1", "-1", "", false},
		{"10.0.0.1", "port", "", false},
		{"10.0.0.1", "", "", false},
		{"a b", "6379", "", false},
		{"a:b", "6379", "", false},
		{"10.0.0.1:6379", "6379", "", false},
		{"\x1b[2J", "6379", "", false},
	} {
		told := tc.want // without a server that was asked in its place
		if tc.unknown {
			told = ""
		}
		instead := func(name, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, port %q is read as %q, want %q", name, tc.host, tc.port, got, want)
			}
		}
		instead("one word", AddressOf(tc.host+":"+tc.port, asked), tc.want)
		instead("in brackets", AddressOf("["+tc.host+"]:"+tc.port, asked), tc.want)
		line := "a " + tc.host + ":" + tc.port + "@1 master - 0 0 1 connected 0\n"
		if v, err := ParseNodes(line, asked); err == nil {
			instead("CLUSTER NODES", v.Groups[0].Nodes[0].Address, tc.want)
		}
		slots, err := ParseSlots(list(list(int64(0), int64(1), list(tc.host, tc.port, "a"))), asked)
		if err != nil {
			t.Fatal(err)
		}
		instead("CLUSTER SLOTS", slots.Groups[0].Nodes[0].Address, tc.want)
		role, err := ParseRole(list("slave", tc.host, tc.port, "connected", int64(1)))
		if err != nil {
			t.Fatal(err)
		}
		instead("ROLE of a replica", role.Primary, told)
		role, err = ParseRole(list("master", int64(1), list(list(tc.host, tc.port, "1"))))
		if err != nil {
			t.Fatal(err)
		}
		instead("ROLE of a primary", first(role.Replicas), told)
		info := ReplicationOf(redis.Info{
			"role": "slave", "master_host": tc.host, "master_port": tc.port,
			"slave0": "ip=" + tc.host + ",port=" + tc.port + ",state=online,offset=1,lag=0",
		})
		instead("INFO's master_host", info.Primary, told)
		instead("INFO's slave0", info.Replicas[0].Address, told)
		instead("GET-MASTER-ADDR-BY-NAME", ParsePrimaryAddress(list(tc.host, tc.port)), told)
		fields := list("name", "m", "runid", "i", "ip", tc.host, "port", tc.port, "flags", "slave")
		watched, err := ParseWatched(fields)
		if err != nil {
			t.Fatal(err)
		}
		instead("SENTINEL MASTER", watched.Address, told)
		instead("SENTINEL REPLICAS", first(ParseSentinelReplicas(list(fields))), told)
		instead("SENTINEL SENTINELS", first(ParseSentinels(list(fields))), told)
		instead("its peers", ParsePeers(list(fields))["i"], told)
		_, from, to, _ := ParseSwitchMaster("m " + tc.host + " " + tc.port + " " + tc.host + " " + tc.port)
		if told != "" {
			instead("+switch-master, from", from, told)
			instead("+switch-master, to", to, told)
		}
	}
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// A node has two names in CLUSTER NODES, and a redirection may use either.
func TestHostNameInClusterNodes(t *testing.T) {
	for word, want := range map[string][2]string{
		"::1:6379@16379,redis-0.redis":            {"[::1]:6379", "redis-0.redis:6379"},
		"10.0.0.1:6379@16379,redis-0,nodename=x":  {"10.0.0.1:6379", "redis-0:6379"},
		"10.0.0.1:6379@16379,,tls-port=0,shard=y": {"10.0.0.1:6379", ""},
		"10.0.0.1:6379@16379,shard-id=y":          {"10.0.0.1:6379", ""},
		"10.0.0.1:6379":                           {"10.0.0.1:6379", ""},
		"nonsense":                                {"", ""},
		"":                                        {"", ""},
	} {
		address, named := nodeAddress(word, "asked:1")
		if diff := cmp.Diff(want, [2]string{address, named}); diff != "" {
			t.Errorf("%q: %s", word, diff)
		}
	}
}

// Whatever servers name in MOVED, the map has the shards that nodes have told, and every slot belongs to one of them.
func TestNoRedirectionMakesAShard(t *testing.T) {
	const shards = 3
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		text := ""
		var known []string
		for i := range shards {
			p, r := fmt.Sprintf("10.0.0.%d:6379", i), fmt.Sprintf("[fd00::%d]:6379", i)
			known = append(known, p, r)
			text += fmt.Sprintf("p%d %s@1 master - 0 0 %d connected %d-%d\n", i, p, i+1,
				SlotCount*i/shards, SlotCount*(i+1)/shards-1)
			text += fmt.Sprintf("r%d fd00::%d:6379@1 slave p%d 0 0 %d connected\n", i, i, i, i+1)
		}
		view, err := ParseNodes(text, "asked:1")
		if err != nil {
			t.Fatal(err)
		}
		m, _ := MapOf(nil, []View{view})
		for range 200 {
			slot, to := uint16(random.UintN(SlotCount)), anyAddress(random, known)
			next, told := m.WithMoved(slot, to)
			if len(next.Shards) != shards || next.Unassigned() != 0 {
				t.Fatalf("seed %d: MOVED %d %q makes %+v", seed, slot, to, next.Shards)
			}
			if n, _ := next.ShardOf(slot); told && next.Shards[n].Primary != to || !told && next != m {
				t.Fatalf("seed %d: MOVED %d %q, known %t: shard %d of %+v", seed, slot, to, told, n, next.Shards)
			}
			m = next
		}
	}
}

// anyAddress is what a redirection may name: a server that there is, another, or nothing that can be dialled.
func anyAddress(random *rand.Rand, known []string) string {
	switch random.IntN(3) {
	case 0:
		return known[random.IntN(len(known))]
	case 1:
		return fmt.Sprintf("10.9.0.%d:%d", random.IntN(256), 1+random.IntN(65535))
	}
	return []string{"", "::1:6379", "?:6379", ":6379", "nowhere", "a b:c"}[random.IntN(6)]
}

// A primary that has no slot yet is no shard, until a slot moves to it: by the address or the name that nodes tell.
func TestSlotsMoveToASparePrimary(t *testing.T) {
	const listed = "a 10.0.0.1:6379@1,redis-0 master - 0 0 1 connected 0-16383\n"
	told, err := ParseNodes(listed+"b 10.0.0.2:6379@1,redis-1 master - 0 0 2 connected\n", "asked:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"10.0.0.2:6379", "redis-1:6379"} {
		view, _ := ParseNodes(listed, "asked:1")
		view.AddUnlisted(told)
		m, _ := MapOf(nil, []View{view})
		if len(m.Shards) != 1 {
			t.Fatalf("the spare primary is a shard: %+v", m.Shards)
		}
		moved, known := m.WithMoved(5, address)
		if n, _ := moved.ShardOf(5); !known || len(moved.Shards) != 2 || n != 1 || moved.Shards[1].Primary != address {
			t.Errorf("MOVED to %s: %t, %+v", address, known, moved.Shards)
		}
	}
}
