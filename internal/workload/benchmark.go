package workload

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/resp"
	"github.com/redquake/redquake/internal/topology"
)

// Benchmark is redis-benchmark's tests by their names, mixed with equal weights: each test is an operation. Below the keyspace's prefix they use
//
//   - {n}, a key of the keyspace, for set and get, with their TTL for set; mset writes ten keys mset:{n}:0 to mset:{n}:9, which share a slot
//   - counter:{n} for incr
//   - list:0, set:0, hash:0, zset:0, stream:0, one of each, for the tests of that type, with elements of as many names as there are keys
//   - lrange:0, 600 elements, for lrange_*
//
// Before the start, what tests take from is filled with as many elements as there are keys: list:0 for pops, set:0 for spop, zset:0 for zpopmin.
type Benchmark struct {
	Tests []string `json:"tests"` // at least one, each at most once
}

// benchmarkTest is one of redis-benchmark's tests.
type benchmarkTest struct {
	words  string // {key} is the prefix, place, and a number
	place  string // what stands between the prefix and the key's number
	single bool   // the key's number is always 0
	fills  string // what the filled structure is made with; "" = it is not filled
}

// rangeElements is how many elements the list of lrange_* has.
const rangeElements = 600

var benchmarkTests = map[string]benchmarkTest{
	"ping":       {words: "PING"},
	"set":        {words: "SET {key} {value}"},
	"get":        {words: "GET {key}"},
	"incr":       {words: "INCR {key}", place: "counter:"},
	"lpush":      {words: "LPUSH {key} {value}", place: "list:", single: true},
	"rpush":      {words: "RPUSH {key} {value}", place: "list:", single: true},
	"lpop":       {words: "LPOP {key}", place: "list:", single: true, fills: "RPUSH {key} {value}"},
	"rpop":       {words: "RPOP {key}", place: "list:", single: true, fills: "RPUSH {key} {value}"},
	"sadd":       {words: "SADD {key} element:{int}", place: "set:", single: true},
	"spop":       {words: "SPOP {key}", place: "set:", single: true, fills: "SADD {key} element:{seq}"},
	"hset":       {words: "HSET {key} element:{int} {value}", place: "hash:", single: true},
	"zadd":       {words: "ZADD {key} {int} element:{int}", place: "zset:", single: true},
	"zpopmin":    {words: "ZPOPMIN {key}", place: "zset:", single: true, fills: "ZADD {key} {seq} element:{seq}"},
	"lrange_100": lrange(100),
	"lrange_300": lrange(300),
	"lrange_500": lrange(500),
	"lrange_600": lrange(600),
	"mset":       {words: "MSET" + msetWords(), place: "mset:{"},
	"xadd":       {words: "XADD {key} * myfield {value}", place: "stream:", single: true},
}

func lrange(n int) benchmarkTest {
	return benchmarkTest{words: "LRANGE {key} 0 " + strconv.Itoa(n-1), place: "lrange:", single: true, fills: "RPUSH {key} {value}"}
}

// msetWords are ten keys and values. The brace that opens the keys' hash tag stands in the test's place, before the number.
func msetWords() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, " {key}}:%d {value}", i)
	}
	return b.String()
}

func (b *Benchmark) check(*Spec) string {
	if len(b.Tests) == 0 {
		return "tests: is empty"
	}
	for i, name := range b.Tests {
		if _, ok := benchmarkTests[name]; !ok {
			return fmt.Sprintf("tests[%d]: %q is none of %s", i, name, strings.Join(BenchmarkTests(), ", "))
		}
		if slices.Contains(b.Tests[:i], name) {
			return fmt.Sprintf("tests[%d]: %q stands twice", i, name)
		}
	}
	return ""
}

// BenchmarkTests are the names of all tests, sorted.
func BenchmarkTests() []string {
	var names []string
	for name := range benchmarkTests {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (b *Benchmark) mix() mix {
	operations := make([]Operation, len(b.Tests))
	for i, name := range b.Tests {
		operations[i] = Operation{Name: name, Weight: 1, ReadOnly: onlyReads(strings.Fields(benchmarkTests[name].words))}
	}
	return newMix(operations)
}

// benchmark is the tests, encoded: commands whose keys have a place of their own below the prefix.
type benchmark struct {
	commands
	tests  []string
	single []bool
}

func newBenchmark(s *Spec) (*benchmark, error) {
	b := &benchmark{tests: s.Benchmark.Tests, commands: commands{mix: s.Benchmark.mix(), keyspace: s.Keyspace, values: newValuePool(s.Values)}}
	for i, name := range b.tests {
		test := benchmarkTests[name]
		if err := b.compile(withTTL(strings.Fields(test.words), s.Keyspace.TTL), s.Keyspace.Prefix+test.place); err != nil {
			return nil, fmt.Errorf("benchmark.tests[%d]: %w", i, err)
		}
		b.single = append(b.single, test.single)
	}
	return b, nil
}

// Fill sets the keyspace's keys where that is asked for, and fills what the tests take from.
func (b *benchmark) Fill(ctx context.Context, f *Filler) error {
	if err := b.commands.Fill(ctx, f); err != nil {
		return err
	}
	filled := map[string]bool{}
	for _, name := range b.tests {
		test := benchmarkTests[name]
		if test.fills == "" || filled[test.place] {
			continue
		}
		filled[test.place] = true
		items := b.keyspace.Keys
		if test.place == "lrange:" {
			items = rangeElements
		}
		if err := b.fillElements(ctx, f, test, items); err != nil {
			return err
		}
	}
	return nil
}

func (b *benchmark) fillElements(ctx context.Context, f *Filler, test benchmarkTest, items int64) error {
	words := strings.Fields(test.fills)
	t, err := resp.Compile(words, b.keyspace.Prefix+test.place)
	if err != nil {
		return err
	}
	slot := topology.SlotOf([]byte(b.keyspace.Prefix + test.place + "0"))
	what := "elements of " + b.keyspace.Prefix + test.place + "0"
	return f.Write(ctx, Data{What: what, Items: items, Command: words[0], Encoder: func(from int64) func([]byte, int64, int64) ([]byte, int64, uint16) {
		chance := newChance(nil, from)
		var args resp.Args
		return func(dst []byte, item, _ int64) ([]byte, int64, uint16) {
			args.Seq, args.Value = uint64(item), b.values.draw(&chance)
			return t.Append(dst, &args), 1, slot
		}
	}})
}

// Source makes one event loop's requests.
func (b *benchmark) Source(number, of int64, slots bool) Source {
	return &benchmarkSource{commandSource: *b.commands.source(number, of, slots), single: b.single}
}

type benchmarkSource struct {
	commandSource
	single []bool
}

// Draw leaves the key of a structure that there is only one of at 0.
func (s *benchmarkSource) Draw(op int, r *Request) {
	if s.single[op] {
		r.Key = 0
		s.drawRest(op, r)
		return
	}
	s.commandSource.Draw(op, r)
}
