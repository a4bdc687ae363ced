package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/format"
)

// Keys are keys that a run can create: Before, a number from 0 to Count-1, and After; of Count 0
// Before alone.
type Keys struct {
	Before, After string
	Count         int64
}

// Total is how many keys there can be.
func (k Keys) Total() int64 {
	return max(1, k.Count)
}

func (k Keys) String() string {
	switch {
	case k.Count == 0:
		return k.Before
	case k.Count == 1:
		return k.Before + "0" + k.After
	}
	return fmt.Sprintf("%s0%s to %s%d%s", k.Before, k.After, k.Before, k.Count-1, k.After)
}

// Creates returns the keys that the workload and its prefill can create, as far as they begin with
// the prefix of the keyspace: those that a cleanup deletes. others are the further ones, with * for
// what is not known: they may belong to an application, or are too many to count.
func (w *Workload) Creates() (own []Keys, others []string) {
	c := created{prefix: w.Keyspace.Prefix, keys: w.Keyspace.Keys}
	switch {
	case len(w.Commands) > 0:
		for _, command := range w.Commands {
			for _, word := range keyWords(command.Words) {
				c.word(word)
			}
		}
	case w.Benchmark != nil:
		c.benchmark(w.Benchmark)
	case w.Ranking != nil:
		c.add(Keys{Before: c.prefix + "ranking"})
	case w.RateLimiter != nil:
		c.add(Keys{Before: c.prefix + "limit:", Count: c.keys})
	case w.Lock != nil:
		all := Keys{Before: c.prefix + "lock:{", After: "}", Count: int64(w.Lock.Locks) * int64(w.Lock.Pods)}
		c.add(all)
		if w.Lock.Fencing { // unlike the locks themselves, these do not expire
			all.After = "}:fence"
			c.add(all)
		}
	case w.CacheAside != nil && w.CacheAside.Mode != DatabaseOnly:
		c.add(Keys{Before: c.prefix, Count: c.keys})
	}
	if w.Keyspace.Prefill && (len(w.Commands) > 0 || w.Benchmark != nil) {
		c.add(Keys{Before: c.prefix, Count: c.keys})
	}
	return c.own, c.others
}

// created collects the keys of a workload.
type created struct {
	prefix string
	keys   int64
	own    []Keys
	others []string
}

func (c *created) add(k Keys) {
	if !slices.Contains(c.own, k) {
		c.own = append(c.own, k)
	}
}

// word adds the keys of a word of a command.
func (c *created) word(word string) {
	word = strings.ReplaceAll(word, "{key}", c.prefix+"{int}")
	before, after, numbered := strings.Cut(word, "{int}")
	known := !strings.Contains(word, `\{`) && !strings.Contains(word, "{seq}") && !strings.Contains(word, "{user}") &&
		!strings.Contains(after, "{int}")
	if known && c.prefix != "" && strings.HasPrefix(before, c.prefix) {
		k := Keys{Before: before, After: after}
		if numbered {
			k.Count = c.keys
		}
		c.add(k)
		return
	}
	pattern := strings.NewReplacer("{int}", "*", "{seq}", "*", "{user}", "*").Replace(word)
	if !slices.Contains(c.others, pattern) {
		c.others = append(c.others, pattern)
	}
}

func (c *created) benchmark(b *Benchmark) {
	for _, name := range b.Tests {
		test := benchmarkTests[name]
		if onlyReads(test.Words) && test.Fills == nil {
			continue
		}
		k := Keys{Before: c.prefix + test.Place, Count: c.keys}
		switch {
		case test.Single:
			c.add(Keys{Before: k.Before + "0"})
		case name == "mset":
			for i := range 10 {
				k.After = "}:" + strconv.Itoa(i)
				c.add(k)
			}
		default:
			c.add(k)
		}
	}
}

// noKeys are commands that may change something, and have no key.
const noKeys = " ACL BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG DEBUG FAILOVER FLUSHALL FLUSHDB FUNCTION " +
	"INFO LATENCY MODULE PUBLISH REPLICAOF ROLE SAVE SCRIPT SLAVEOF SLOWLOG SPUBLISH SWAPDB WAIT WAITAOF "

// keyWords are the words of a command that can be the names of new keys: its first key, and all
// others that are keys of the keyspace.
func keyWords(words []string) (found []string) {
	if len(words) < 2 || onlyReads(words) {
		return nil
	}
	name, first, end := strings.ToUpper(words[0]), 1, 2
	switch name {
	case "EVAL", "EVALSHA", "FCALL":
		first, end = 3, 3
		if len(words) > 3 {
			count, err := strconv.Atoi(words[2])
			if err == nil && count >= 0 {
				end = min(3+count, len(words))
			}
		}
	case "BITOP", "XGROUP":
		first, end = 2, 3
	default:
		if strings.Contains(noKeys, " "+name+" ") {
			return nil
		}
	}
	for i, word := range words {
		isKey := i >= first && i < end || i >= first && strings.Contains(word, "{key}")
		if isKey && !strings.Contains(word, "{value}") {
			found = append(found, word)
		}
	}
	return found
}

// ReadsUnwritten is the share of the requests that read keys which nothing has written before,
// unless they were there: reads of keys of the keyspace, without a prefill and without a write of
// them in most requests. 0 = they are few.
func (w *Workload) ReadsUnwritten() float64 {
	var reads, all float64
	if w.Keyspace.Prefill || len(w.Commands) == 0 {
		return 0
	}
	for _, c := range w.Commands {
		all += float64(c.Weight)
		if len(c.Words) > 1 && onlyReads(c.Words) &&
			strings.Contains(strings.Join(c.Words[1:], " "), "{key}") {
			reads += float64(c.Weight)
		}
	}
	if reads <= all/2 {
		return 0
	}
	return reads / all
}

// Left says which keys a run may have left, and how to remove them; "" = none.
func (w *Workload) Left() string {
	own, others := w.Creates()
	if len(own) == 0 && len(others) == 0 {
		return ""
	}
	var names []string
	total := int64(0)
	for _, k := range own {
		total += k.Total()
		names = append(names, k.String())
	}
	text := ""
	if len(own) > 0 { // they have a prefix
		text = fmt.Sprintf("up to %d keys may be left: %s", total, strings.Join(names, ", "))
		if w.Keyspace.TTL > 0 {
			text += "; those of prefill and SET expire after " + format.Duration(w.Keyspace.TTL)
		}
		text += fmt.Sprintf("; --cleanup removes them after a load, redis-cli --scan --pattern '%s*' | "+
			"xargs redis-cli unlink all keys of the prefix now", w.Keyspace.Prefix)
	}
	if len(others) > 0 {
		if text != "" {
			text += "; further ones that it does not remove: "
		} else {
			text = "keys may be left that --cleanup does not remove: "
		}
		text += strings.Join(others, ", ")
	}
	return text
}
