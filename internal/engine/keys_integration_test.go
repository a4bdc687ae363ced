//go:build integration

package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Every command that a server knows, with keys at each position where it has one, is sent to the node that has the
// slot: no node answers MOVED. The forms are made from the server's own description of its commands.
func TestEveryCommandGoesToItsNode(t *testing.T) {
	redistest.Each(t, func(t *testing.T) {
		c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
		described, err := c.Shards[0][0].Client().Do(t.Context(), "COMMAND").Slice()
		if err != nil {
			t.Fatal(err)
		}
		nodes := make([]*redis.Conn, len(c.Shards))
		for i, shard := range c.Shards {
			address := shard[0].Address()
			nodes[i] = redis.NewConn(0, func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", address)
			})
			defer nodes[i].Close()
			if err := nodes[i].Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		known, sent := 0, 0
		for _, one := range described {
			for _, form := range formsOf(one.([]any), nil) {
				if !goesToItsNode(t, c, nodes, form) {
					continue
				}
				sent++
			}
			known++
		}
		t.Logf("%d forms of %d commands", sent, known)
		if sent < 500 {
			t.Errorf("only %d forms were sent", sent)
		}
	})
}

// keyForms are the words that a key is made of, alone and twice in one slot.
var keyForms = [...][2]string{{"{key}", "{key}"}, {"a{int}", "a{int}"}, {"fixed", "fixed"}, {"{{user}}:{seq}", "{{user}}:x"}}

// changesItsConnection are commands with keys that the load refuses.
var changesItsConnection = []string{"WATCH", "SSUBSCRIBE", "SUNSUBSCRIBE"}

// formsOf are commands that have keys where an entry of COMMAND says that they are.
func formsOf(entry []any, above []string) [][]string {
	name := strings.ToUpper(entry[0].(string))
	words := append(slices.Clone(above), name[strings.IndexByte(name, '|')+1:])
	var forms [][]string
	for _, sub := range entry[9].([]any) {
		forms = append(forms, formsOf(sub.([]any), words)...)
	}
	specs := entry[8].([]any)
	if len(specs) == 0 || slices.Contains(changesItsConnection, name) || name == "MIGRATE" {
		return forms
	}
	for _, key := range keyForms {
		form := slices.Clone(words)
		for _, spec := range specs {
			form = withKey(form, pairs(spec), key)
		}
		least := entry[1].(int64)
		for len(form) < int(max(least, -least)) {
			form = append(form, "0.01")
		}
		forms = append(forms, form)
	}
	return forms
}

// withKey adds the keys of one specification, see https://redis.io/docs/latest/develop/reference/key-specs.
func withKey(form []string, spec map[string]any, key [2]string) []string {
	fill := func(to int) {
		for len(form) < to {
			form = append(form, "{key}") // before the key, and none
		}
	}
	begins, finds := pairs(spec["begin_search"]), pairs(spec["find_keys"])
	at := pairs(begins["spec"])
	switch begins["type"] {
	case "index":
		fill(int(at["index"].(int64)))
	case "keyword":
		from := at["startfrom"].(int64)
		fill(int(max(from, -from)))
		form = append(form, at["keyword"].(string))
	default:
		return form
	}
	found := pairs(finds["spec"])
	if finds["type"] == "keynum" {
		form = append(form, "2")
	} else if step, _ := found["keystep"].(int64); step > 1 || found["lastkey"].(int64) == 0 {
		return append(form, key[0])
	}
	return append(form, key[0], key[1])
}

// pairs is a map of RESP3, or the list of names and values that it is in RESP2.
func pairs(v any) map[string]any {
	found := map[string]any{}
	switch v := v.(type) {
	case map[any]any:
		for name, value := range v {
			found[name.(string)] = value
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			found[v[i].(string)] = v[i+1]
		}
	}
	return found
}

// goesToItsNode sends requests of a command to the nodes that it is routed to; false where the command has no key in
// this form.
func goesToItsNode(t *testing.T, c *redistest.Cluster, nodes []*redis.Conn, form []string) bool {
	t.Helper()
	w, err := workload.New(&plan.Workload{
		Commands: []plan.Command{{Name: "one", Weight: 1, Words: form}},
		Keyspace: plan.Keyspace{Prefix: "p:", Keys: 1000},
		Values:   plan.Values{MinBytes: 8, MaxBytes: 8},
	})
	if err != nil {
		t.Fatalf("%q: %v", form, err)
	}
	within, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	keys := 0
	err = w.(workload.Keyed).FindKeys(func(words []string) ([]string, bool, error) {
		found, known, err := keysOf(within, nodes[0], words)
		keys = len(found)
		return found, known, err
	})
	if err != nil {
		t.Errorf("%q: %v", form, err)
		return false
	}
	if keys == 0 {
		return false
	}
	source := w.Source(0, 1, true)
	for user := range int64(8) {
		request := workload.Request{User: user}
		source.Draw(0, &request)
		out, replies := source.Append(nil, &request)
		node := slices.Index(c.Addresses(), c.Owner(int(request.Slot)).Address())
		answers, err := nodes[node].Exchange(within, out, replies)
		if err != nil {
			t.Errorf("%q: %v", form, err)
			return false
		}
		if text := answers[0].Text; answers[0].IsError() && (strings.HasPrefix(text, "MOVED") || strings.HasPrefix(text, "CROSSSLOT")) {
			t.Errorf("%q was sent to the wrong node for %q: %s", form, out, text)
			return false
		}
	}
	return true
}

