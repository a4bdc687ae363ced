package resp

import (
	"errors"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/record"
)

// scan feeds input in pieces of the given size and returns all replies.
func scan(input string, size int) ([]Reply, *Scanner, error) {
	s := &Scanner{}
	var replies []Reply
	for len(input) > 0 {
		p := []byte(input[:min(size, len(input))])
		input = input[len(p):]
		for len(p) > 0 {
			n, r, done, err := s.Next(p)
			if err != nil {
				return replies, s, err
			}
			if done {
				replies = append(replies, r)
			}
			p = p[n:]
		}
	}
	return replies, s, nil
}

func fail(class record.Class, bytes int) Reply { return Reply{Kind: Error, Class: class, Bytes: bytes} }

var replyTests = []struct {
	name, input string
	want        []Reply
}{
	{"simple string", "+OK\r\n", []Reply{{OK, 0, 5}}},
	{"integer", ":-12\r\n", []Reply{{OK, 0, 6}}},
	{"bulk string", "$5\r\nhe\r\no\r\n", []Reply{{OK, 0, 11}}},
	{"empty bulk string", "$0\r\n\r\n", []Reply{{OK, 0, 6}}},
	{"null of RESP2", "$-1\r\n", []Reply{{Null, 0, 5}}},
	{"null array of RESP2", "*-1\r\n", []Reply{{Null, 0, 5}}},
	{"null of RESP3", "_\r\n", []Reply{{Null, 0, 3}}},
	{
		"boolean, double, big number", "#t\r\n,1.5e3\r\n,inf\r\n(123456789012345678901234567890\r\n",
		[]Reply{{OK, 0, 4}, {OK, 0, 8}, {OK, 0, 6}, {OK, 0, 33}},
	},
	{"verbatim string", "=7\r\ntxt:abc\r\n", []Reply{{OK, 0, 13}}},
	{"array", "*2\r\n$1\r\na\r\n:1\r\n", []Reply{{OK, 0, 15}}},
	{"empty array", "*0\r\n", []Reply{{OK, 0, 4}}},
	{"array of nulls is no null", "*2\r\n$-1\r\n_\r\n", []Reply{{OK, 0, 12}}},
	{"nested", "*2\r\n*1\r\n*0\r\n%1\r\n+a\r\n~1\r\n:1\r\n+OK\r\n", []Reply{{OK, 0, 32 - 4}, {OK, 0, 5}}},
	{"map", "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", []Reply{{OK, 0, 20}}},
	{"set", "~1\r\n:1\r\n", []Reply{{OK, 0, 8}}},
	{"error", "-READONLY You can't write\r\n", []Reply{fail(record.ClassReadOnly, 27)}},
	{"queued in a transaction", "+QUEUED\r\n+QUEUE\r\n$6\r\nQUEUED\r\n+Q\r\n", []Reply{
		fail(record.ClassOther, 9), {OK, 0, 8}, {OK, 0, 12}, {OK, 0, 4},
	}},
	{"error without text", "-\r\n", []Reply{fail(record.ClassOther, 3)}},
	{"blob error", "!6\r\nSYNTAX\r\n", []Reply{fail(record.ClassOther, 12)}},
	{"error within EXEC", "*2\r\n+OK\r\n-OOM no\r\n", []Reply{fail(record.ClassOOM, 18)}},
	{"first error of two counts", "*2\r\n-OOM a\r\n-BUSY b\r\n", []Reply{fail(record.ClassOOM, 21)}},
	{"push before a reply", ">2\r\n+invalidate\r\n-ERR x\r\n+OK\r\n", []Reply{{OK, 0, 4 + 13 + 8 + 5}}},
	{"empty push", ">0\r\n+OK\r\n", []Reply{{OK, 0, 9}}},
	{"attribute before a reply", "|1\r\n+ttl\r\n*2\r\n:1\r\n_\r\n$-1\r\n", []Reply{{Null, 0, 26}}},
	{"attribute within a reply", "*2\r\n|1\r\n+a\r\n-ERR b\r\n:1\r\n:2\r\n", []Reply{{OK, 0, 28}}},
	{"bare line feeds", "+OK\n:1\n", []Reply{{OK, 0, 4}, {OK, 0, 3}}},
	{"long line", "+" + strings.Repeat("x", 1000) + "\r\n", []Reply{{OK, 0, 1003}}},
	{"long error", "-LOADING " + strings.Repeat("x", 1000) + "\r\n", []Reply{fail(record.ClassLoading, 1011)}},
	{"unfinished", "+OK\r\n$10\r\nabc", []Reply{{OK, 0, 5}}},
}

