package workload

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// follow runs an operation with prepared replies to each round trip, and returns the commands of each.
func follow(t *testing.T, s Source, op int, tally []uint64, answers ...[]resp.Value) [][]string {
	t.Helper()
	f := s.(Follower)
	if !f.Follows(op) {
		t.Fatalf("operation %d has no predecessor", op)
	}
	var r Request
	encoded, n := first(s, op, &r)
	sent := [][]string{words(t, encoded)}
	for _, replies := range answers {
		if len(replies) != n {
			t.Fatalf("%d replies are awaited to %v, the test has %d", n, sent[len(sent)-1], len(replies))
		}
		encoded, n = f.Next(nil, &r, replies, tally)
		if n == 0 {
			if len(encoded) > 0 {
				t.Fatalf("%q was appended by an operation that is over", encoded)
			}
			return sent
		}
		if sent = append(sent, words(t, encoded)); len(sent[len(sent)-1]) != n {
			t.Fatalf("%d replies are awaited to %v", n, sent[len(sent)-1])
		}
	}
	t.Fatalf("the operation is not over after %v", sent)
	return nil
}

func number(s string) resp.Value { return resp.Value{Type: ':', Text: s} }
func bulk(s string) resp.Value   { return resp.Value{Type: '$', Text: s} }
func array(v ...resp.Value) resp.Value {
	return resp.Value{Type: '*', Items: v}
}

var null = resp.Value{Type: '_'}

func rankingOf(members int64, count int) plan.Workload {
	return plan.Workload{
		Ranking: &plan.Ranking{
			Members:     members,
			ScoreSpread: 10,
			FindCount:   count,
			Weights:     plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1},
		},
	}
}