// The natural forms of commands, whose key is not the first word with {key}: MOVED is the answer to less than 0.1 % of
// the requests, counted by the servers.
func TestNaturalCommandsAreNotRedirected(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{}) // its own: others count, too
	p := followPlan(plan.TopologyCluster, c.Addresses(), 0, 2*time.Second)
	p.Shape = plan.Shape{Users: 8, Duration: 2 * time.Second}
	p.Workload.Commands = nil
	for i, words := range []string{
		"HSET hash {key} {value}", "EVAL return(1) 1 fixed", "XREAD COUNT 1 STREAMS s{int} 0", "OBJECT ENCODING k{int}",
		"SADD set {key}", "ZADD z 1 {key}", "LPUSH list {key}", "SET a{int} {key}", "SPUBLISH channel {key}",
		"BITOP AND {{key}}a {{key}}b {{key}}c", "PUBLISH all {key}", "GET {key}", "MSET {{int}}x {key} {{int}}y {key}",
	} {
		p.Workload.Commands = append(p.Workload.Commands,
			plan.Command{Name: fmt.Sprint("c", i), Weight: 1, Words: strings.Fields(words)})
	}
	r := prepared(t, p)
	before := movedBy(t, c)
	o, sink := collect(t)
	if err := r.Run(t.Context(), time.Now(), sink); err != nil {
		t.Fatal(err)
	}
	moved := movedBy(t, c) - before
	if requests := o.sum.OK + o.sum.Fail; moved > requests/1000 || requests < 1000 || o.sum.Fail > 0 {
		t.Errorf("%d of %d requests were answered by MOVED: %s", moved, requests, describe(o))
	}
}

// The reads that find nothing are those that the server counts as misses.
func TestMissesAreThoseOfTheServer(t *testing.T) {
	for _, driver := range []plan.Driver{plan.NativeDriver, plan.GoRedisDriver} {
		t.Run(string(driver), func(t *testing.T) {
			t.Parallel()
			s := redistest.NewServer(t, redistest.Options{})
			p := realPlan(s.Address())
			p.Client.Driver, p.Info = driver, 0
			p.Shape = plan.Shape{Users: 4, Requests: 2000}
			p.Workload.Keyspace.Keys, p.Workload.Commands = 400, nil
			for _, words := range []string{"GET {key}", "HGET h{int} f", "SET {key} {value} NX"} {
				p.Workload.Commands = append(p.Workload.Commands,
					plan.Command{Name: words[:4], Weight: 1, Words: strings.Fields(words)})
			}
			r := prepared(t, p)
			s.Do("CONFIG", "RESETSTAT") // without the commands that were tried
			o, sink := collect(t)
			if err := r.Run(t.Context(), time.Now(), sink); err != nil {
				t.Fatal(err)
			}
			var missed [3]uint64
			for _, iv := range o.intervals {
				for op := range iv.Ops {
					missed[op] += iv.Ops[op].Missed
				}
			}
			info, err := s.Client().InfoMap(t.Context(), "stats").Result()
			if err != nil {
				t.Fatal(err)
			}
			counted := info["Stats"]["keyspace_misses"]
			if missed[0] == 0 || missed[1] < 400 || missed[2] > 0 || fmt.Sprint(missed[0]+missed[1]) != counted {
				t.Errorf("misses by operation %v, the server counted %s: %s", missed, counted, describe(o))
			}
		})
	}
}

// movedBy is how often the nodes have answered MOVED.
func movedBy(t *testing.T, c *redistest.Cluster) (sum uint64) {
	t.Helper()
	for _, s := range c.Servers() {
		text, err := s.Client().Info(t.Context(), "errorstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		_, count, _ := strings.Cut(text, "errorstat_MOVED:count=")
		count, _, _ = strings.Cut(count, "\r")
		n, _ := strconv.ParseUint(cmp.Or(count, "0"), 10, 64)
		sum += n
	}
	return sum
}

// Keys in different slots are refused before the start, with the operation and an example.
func keysInDifferentSlotsAreRefused(t *testing.T, c *redistest.Cluster) {
	p := followPlan(plan.TopologyCluster, c.Addresses(), 10, time.Second)
	p.Workload.Commands = []plan.Command{{Name: "both", Weight: 1, Words: strings.Fields("MGET {key} lock:{key}")}}
	r, err := New(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Prepare(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), `the keys of "both" are in different slots`) {
		t.Errorf("%v", err)
	}
}
