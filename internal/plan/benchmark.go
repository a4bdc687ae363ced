package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Benchmark is redis-benchmark's tests by name, one after the other or mixed with equal weights:
// each test is an operation. With the keyspace's prefix they use
//
//   - {n}, a key of the keyspace, for set and get, with their TTL for set; mset writes ten keys
//     mset:{n}:0 to mset:{n}:9, which share a slot
//   - counter:{n} for incr
//   - list:0, set:0, hash:0, zset:0, stream:0 for the tests of that type, with as many different
//     elements as the keyspace has keys
//   - lrange:0, with 600 elements, for lrange_*
//
// Structures from which tests remove elements are filled before the start, with as many elements as
// the keyspace has keys: list:0 for pops, set:0 for spop, zset:0 for zpopmin.
type Benchmark struct {
	Tests []string       `json:"tests"` // at least one, each at most once
	Order BenchmarkOrder `json:"order"` // of the tests; "" = Mixed
	// length of each test with InTurn; 0 = each has an equal part of Shape.Requests
	Each time.Duration `json:"each,omitempty"`
}

// BenchmarkOrder is how the tests of a benchmark follow each other.
type BenchmarkOrder string

// The orders.
const (
	InTurn BenchmarkOrder = "Sequential" // one after the other
	Mixed  BenchmarkOrder = "Mixed"      // all at the same time
)

// BenchmarkTest is one of redis-benchmark's tests.
type BenchmarkTest struct {
	Words  []string // {key} consists of the prefix, Place and a number
	Place  string   // the part of a key between the prefix and the number
	Single bool     // the key's number is always 0
	Fills  []string // the command that fills the structure; nil = it is not filled
}

// RangeElements is the number of elements of the list of lrange_*.
const RangeElements = 600

var benchmarkTests = map[string]BenchmarkTest{
	"ping":  {Words: words("PING")},
	"set":   {Words: words("SET {key} {value}")},
	"get":   {Words: words("GET {key}")},
	"incr":  {Words: words("INCR {key}"), Place: "counter:"},
	"lpush": {Words: words("LPUSH {key} {value}"), Place: "list:", Single: true},
	"rpush": {Words: words("RPUSH {key} {value}"), Place: "list:", Single: true},
	"lpop": {
		Words:  words("LPOP {key}"),
		Place:  "list:",
		Single: true,
		Fills:  words("RPUSH {key} {value}"),
	},
	"rpop": {
		Words:  words("RPOP {key}"),
		Place:  "list:",
		Single: true,
		Fills:  words("RPUSH {key} {value}"),
	},
	"sadd": {Words: words("SADD {key} element:{int}"), Place: "set:", Single: true},
	"spop": {
		Words:  words("SPOP {key}"),
		Place:  "set:",
		Single: true,
		Fills:  words("SADD {key} element:{seq}"),
	},
	"hset": {Words: words("HSET {key} element:{int} {value}"), Place: "hash:", Single: true},
	"zadd": {Words: words("ZADD {key} {int} element:{int}"), Place: "zset:", Single: true},
	"zpopmin": {
		Words:  words("ZPOPMIN {key}"),
		Place:  "zset:",
		Single: true,
		Fills:  words("ZADD {key} {seq} element:{seq}"),
	},
	"lrange_100": lrange(100),
	"lrange_300": lrange(300),
	"lrange_500": lrange(500),
	"lrange_600": lrange(600),
	"mset":       {Words: words("MSET" + msetWords()), Place: "mset:{"},
	"xadd":       {Words: words("XADD {key} * myfield {value}"), Place: "stream:", Single: true},
}

func lrange(n int) BenchmarkTest {
	return BenchmarkTest{
		Words:  words("LRANGE {key} 0 " + strconv.Itoa(n-1)),
		Place:  "lrange:",
		Single: true,
		Fills:  words("RPUSH {key} {value}"),
	}
}

func words(command string) []string {
	return strings.Fields(command)
}

// msetWords returns ten keys and values. The opening brace of the keys' hash tag is in the test's
// Place, before the number.
func msetWords() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, " {key}}:%d {value}", i)
	}
	return b.String()
}

func (b *Benchmark) check(*Keyspace) string {
	for i, name := range b.Tests {
		problem := unknown(fmt.Sprintf("tests[%d]", i), name, BenchmarkTests()...)
		if problem != "" {
			return problem
		}
	}
	return unknown("order", b.Order, "", InTurn, Mixed)
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

func (b *Benchmark) operations() []Operation {
	operations := make([]Operation, len(b.Tests))
	for i, name := range b.Tests {
		operations[i] = Operation{
			Name:     name,
			Weight:   1,
			ReadOnly: onlyReads(benchmarkTests[name].Words),
		}
	}
	return operations
}

func (b *Benchmark) tallies() []string {
	return nil
}

// BenchmarkTestNamed returns the test with a name, which must be one of BenchmarkTests.
func BenchmarkTestNamed(name string) BenchmarkTest {
	return benchmarkTests[name]
}
