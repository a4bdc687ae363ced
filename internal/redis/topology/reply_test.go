package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func list(items ...any) []any { return items }

func TestParseRole(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply any
		want  RoleReply
		bad   bool
	}{
		{
			"primary",
			list("master", int64(3129659), list(list("127.0.0.1", "9001", "3129242"), list("::1", "9002", "3129543"))),
			RoleReply{Role: Primary, Offset: 3129659, Replicas: []string{"127.0.0.1:9001", "[::1]:9002"}},
			false,
		},
		{"primary alone", list("master", int64(0), list()), RoleReply{Role: Primary}, false},
		{
			"replica", list("slave", "redis-0.redis", int64(6379), "connected", int64(3167038)),
			RoleReply{Role: Replica, Primary: "redis-0.redis:6379", Link: "connected", Offset: 3167038},
			false,
		},
		{"sentinel", list("sentinel", list("a", "b")), RoleReply{Role: Sentinel, Masters: []string{"a", "b"}}, false},
		{"nothing", nil, RoleReply{}, true},
		{"unknown", list("arbiter", int64(1), list()), RoleReply{}, true},
		{"too short", list("slave", "a"), RoleReply{}, true},
		{
			"entries that cannot be dialled",
			list("master", int64(1), list(list("", "1"), "x", list("a", "70000"))),
			RoleReply{Role: Primary, Offset: 1},
			false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseRole(tc.reply)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.bad {
				t.Errorf("%v, -want +got\n%s", err, diff)
			}
		})
	}
}

func TestParseSentinelReplies(t *testing.T) {
	replica := func(port, flags, reported string) []any {
		return list("ip", "10.0.0.1", "port", port, "flags", flags, "role-reported", reported)
	}
	entries := list(replica("3", "slave", "slave"), replica("1", "slave", "slave"), replica("4", "s_down,slave", "slave"),
		replica("5", "slave,disconnected", "slave"), replica("6", "slave", "master"))
	want := []string{"10.0.0.1:1", "10.0.0.1:3"}
	if diff := cmp.Diff(want, ParseSentinelReplicas(entries)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.1:3", "10.0.0.1:9"},
		ParseSentinels(list(replica("9", "sentinel", ""), replica("3", "sentinel", "")))); diff != "" {
		t.Error(diff)
	}
	for message, want := range map[string]string{
		"mymaster 10.0.0.1 6379 10.0.0.2 6380": "mymaster 10.0.0.1:6379 10.0.0.2:6380 true",
		"mymaster ::1 6379 redis-1 6380":       "mymaster [::1]:6379 redis-1:6380 true",
		"mymaster 10.0.0.1 6379":               "   false",
		"mymaster a 6379 b port":               "mymaster a:6379  false",
	} {
		name, from, to, ok := ParseSwitchMaster(message)
		if got := name + " " + from + " " + to + " " + map[bool]string{true: "true", false: "false"}[ok]; got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

func TestParseSlots(t *testing.T) {
	reply := list(
		list(int64(0), int64(9), list("10.0.0.1", int64(1), "a", list()), list("", int64(2), "b")),
		list(int64(20), int64(29), list("10.0.0.1", int64(1), "a"), list("10.0.0.2", int64(2), "b")),
		list(int64(10), int64(19), list(nil, int64(3), "c")),
	)
	want := View{Groups: []Group{
		{
			Ranges: [][2]uint16{{0, 9}, {20, 29}},
			Nodes:  []Node{{ID: "a", Address: "10.0.0.1:1", Role: Primary}, {ID: "b", Address: "asked:2", Role: Replica}},
		},
		{Ranges: [][2]uint16{{10, 19}}, Nodes: []Node{{ID: "c", Address: "asked:3", Role: Primary}}},
	}}
	got, err := ParseSlots(reply, "asked:6379")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []any{
		list(list(int64(1))), list(list(int64(0), int64(1), "x")),
		list(list("a", "b", list("h", int64(1), "i"))),
	} {
		if got, err := ParseSlots(bad, "asked:1"); err == nil {
			t.Errorf("%v is read as %+v", bad, got)
		}
	}
}

func TestParseNodes(t *testing.T) {
	const text = `a 10.0.0.1:1@10001,host myself,master - 0 0 5 connected 0-99 200 [300->-c] [301-<-c]
b :2@10002 slave a 0 1 5 connected
c 10.0.0.3:3@10003 master,fail? - 0 1 7 connected 100-199
d 10.0.0.4:4@10004 slave,fail c 0 1 7 disconnected
e :0@0 master,noaddr - 0 1 0 disconnected
f ::1:6@10006 handshake - 0 0 0 connected
`
	want := View{Epochs: map[string]uint64{"a": 5, "c": 7}, Groups: []Group{
		{
			Ranges: [][2]uint16{{0, 99}, {200, 200}},
			Nodes: []Node{
				{ID: "a", Address: "10.0.0.1:1", Role: Primary, Named: "host:1"},
				{ID: "b", Address: "asked:2", Role: Replica},
			},
		},
		{Ranges: [][2]uint16{{100, 199}}, Nodes: []Node{
			{ID: "c", Address: "10.0.0.3:3", Role: Primary}, {ID: "d", Address: "10.0.0.4:4", Role: Replica},
		}},
	}}
	got, err := ParseNodes(text, "asked:6379")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{
		"", "a b c\n", "a 10.0.0.1:1@2 master - 0 0 5 connected 5-1\n",
		"a 10.0.0.1:1@2 master - 0 0 5 connected x\n",
	} {
		if got, err := ParseNodes(bad, "asked:1"); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