func TestScanner(t *testing.T) {
	for _, tt := range replyTests {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.input); size++ {
				got, s, err := scan(tt.input, size)
				if err != nil {
					t.Fatalf("cut into %d: %v", size, err)
				}
				if len(got) != len(tt.want) {
					t.Fatalf("cut into %d: %v, want %v", size, got, tt.want)
				}
				total := 0
				for i := range got {
					total += got[i].Bytes
					if got[i] != tt.want[i] {
						t.Errorf("cut into %d: reply %d is %+v, want %+v", size, i, got[i], tt.want[i])
					}
				}
				if s.Pending() != (total < len(tt.input)) {
					t.Errorf("cut into %d: pending is %v after %d of %d bytes", size, s.Pending(), total, len(tt.input))
				}
			}
		})
	}
}

func TestScannerRefuses(t *testing.T) {
	tests := []struct{ name, input string }{
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n"},
		{"a TLS alert without a line's end", "\x15\x03\x01\x00\x02\x02\x46"},
		{"an empty line", "\r\n"},
		{"no length", "$\r\n"},
		{"a negative length", "$-2\r\n"},
		{"a signed length", "$+2\r\n"},
		{"a length with letters", "*1a\r\n"},
		{"a bulk string over the limit", "$536870913\r\n"},
		{"a length that overflows", "*99999999999999999999\r\n"},
		{"too deep", strings.Repeat("*1\r\n", MaxDepth+1)},
		{"a push within a reply", "*1\r\n>1\r\n"},
		{"a push that is null", ">-1\r\n"},
		{"an attribute that is null", "|-1\r\n"},
		{"a streamed string", "$?\r\n"},
		{"an endless line", "+" + strings.Repeat("x", MaxLine+1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 7, len(tt.input)} {
				if replies, _, err := scan(tt.input, size); !errors.Is(err, ErrProtocol) {
					t.Errorf("cut into %d: replies %v, error %v, want ErrProtocol", size, replies, err)
				}
			}
		})
	}
}

func TestScannerTakesDeepestNesting(t *testing.T) {
	replies, _, err := scan(strings.Repeat("*1\r\n", MaxDepth)+":1\r\n", 3)
	if err != nil || len(replies) != 1 {
		t.Errorf("replies %v, error %v", replies, err)
	}
}

func TestClassify(t *testing.T) {
	tests := map[string]record.Class{
		"READONLY You can't write against a read only replica.": record.ClassReadOnly,
		"NOREPLICAS Not enough good replicas to write.":         record.ClassNoReplicas,
		"MOVED 3999 127.0.0.1:6381":                             record.ClassMoved,
		"ASK 3999 127.0.0.1:6381":                               record.ClassMoved,
		"TRYAGAIN Multiple keys request during rehashing":       record.ClassMoved,
		"CROSSSLOT Keys in request don't hash":                  record.ClassMoved,
		"CLUSTERDOWN The cluster is down":                       record.ClassClusterDown,
		"LOADING Redis is loading the dataset in memory":        record.ClassLoading,
		"MASTERDOWN Link with MASTER is down":                   record.ClassMasterDown,
		"NOAUTH Authentication required.":                       record.ClassAuth,
		"WRONGPASS invalid username-password pair":              record.ClassAuth,
		"NOPERM this user has no permissions":                   record.ClassAuth,
		"OOM command not allowed":                               record.ClassOOM,
		"BUSY Redis is busy running a script":                   record.ClassBusy,
		"MISCONF Redis is configured to save RDB snapshots":     record.ClassMisconf,
		"ERR unknown command":                                   record.ClassOther,
		"WRONGTYPE Operation against a key":                     record.ClassOther,
		"BUSYGROUP Consumer Group name already exists":          record.ClassOther,
		"": record.ClassOther,
	}
	for message, want := range tests {
		if got := Classify([]byte(message)); got != want {
			t.Errorf("Classify(%q) = %s, want %s", message, got, want)
		}
	}
}

func BenchmarkScanner(b *testing.B) {
	inputs := map[string]string{
		"OK":       "+OK\r\n",
		"bulk32":   "$32\r\n" + strings.Repeat("x", 32) + "\r\n",
		"error":    "-READONLY You can't write against a read only replica.\r\n",
		"array100": "*100\r\n" + strings.Repeat("$8\r\nabcdefgh\r\n", 100),
	}
	for name, input := range inputs {
		b.Run(name, func(b *testing.B) {
			p := []byte(input)
			var s Scanner
			b.ReportAllocs()
			for b.Loop() {
				if _, _, done, err := s.Next(p); !done || err != nil {
					b.Fatal("no reply", err)
				}
			}
		})
	}
}
