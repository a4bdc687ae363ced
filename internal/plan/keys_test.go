package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestKeysThatAWorkloadCreates(t *testing.T) {
	commands := func(texts ...string) (w Workload) {
		for _, text := range texts {
			w.Commands = append(w.Commands, Command{Name: text, Weight: 1, Words: strings.Fields(text)})
		}
		return w
	}
	prefilled := commands("GET {key}")
	prefilled.Keyspace.Prefill = true
	for name, tt := range map[string]struct {
		workload    Workload
		own, others string
	}{
		"set":             {commands("SET {key} {value}"), "rq:0 to rq:9", ""},
		"get":             {commands("GET {key}"), "", ""},
		"prefilled":       {prefilled, "rq:0 to rq:9", ""},
		"several":         {commands("MSET {key}:a 1 {key}:b 2", "GET x"), "rq:0:a to rq:9:a, rq:0:b to rq:9:b", ""},
		"own literal":     {commands("LPUSH rq:list {key}"), "rq:list, rq:0 to rq:9", ""},
		"foreign literal": {commands("INCR counter", "SET user:{int} 1"), "", "counter, user:*"},
		"own numbers":     {commands("INCR rq:n:{int}"), "rq:n:0 to rq:n:9", ""},
		"numbered on":     {commands("SET rq:{seq} 1", "SET {key}:{user} 1"), "", "rq:*, rq:*:*"},
		"script":          {commands("EVAL return 2 rq:a {key} {int}"), "rq:a, rq:0 to rq:9", ""},
		"no key":          {commands("PUBLISH rq:channel {value}", "ECHO {value}", "FLUSHALL"), "", ""},
		"group":           {commands("XGROUP CREATE rq:stream g $ MKSTREAM"), "rq:stream", ""},
		"ranking":         {Workload{Ranking: &Ranking{}}, "rq:ranking", ""},
		"rate limiter":    {Workload{RateLimiter: &RateLimiter{}}, "rq:limit:0 to rq:limit:9", ""},
		"locks":           {Workload{Lock: &Lock{Pods: 2, Locks: 3}}, "rq:lock:{0} to rq:lock:{5}", ""},
		"fenced locks": {
			Workload{Lock: &Lock{Pods: 1, Locks: 2, Fencing: true}},
			"rq:lock:{0} to rq:lock:{1}, rq:lock:{0}:fence to rq:lock:{1}:fence", "",
		},
		"cache":    {Workload{CacheAside: &CacheAside{Mode: ThroughCache}}, "rq:0 to rq:9", ""},
		"no cache": {Workload{CacheAside: &CacheAside{Mode: DatabaseOnly}}, "", ""},
		"http":     {Workload{HTTP: &HTTP{}}, "", ""},
		"benchmark": {
			Workload{Benchmark: &Benchmark{Tests: []string{"ping", "get", "set", "incr", "lpush", "lrange_100"}}},
			"rq:0 to rq:9, rq:counter:0 to rq:counter:9, rq:list:0, rq:lrange:0",
			"",
		},
		"without a prefix": {commands("SET {key} 1"), "", "*"},
	} {
		prefill := tt.workload.Keyspace.Prefill
		tt.workload.Keyspace = Keyspace{Prefix: "rq:", Keys: 10, Prefill: prefill}
		if name == "without a prefix" {
			tt.workload.Keyspace.Prefix = ""
		}
		own, others := tt.workload.Creates()
		var names []string
		for _, k := range own {
			names = append(names, k.String())
		}
		if got := strings.Join(names, ", "); got != tt.own || strings.Join(others, ", ") != tt.others {
			t.Errorf("%s: %q, others %q; want %q and %q", name, got, others, tt.own, tt.others)
		}
	}
	mset := Workload{Benchmark: &Benchmark{Tests: []string{"mset"}}, Keyspace: Keyspace{Prefix: "rq:", Keys: 3}}
	if own, _ := mset.Creates(); len(own) != 10 || !slices.Contains(own, Keys{"rq:mset:{", "}:7", 3}) {
		t.Errorf("mset creates %v", own)
	}
}

func TestWhatIsLeft(t *testing.T) {
	w := Workload{
		Commands: commandList{{Words: []string{"SET", "{key}", "1"}}, {Words: []string{"SETNX", "id:{seq}", "1"}}},
		Keyspace: Keyspace{Prefix: "rq:", Keys: 10, TTL: time.Hour},
	}
	for _, want := range []string{"up to 10 keys", "rq:0 to rq:9", "expire after 1h", "--cleanup", "'rq:*'", "id:*"} {
		if !strings.Contains(w.Left(), want) {
			t.Errorf("%q is not in %q", want, w.Left())
		}
	}
	w.Commands = commandList{{Words: []string{"GET", "{key}"}}}
	if w.Left() != "" {
		t.Errorf("a load that reads leaves %q", w.Left())
	}
}

func TestReadsOfKeysThatNothingWrote(t *testing.T) {
	for _, tt := range []struct {
		sets, gets int
		prefill    bool
		want       string
	}{{1, 9, false, "0.9"}, {1, 9, true, "0"}, {1, 1, false, "0"}, {0, 1, false, "1"}, {2, 1, false, "0"}} {
		w := Workload{Keyspace: Keyspace{Prefill: tt.prefill}}
		for words, weight := range map[string]int{"SET {key} 1": tt.sets, "GET {key}": tt.gets} {
			if weight > 0 {
				w.Commands = append(w.Commands, Command{Weight: weight, Words: strings.Fields(words)})
			}
		}
		if got := fmt.Sprintf("%.2g", w.ReadsUnwritten()); got != tt.want {
			t.Errorf("%d SET, %d GET, prefill %v: %s, want %s", tt.sets, tt.gets, tt.prefill, got, tt.want)
		}
	}
}
