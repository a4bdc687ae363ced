package workload

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/topology"
)

// uniform is a keyspace with default settings.
func uniform(keys int64) plan.Keyspace {
	return plan.Keyspace{Prefix: "rq:", Keys: keys, Distribution: plan.Uniform}
}

// made is the workload of a spec.
func made(t testing.TB, s plan.Workload) Redis {
	t.Helper()
	if s.Keyspace.Keys == 0 {
		s.Keyspace = uniform(1000)
	}
	w, err := New(&s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// words reads encoded commands back.
func words(t testing.TB, encoded []byte) []string {
	t.Helper()
	var commands []string
	for len(encoded) > 0 {
		line, rest, _ := bytes.Cut(encoded, []byte("\r\n"))
		if line[0] != '*' {
			t.Fatalf("%q is no command", encoded)
		}
		encoded = rest
		var command []string
		for range atoi(t, line[1:]) {
			line, rest, _ = bytes.Cut(encoded, []byte("\r\n"))
			if line[0] != '$' {
				t.Fatalf("%q is no word", encoded)
			}
			n := atoi(t, line[1:])
			command = append(command, string(rest[:n]))
			if string(rest[n:n+2]) != "\r\n" {
				t.Fatalf("the word %q is longer than its length prefix", rest[:n])
			}
			encoded = rest[n+2:]
		}
		commands = append(commands, strings.Join(command, " "))
	}
	return commands
}

func atoi(t testing.TB, digits []byte) int {
	t.Helper()
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			t.Fatalf("%q is no number", digits)
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// first is the first round trip of a request of op.
func first(s Source, op int, r *Request) ([]byte, int) {
	s.Draw(op, r)
	return s.Append(nil, r)
}

// histogramOf draws n keys and counts them.
func histogramOf(k plan.Keyspace, n int) []float64 {
	d := newKeyDraw(k, 0, 1, newChance(nil, 5))
	counts := make([]float64, k.Keys)
	for range n {
		counts[d.draw()]++ // a key outside the keyspace panics
	}
	return counts
}

// chiSquare is Pearson's statistic of counts against expected shares.
func chiSquare(counts []float64, n float64, expected func(k int) float64) float64 {
	x := 0.0
	for k, c := range counts {
		e := n * expected(k)
		x += (c - e) * (c - e) / e
	}
	return x
}

func TestKeyDistributions(t *testing.T) {
	const keys, n = 100, 200_000
	zipfSum := 0.0
	for k := range keys {
		zipfSum += math.Pow(float64(k+1), -1.1)
	}
	// The normal distribution's mass of each key's cell, cut at the ends.
	phi := func(x float64) float64 { return (1 + math.Erf((x-keys/2)/(keys/6.0)/math.Sqrt2)) / 2 }
	expected := map[plan.Distribution]func(int) float64{
		plan.Uniform:    func(int) float64 { return 1.0 / keys },
		plan.Zipf:       func(k int) float64 { return math.Pow(float64(k+1), -1.1) / zipfSum },
		plan.Gaussian:   func(k int) float64 { return (phi(float64(k+1)) - phi(float64(k))) / (phi(keys) - phi(0)) },
		plan.Sequential: func(int) float64 { return 1.0 / keys },
	}
	for kind, share := range expected {
		counts := histogramOf(plan.Keyspace{Keys: keys, Distribution: kind}, n)
		// 99 degrees of freedom: the 99.9 % quantile is 148.2.
		if x := chiSquare(counts, n, share); x > 148.2 {
			t.Errorf("%s: chi square %.1f over 148.2", kind, x)
		}
	}
}

// TestParametersOfDistributions: exponents below, at and above 1; deviations and centres; each with its hot keys as
// neighbours and scattered.
func TestParametersOfDistributions(t *testing.T) {
	const keys, n = 100, 200_000
	zipf := func(s float64) func(int) float64 {
		sum := 0.0
		for k := range keys {
			sum += math.Pow(float64(k+1), -s)
		}
		return func(k int) float64 { return math.Pow(float64(k+1), -s) / sum }
	}
	gaussian := func(centre, deviation float64) func(int) float64 {
		phi := func(x float64) float64 { return (1 + math.Erf((x-centre*keys)/(deviation*keys)/math.Sqrt2)) / 2 }
		return func(k int) float64 { return (phi(float64(k+1)) - phi(float64(k))) / (phi(keys) - phi(0)) }
	}
	for name, tt := range map[string]struct {
		space plan.Keyspace
		share func(int) float64
	}{
		"zipf 0.2":         {plan.Keyspace{Distribution: plan.Zipf, ZipfExponent: 0.2}, zipf(0.2)},
		"zipf 0.99":        {plan.Keyspace{Distribution: plan.Zipf, ZipfExponent: 0.99}, zipf(0.99)},
		"zipf 1":           {plan.Keyspace{Distribution: plan.Zipf, ZipfExponent: 1}, zipf(1)},
		"zipf 1.5":         {plan.Keyspace{Distribution: plan.Zipf, ZipfExponent: 1.5}, zipf(1.5)},
		"gaussian wide":    {plan.Keyspace{Distribution: plan.Gaussian, Deviation: 1}, gaussian(0.5, 1)},
		"gaussian at 80 %": {plan.Keyspace{Distribution: plan.Gaussian, Centre: new(0.8)}, gaussian(0.8, 1.0/6)},
		"gaussian at 0": {
			plan.Keyspace{Distribution: plan.Gaussian, Centre: new(0.0), Deviation: 0.3},
			gaussian(0, 0.3),
		},
		"gaussian at the end": {plan.Keyspace{Distribution: plan.Gaussian, Centre: new(1.0), Deviation: 1}, gaussian(1, 1)},
	} {
		tt.space.Keys = keys
		for _, scattered := range []bool{false, true} {
			tt.space.Scattered = scattered
			counts := histogramOf(tt.space, n)
			share := tt.share
			if scattered {
				s, at := newScatter(keys), make([]float64, keys)
				for k := range keys {
					at[s.of(int64(k))] = tt.share(k)
				}
				share = func(k int) float64 { return at[k] }
			}
			// 99 degrees of freedom: the 99.9 % quantile is 148.2.
			if x := chiSquare(counts, n, share); x > 148.2 {
				t.Errorf("%s, scattered %v: chi square %.1f over 148.2", name, scattered, x)
			}
		}
	}
}

// TestZipfOfManyKeys: the shares of the first keys of a large keyspace, and no key outside of it.
func TestZipfOfManyKeys(t *testing.T) {
	const keys, n = 3_000_000, 200_000
	sum := 0.0
	for k := range keys {
		sum += 1 / math.Pow(float64(k+1), 0.99)
	}
	d := newKeyDraw(plan.Keyspace{Keys: keys, Distribution: plan.Zipf, ZipfExponent: 0.99}, 0, 1, newChance(nil, 5))
	counts := make([]float64, 51) // the last one has the rest
	for range n {
		k := d.draw()
		if k < 0 || k >= keys {
			t.Fatalf("key %d", k)
		}
		counts[min(k, 50)]++
	}
	rest := 1.0
	for k := range 50 {
		rest -= 1 / math.Pow(float64(k+1), 0.99) / sum
	}
	// 50 degrees of freedom: the 99.9 % quantile is 86.7.
	if x := chiSquare(counts, n, func(k int) float64 {
		if k == 50 {
			return rest
		}
		return 1 / math.Pow(float64(k+1), 0.99) / sum
	}); x > 86.7 {
		t.Errorf("chi square %.1f over 86.7", x)
	}
}

// TestScatterIsAPermutation: each key once, and the hottest over the whole keyspace.
func TestScatterIsAPermutation(t *testing.T) {
	for _, keys := range []int64{1, 2, 3, 4, 5, 31, 32, 33, 1000, 65_537, 100_000} {
		s := newScatter(keys)
		seen := make([]bool, keys)
		for k := range keys {
			if to := s.of(k); seen[to] {
				t.Fatalf("%d keys: %d is there twice", keys, to)
			} else {
				seen[to] = true
			}
		}
	}
	for _, keys := range []int64{100_000, 1 << 20, 1_000_000_000} {
		s := newScatter(keys)
		counts := make([]float64, 10)
		near := 0
		for k := range int64(1000) {
			counts[s.of(k)*10/keys]++
			if d := s.of(k) - s.of(k+1); d < keys/1000 && -d < keys/1000 {
				near++
			}
		}
		// 9 degrees of freedom: the 99.9 % quantile is 27.9.
		if x := chiSquare(counts, 1000, func(int) float64 { return 0.1 }); x > 27.9 || near > 20 {
			t.Errorf("%d keys: the first 1000 are in the tenths %v, %d beside the one before", keys, counts, near)
		}
	}
}

func TestSourceWithOneKey(t *testing.T) {
	for _, kind := range []plan.Distribution{plan.Uniform, plan.Zipf, plan.Gaussian, plan.Sequential} {
		if c := histogramOf(plan.Keyspace{Keys: 1, Distribution: kind}, 100); c[0] != 100 {
			t.Errorf("%s: %v", kind, c)
		}
	}
}

func TestSequentialSourcesBeginAtTheirShare(t *testing.T) {
	k := plan.Keyspace{Keys: 100, Distribution: plan.Sequential}
	for number, want := range []int64{0, 25, 50, 75} {
		d := newKeyDraw(k, int64(number), 4, newChance(nil, 1))
		for i := range int64(200) {
			if got := d.draw(); got != (want+i)%100 {
				t.Fatalf("source %d draw %d is %d, want %d", number, i, got, (want+i)%100)
			}
		}
	}
}

func TestMixFollowsWeights(t *testing.T) {
	m := newMix([]plan.Operation{{Weight: 1}, {Weight: 7}, {Weight: 2}})
	const n = 100_000
	chance := newChance(&m, 3)
	for name, pick := range map[string]func(i int64) int{
		"by random bits":       func(int64) int { return chance.Pick() },
		"by number of arrival": m.OperationOf,
	} {
		counts := make([]float64, 3)
		for i := range int64(n) {
			counts[pick(i)]++
		}
		// 2 degrees of freedom: the 99.9 % quantile is 13.8.
		if x := chiSquare(counts, n, func(k int) float64 { return []float64{0.1, 0.7, 0.2}[k] }); x > 13.8 {
			t.Errorf("%s: %v, chi square %.1f", name, counts, x)
		}
	}
	if m.pick(0) != 0 || m.pick(math.MaxUint64) != 2 {
		t.Error("the ends of the range are not the first and the last operation")
	}
}

func TestValuesHaveTheirSizes(t *testing.T) {
	chance := newChance(nil, 9)
	fixed := newValuePool(plan.Values{MinBytes: 32, MaxBytes: 32})
	ranged := newValuePool(plan.Values{MinBytes: 10, MaxBytes: 13})
	empty := newValuePool(plan.Values{})
	sizes := map[int]int{}
	different := map[string]bool{}
	for range 4000 {
		v := fixed.draw(&chance)
		different[string(v)] = true
		if len(v) != 32 || len(empty.draw(&chance)) != 0 {
			t.Fatalf("%d bytes, want 32", len(v))
		}
		sizes[len(ranged.draw(&chance))]++
	}
	for size := 10; size <= 13; size++ {
		if sizes[size] < 800 {
			t.Errorf("size %d came %d times of 4000, want about 1000", size, sizes[size])
		}
	}
	if len(sizes) != 4 || len(different) < 3000 {
		t.Errorf("sizes %v, %d different values of 4000", sizes, len(different))
	}
}

func TestTTLGoesToPlainSets(t *testing.T) {
	tests := []struct {
		words string
		want  string
	}{
		{"SET {key} {value}", "SET {key} {value} PX 1500"},
		{"set {key} x", "set {key} x PX 1500"},
		{"SET {key} {value} NX", "SET {key} {value} NX"},
		{"SET other {value}", "SET other {value}"},
		{"GET {key}", "GET {key}"},
	}
	for _, tt := range tests {
		if got := strings.Join(withTTL(strings.Fields(tt.words), 1500*time.Millisecond), " "); got != tt.want {
			t.Errorf("%s becomes %s, want %s", tt.words, got, tt.want)
		}
	}
	if got := withTTL([]string{"SET", "{key}", "x"}, 0); len(got) != 3 {
		t.Errorf("without a TTL SET becomes %v", got)
	}
}

func TestSourceRepeatsAndCounts(t *testing.T) {
	w := made(t, plan.Workload{
		Commands: []plan.Command{
			{Name: "a", Weight: 1, Words: []string{"X", "{key}", "{int}", "{user}", "{seq}", "{value}"}},
		},
		Values: plan.Values{MinBytes: 4, MaxBytes: 4},
	})
	make3 := func(number int64) string {
		s := w.Source(number, 10, false)
		var out []byte
		for range 3 {
			r := Request{User: 77}
			s.Draw(s.Pick(), &r)
			var n int
			if out, n = s.Append(out, &r); n != 1 {
				t.Fatalf("%d replies to one command", n)
			}
		}
		return string(out)
	}
	if first, second := make3(1), make3(1); first != second {
		t.Error("the same source makes other requests the second time")
	}
	if make3(1) == make3(2) {
		t.Error("two sources make the same requests")
	}
	// the preparation has 0 to 9
	for _, want := range []string{"$2\r\n77\r\n$2\r\n11\r\n", "$2\r\n77\r\n$2\r\n21\r\n", "$2\r\n77\r\n$2\r\n31\r\n"} {
		if !strings.Contains(make3(1), want) {
			t.Errorf("%q lacks %q", make3(1), want)
		}
	}
}

// TestSequencesOfUnequalPods: pods on larger nodes have more event loops, and no number in common with others.
func TestSequencesOfUnequalPods(t *testing.T) {
	const pods, operations = 3, 2
	seen := map[int64]bool{}
	add := func(number, of int64, count int) {
		next := firstSeq(number, of, operations)
		for range count {
			if seen[next] {
				t.Fatalf("source %d of %d has %d a second time", number, of, next)
			}
			seen[next] = true
			next += of
		}
	}
	for pod := range pods {
		add(int64(pod-pods), pods, operations)
		sources := int64(1 + pod*2)
		for i := range sources {
			number, of := Numbered(i, sources, pod, pods)
			add(number, of, 1000)
		}
	}
}

// Requests that are drawn first and encoded later, in another order or twice, keep the drawn values.
func TestRequestsKeepWhatWasDrawn(t *testing.T) {
	w := made(t, plan.Workload{
		Commands: []plan.Command{{Name: "a", Weight: 1, Words: []string{"GET", "{key}:{int}:{user}:{seq}"}}},
	})
	s := w.Source(0, 1, true)
	requests := []Request{{User: 1}, {User: 2}, {User: 3}}
	for i := range requests {
		s.Draw(0, &requests[i])
	}
	seen := map[string]bool{}
	for _, i := range []int{2, 0, 1} {
		r := &requests[i]
		once, _ := s.Append(nil, r)
		again, _ := s.Append(nil, r)
		key := strings.Fields(words(t, once)[0])[1]
		if !bytes.Equal(once, again) || seen[key] {
			t.Errorf("request %d is %q, then %q", i, once, again)
		}
		seen[key] = true
		if got := topology.SlotOf([]byte(key)); got != r.Slot {
			t.Errorf("%s is in slot %d, the request says %d", key, got, r.Slot)
		}
	}
}

func TestSlots(t *testing.T) {
	// From CLUSTER KEYSLOT of redis-server 7.0.15; 123456789 is the check value of the specification.
	for key, want := range map[string]uint16{
		"123456789": 0x31C3, "": 0, "foo": 12182, "{user1000}.following": 3443, "{user1000}.followers": 3443,
		"foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "foo{bar}{zap}": 5061,
	} {
		if got := topology.SlotOf([]byte(key)); got != want {
			t.Errorf("SlotOf(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestRoutingKeyOfCommand(t *testing.T) {
	tests := []struct {
		words []string
		key   string // "" = no key routes it
	}{
		{[]string{"GET", "{key}"}, "rq:0"},
		{[]string{"EVAL", "return 1", "1", "{key}"}, "rq:0"},
		{[]string{"LPUSH", "queue", "{value}"}, "queue"},
		{[]string{"HGET", "user:{user}", "name"}, "user:7"},
		{[]string{"ECHO", "{value}"}, ""},
		{[]string{"PING"}, ""},
	}
	for _, tt := range tests {
		w := made(t, plan.Workload{Commands: []plan.Command{{Name: "a", Weight: 1, Words: tt.words}}, Keyspace: uniform(1)})
		want := uint16(NoSlot)
		if tt.key != "" {
			want = topology.SlotOf([]byte(tt.key))
		}
		r := Request{User: 7}
		w.Source(0, 1, true).Draw(0, &r)
		if r.Slot != want {
			t.Errorf("%v: slot %d, want %d", tt.words, r.Slot, want)
		}
		w.Source(0, 1, false).Draw(0, &r)
		if r.Slot != NoSlot {
			t.Errorf("%v: got slot %d though slots are not requested", tt.words, r.Slot)
		}
	}
}

func TestReadsMayGoToReplicas(t *testing.T) {
	w := made(t, plan.Workload{Commands: []plan.Command{
		{Name: "a", Weight: 1, Words: []string{"get", "{key}"}},
		{Name: "b", Weight: 1, Words: []string{"GETDEL", "{key}"}},
		{Name: "c", Weight: 1, Words: []string{"SET", "{key}", "1"}},
	}})
	for i, want := range []bool{true, false, false} {
		if o := w.Operations()[i]; o.ReadOnly != want {
			t.Errorf("%s: read only is %v, want %v", o.Name, o.ReadOnly, want)
		}
	}
}