func TestRankingOperations(t *testing.T) {
	w := made(t, rankingOf(1, 1)) // one member, so that only scores are random
	want := []plan.Operation{
		{Name: "set", Weight: 1},
		{Name: "get", Weight: 1, ReadOnly: true},
		{Name: "find", Weight: 1, ReadOnly: true},
		{Name: "findByOrder", Weight: 1, ReadOnly: true},
	}
	if diff := cmp.Diff(want, w.Operations()); diff != "" {
		t.Error(diff)
	}
	s := w.Source(0, 1, true)
	var r Request
	set, n := first(s, 0, &r)
	if got := words(t, set)[0]; n != 1 || !strings.HasPrefix(got, "ZADD rq:ranking ") ||
		!strings.HasSuffix(got, " member:0") || s.(Follower).Follows(0) {
		t.Errorf("set sends %q", got)
	}
	if r.Slot != topology.SlotOf([]byte("rq:ranking")) {
		t.Errorf("the slot is %d", r.Slot)
	}
	for name, tt := range map[string]struct {
		op      int
		answers [][]resp.Value
		want    [][]string
	}{
		"get": {
			1,
			[][]resp.Value{{bulk("7")}, {number("3")}},
			[][]string{{"ZSCORE rq:ranking member:0"}, {"ZCOUNT rq:ranking (7 +inf"}},
		},
		"get in RESP3": {
			1,
			[][]resp.Value{{{Type: ',', Text: "7"}}, {number("3")}},
			[][]string{{"ZSCORE rq:ranking member:0"}, {"ZCOUNT rq:ranking (7 +inf"}},
		},
		"get of no member": {1, [][]resp.Value{{null}}, [][]string{{"ZSCORE rq:ranking member:0"}}},
		"findByOrder": {
			3,
			[][]resp.Value{{array(bulk("member:0"), bulk("9"))}, {number("0")}},
			[][]string{{"ZREVRANGE rq:ranking 0 0 WITHSCORES"}, {"ZCOUNT rq:ranking (9 +inf"}},
		},
		"findByOrder in RESP3": {
			3,
			[][]resp.Value{{array(array(bulk("member:0"), resp.Value{Type: ',', Text: "9"}))}, {number("0")}},
			[][]string{{"ZREVRANGE rq:ranking 0 0 WITHSCORES"}, {"ZCOUNT rq:ranking (9 +inf"}},
		},
		"findByOrder of no member": {3, [][]resp.Value{{array()}}, [][]string{{"ZREVRANGE rq:ranking 0 0 WITHSCORES"}}},
	} {
		if diff := cmp.Diff(tt.want, follow(t, s, tt.op, nil, tt.answers...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRankingFindsSeveral(t *testing.T) {
	s := made(t, rankingOf(1000, 3)).Source(0, 1, false)
	sent := follow(t, s, 2, nil, []resp.Value{bulk("1"), null, bulk("3")}, []resp.Value{number("1"), number("2")})
	if len(sent[0]) != 3 || sent[0][0] == sent[0][1] ||
		!slices.Equal(sent[1], []string{"ZCOUNT rq:ranking (1 +inf", "ZCOUNT rq:ranking (3 +inf"}) {
		t.Errorf("find sends %v", sent)
	}
}

func TestRankingLeavesOutWhatHasNoWeight(t *testing.T) {
	spec := rankingOf(10, 1)
	spec.Ranking.Weights = plan.RankingWeights{Get: 3}
	w := made(t, spec)
	if o := w.Operations(); len(o) != 1 || o[0].Name != "get" {
		t.Fatalf("operations %v", o)
	}
	if sent := follow(t, w.Source(0, 1, false), 0, nil, []resp.Value{null}); !strings.HasPrefix(sent[0][0], "ZSCORE ") {
		t.Errorf("get sends %v", sent)
	}
}

func TestRateLimiter(t *testing.T) {
	w := made(t, plan.Workload{
		RateLimiter: &plan.RateLimiter{Limit: 2, Window: 1500 * time.Millisecond},
		Keyspace:    uniform(1),
	})
	if !slices.Equal(w.Tallies(), []string{"allowed", "denied"}) {
		t.Fatalf("tallies %v", w.Tallies())
	}
	tally := make([]uint64, 2)
	s := w.Source(0, 1, true)
	tests := []struct {
		answers         [][]resp.Value
		sent            int
		allowed, denied uint64
	}{
		{[][]resp.Value{{number("1")}, {number("1")}}, 2, 1, 0},
		{[][]resp.Value{{number("2")}}, 1, 2, 0},
		{[][]resp.Value{{number("3")}}, 1, 2, 1},
		{[][]resp.Value{{number("9223372036854775807")}}, 1, 2, 2},
	}
	for _, tt := range tests {
		sent := follow(t, s, 0, tally, tt.answers...)
		if len(sent) != tt.sent || tally[0] != tt.allowed || tally[1] != tt.denied {
			t.Errorf("after %v: %v was sent, tally %v", tt.answers, sent, tally)
		}
		if sent[0][0] != "INCR rq:limit:0" || tt.sent == 2 && sent[1][0] != "PEXPIRE rq:limit:0 1500" {
			t.Errorf("%v was sent", sent)
		}
	}
	var r Request
	if s.Draw(0, &r); r.Slot != topology.SlotOf([]byte("rq:limit:0")) {
		t.Errorf("the slot is %d", r.Slot)
	}
}

func TestBenchmarkCommands(t *testing.T) {
	w := made(t, plan.Workload{
		Benchmark: &plan.Benchmark{Tests: plan.BenchmarkTests()},
		Keyspace:  uniform(1),
		Values:    plan.Values{MinBytes: 1, MaxBytes: 1},
	})
	got := map[string]string{}
	s := w.Source(0, 1, true)
	for op, o := range w.Operations() {
		var r Request
		encoded, n := first(s, op, &r)
		commands := words(t, encoded)
		if n != 1 || len(commands) != 1 {
			t.Fatalf("%s sends %v, awaits %d replies", o.Name, commands, n)
		}
		fields := strings.Fields(commands[0])
		if len(fields) > 1 && topology.SlotOf([]byte(fields[1])) != r.Slot {
			t.Errorf("%s: slot %d of %s", o.Name, r.Slot, fields[1])
		}
		if strings.Contains(commands[0], "mset") {
			for i := 1; i < len(fields); i += 2 {
				if topology.SlotOf([]byte(fields[i])) != r.Slot {
					t.Errorf("mset: %s is in another slot", fields[i])
				}
			}
			commands[0] = strings.Join(fields[:2], " ")
		}
		got[o.Name] = strings.ToValidUTF8(commands[0], "")
	}
	for name, prefix := range map[string]string{
		"ping": "PING", "set": "SET rq:0 ", "get": "GET rq:0", "incr": "INCR rq:counter:0", "lpush": "LPUSH rq:list:0 ",
		"rpush": "RPUSH rq:list:0 ",
		"lpop":  "LPOP rq:list:0", "rpop": "RPOP rq:list:0", "sadd": "SADD rq:set:0 element:0", "spop": "SPOP rq:set:0",
		"hset": "HSET rq:hash:0 element:0 ",
		"zadd": "ZADD rq:zset:0 0 element:0", "zpopmin": "ZPOPMIN rq:zset:0", "lrange_100": "LRANGE rq:lrange:0 0 99",
		"lrange_300": "LRANGE rq:lrange:0 0 299",
		"lrange_500": "LRANGE rq:lrange:0 0 499", "lrange_600": "LRANGE rq:lrange:0 0 599", "mset": "MSET rq:mset:{0}:0",
		"xadd": "XADD rq:stream:0 * myfield ",
	} {
		if !strings.HasPrefix(got[name], prefix) {
			t.Errorf("%s sends %q, want %q...", name, got[name], prefix)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("got %v for unknown tests", got)
	}
}

// FuzzNext: for any reply, an operation ends without a panic, and sends only complete commands.
func FuzzNext(f *testing.F) {
	for _, reply := range []string{
		":1\r\n", "$-1\r\n", "*0\r\n", "*2\r\n$1\r\na\r\n,1.5\r\n",
		"*1\r\n*2\r\n$1\r\na\r\n$3\r\n1\r\n\r\n", "*1\r\n*0\r\n", "+OK\r\n",
	} {
		f.Add([]byte(reply))
	}
	ranking := rankingOf(100, 3)
	sources := []Source{
		made(f, ranking).Source(0, 1, true),
		made(f, plan.Workload{RateLimiter: &plan.RateLimiter{Limit: 2, Window: time.Second}}).Source(0, 1, true),
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var replies []resp.Value
		for in := bufio.NewReader(bytes.NewReader(input)); len(replies) < 3; {
			v, err := resp.ReadValue(in)
			if err != nil {
				break
			}
			replies = append(replies, v)
		}
		for _, s := range sources {
			for op := range 4 {
				follower := s.(Follower)
				if op > 0 && s == sources[1] || !follower.Follows(op) {
					continue
				}
				var r Request
				s.Draw(op, &r)
				s.Append(nil, &r)
				for range 3 {
					sent, n := follower.Next(nil, &r, replies, make([]uint64, 2))
					if len(words(t, sent)) != n {
						t.Fatalf("%d replies are awaited to %q", n, sent)
					}
					if n == 0 {
						break
					}
					if r.step > 1 {
						t.Fatal("the operation does not end")
					}
				}
			}
		}
	})
}

func TestProblems(t *testing.T) {
	command := []plan.Command{{Name: "a", Weight: 1, Words: []string{"PING"}}}
	all := func(k plan.Ranking) *plan.Ranking {
		k.Weights = plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1}
		return &k
	}
	tests := []struct {
		spec plan.Workload
		want string
	}{
		{plan.Workload{Commands: command}, ""},
		{plan.Workload{}, "commands: is missing"},
		{plan.Workload{Commands: command, Ranking: all(plan.Ranking{})}, "ranking: commands is set, too"},
		{plan.Workload{Commands: []plan.Command{{Name: "a", Weight: 1}}}, "commands[0].command: "},
		{
			plan.Workload{Benchmark: &plan.Benchmark{Tests: []string{"set", "lrange"}}},
			`benchmark.tests[1]: "lrange" is none of get, `,
		},
		{plan.Workload{Ranking: all(plan.Ranking{Members: 1, FindCount: 1})}, "ranking.members, scoreSpread, "},
		{plan.Workload{Ranking: &plan.Ranking{Members: 1, ScoreSpread: 1, FindCount: 1}}, "ranking.members, scoreSpread, "},
		{plan.Workload{Ranking: all(plan.Ranking{Members: 1, ScoreSpread: 1, FindCount: 1})}, ""},
		{plan.Workload{RateLimiter: &plan.RateLimiter{Limit: 1}}, "rateLimiter.limit and window: "},
		{
			plan.Workload{
				CacheAside: &plan.CacheAside{Mode: plan.ThroughCache, Database: plan.Database{Driver: "oracle", Query: "x"}},
			},
			"cacheAside.database.driver: ",
		},
		{
			plan.Workload{
				CacheAside: &plan.CacheAside{Mode: plan.ThroughCache, Database: plan.Database{Driver: "mysql", Query: " "}},
			},
			"cacheAside.database.query: ",
		},
		{
			plan.Workload{CacheAside: &plan.CacheAside{Database: plan.Database{Driver: "postgres", Query: "x"}}},
			"cacheAside.mode: ",
		},
		{plan.Workload{HTTP: &plan.HTTP{URL: "shop/api"}}, "http.url: "},
		{plan.Workload{HTTP: &plan.HTTP{URL: "http://shop/api/{int}", Method: "get"}}, "http.method: "},
		{
			plan.Workload{HTTP: &plan.HTTP{URL: "http://shop/api", Headers: []plan.Header{{Name: "a", Value: "b\nc"}}}},
			"http.headers[0].value: ",
		},
		{plan.Workload{HTTP: &plan.HTTP{URL: "http://shop/api/{int}?user={user}"}}, ""},
	}
	for i, tt := range tests {
		if tt.spec.Keyspace == (plan.Keyspace{}) {
			tt.spec.Keyspace = uniform(1)
		}
		got := tt.spec.Problem()
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%d: %q, want %q...", i, got, tt.want)
		}
		if _, err := New(&tt.spec); err == nil && (got != "" || tt.spec.IsRemote()) {
			t.Errorf("%d: New makes it", i)
		}
	}
}

func TestStretchesCoverEveryElement(t *testing.T) {
	for _, total := range []int64{0, 1, 7, 1000} {
		for _, parts := range []int64{1, 3, 8} {
			next := int64(0)
			for part := range parts {
				from, to := stretch(total, parts, part)
				if from != next || to < from || to-from > total/parts+1 {
					t.Errorf("stretch(%d, %d, %d) = %d, %d after %d", total, parts, part, from, to, next)
				}
				next = to
			}
			if next != total {
				t.Errorf("%d parts of %d end at %d", parts, total, next)
			}
		}
	}
}

// encode draws and encodes as an engine does.
func encode(b *testing.B, w Redis, slots bool) {
	s := w.Source(0, 1, slots)
	buf := make([]byte, 0, 64<<10)
	var r Request
	request := func() {
		s.Draw(s.Pick(), &r)
		buf, _ = s.Append(buf[:0], &r)
	}
	for range 100 { // the scratch buffers grow
		request()
	}
	if n := testing.AllocsPerRun(1000, request); n != 0 {
		b.Errorf("%v allocations per request", n)
	}
	b.ReportAllocs()
	for b.Loop() {
		request()
	}
}

func BenchmarkEncode(b *testing.B) {
	setGet := []plan.Command{
		{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
		{Name: "get", Weight: 9, Words: []string{"GET", "{key}"}},
	}
	values := plan.Values{MinBytes: 32, MaxBytes: 32}
	for _, kind := range []plan.Distribution{plan.Uniform, plan.Zipf, plan.Gaussian, plan.Sequential} {
		spec := plan.Workload{Commands: setGet, Keyspace: uniform(100_000), Values: values}
		spec.Keyspace.Distribution = kind
		b.Run("commands/"+string(kind), func(b *testing.B) { encode(b, made(b, spec), false) })
	}
	for name, spec := range map[string]plan.Workload{
		"set":       {Commands: setGet[:1], Values: values},
		"get":       {Commands: setGet[1:]},
		"benchmark": {Benchmark: &plan.Benchmark{Tests: []string{"set", "get", "incr", "lpush", "zadd"}}, Values: values},
		"ranking/set": {
			Ranking: &plan.Ranking{Members: 1e7, ScoreSpread: 1e5, FindCount: 100, Weights: plan.RankingWeights{Set: 1}},
		},
		"ranking/mixed": {
			Ranking: &plan.Ranking{
				Members:     1e7,
				ScoreSpread: 1e5,
				FindCount:   100,
				Weights:     plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1},
			},
		},
		"rateLimiter": {RateLimiter: &plan.RateLimiter{Limit: 1, Window: time.Second}},
	} {
		b.Run(name, func(b *testing.B) { encode(b, made(b, spec), false) })
	}
	b.Run("set with slots", func(b *testing.B) {
		encode(b, made(b, plan.Workload{Commands: setGet[:1], Values: values}),
			true)
	})
}

func BenchmarkNext(b *testing.B) {
	for name, spec := range map[string]plan.Workload{
		"get": {
			Ranking: &plan.Ranking{Members: 1e7, ScoreSpread: 1e5, FindCount: 1, Weights: plan.RankingWeights{Get: 1}},
		},
		"rateLimiter": {RateLimiter: &plan.RateLimiter{Limit: 1, Window: time.Second}},
	} {
		b.Run(name, func(b *testing.B) {
			s := made(b, spec).Source(0, 1, false).(Follower)
			replies, tally := []resp.Value{number("1")}, make([]uint64, 2)
			buf := make([]byte, 0, 1024)
			var r Request
			b.ReportAllocs()
			for b.Loop() {
				s.Draw(0, &r)
				buf, _ = s.Append(buf[:0], &r)
				buf, _ = s.Next(buf[:0], &r, replies, tally)
			}
		})
	}
}

// Drawing and encoding requests is the hot path: it must not allocate.
func TestDrawAndAppendDoNotAllocate(t *testing.T) {
	for name, spec := range map[string]plan.Workload{
		"benchmark": {
			Benchmark: &plan.Benchmark{Tests: plan.BenchmarkTests()},
			Values:    plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		"ranking": {
			Ranking: &plan.Ranking{
				Members:     1e7,
				ScoreSpread: 1e5,
				FindCount:   100,
				Weights:     plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1},
			},
		},
		"rateLimiter": {RateLimiter: &plan.RateLimiter{Limit: 1, Window: time.Second}},
	} {
		s := made(t, spec).Source(0, 1, true)
		buf := make([]byte, 0, 64<<10)
		var r Request
		if n := testing.AllocsPerRun(1000, func() {
			s.Draw(s.Pick(), &r)
			buf, _ = s.Append(buf[:0], &r)
		}); n >= 1 {
			t.Errorf("%s: %v allocations per request", name, n)
		}
	}
}
