package topology

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// Whatever servers, nodes and sentinels reply, no parser panics, and what may get into a status is short and printable.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		"*3\r\n$6\r\nmaster\r\n:5\r\n*1\r\n*3\r\n$8\r\n10.0.0.2\r\n$4\r\n6379\r\n$1\r\n5\r\n",
		"*2\r\n$9\r\nx\x1b[2J\xff\xfe.y\r\n$4\r\n6379\r\n", "*2\r\n:1\r\n:70000\r\n", "*2\r\n$0\r\n\r\n$2\r\n-1\r\n",
		"*1\r\n*4\r\n:0\r\n:16383\r\n*3\r\n$1\r\n?\r\n:1\r\n$1\r\na\r\n*2\r\n$0\r\n\r\n:2\r\n",
		"*1\r\n*10\r\n$4\r\nname\r\n$1\r\nm\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n$4\r\nport\r\n$4\r\n6379\r\n$5\r\nrunid\r\n" +
			"$1\r\ni\r\n$5\r\nflags\r\n$5\r\nslave\r\n",
		"$90\r\na 10.0.0.1:1@2,host myself,master - 0 0 1 connected 0-5 7 [93->-x]\nb :0@0 slave,noaddr a 0 0 1 x\n\r\n",
		"$60\r\nrole:slave\r\nmaster_host:x y\r\nmaster_port:1\r\nslave0:ip=::1,port=6\r\n\r\n",
		"$41\r\na ::1:6379@16379 master - 0 0 1 connected 99999\r\n", "*-1\r\n", "_\r\n", "-ERR \x1b\r\n",
		"%1\r\n+name\r\n*0\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		v, err := resp.ReadValue(bufio.NewReader(strings.NewReader(string(input))))
		if err != nil {
			return
		}
		reply := redis.Plain(v)
		text := TextOf(reply)
		var addresses, words []string
		said := func(err error) {
			if err != nil {
				words = append(words, err.Error())
			}
		}
		said(redis.ErrorOf(v))
		views := func(view View, err error) {
			said(err)
			for _, g := range InOrder(view) {
				for _, n := range g.Nodes {
					addresses = append(addresses, n.Address)
				}
			}
		}
		views(ParseNodes(text, "asked:1"))
		views(ParseSlots(reply, "asked:1"))
		role, err := ParseRole(reply)
		said(err)
		watched, err := ParseWatched(reply)
		said(err)
		_ = ParseWatchedNames(reply)
		server := ServerOf("asked:1", redis.ParseInfo(text))
		words = append(words, server.Name, server.Version, server.Mode, server.RunID, string(server.Role),
			server.Replication.Failover)
		addresses = append(append(append(addresses, role.Primary, watched.Address, ParsePrimaryAddress(reply),
			server.Replication.Primary), role.Replicas...), ParseSentinelReplicas(reply)...)
		addresses = append(addresses, ParseSentinels(reply)...)
		for _, peer := range ParsePeers(reply) {
			addresses = append(addresses, peer)
		}
		for _, a := range server.Replication.Replicas {
			addresses = append(addresses, a.Address)
		}
		for _, a := range addresses {
			if host, _, err := net.SplitHostPort(a); a != "" && (err != nil || !isHost(host)) {
				t.Errorf("address %q", a)
			}
		}
		for _, w := range words {
			if len(w) > 1024 || !utf8.ValidString(w) || strings.ContainsAny(w, "\x1b\r\n\x00") {
				t.Errorf("%q", w)
			}
		}
	})
}
