package memredis

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// slowAfter is slowlog-log-slower-than's default.
const slowAfter = 10 * time.Millisecond

type entry struct {
	value   string
	expires time.Time // zero = never
}

type slowEntry struct {
	id    int
	at    time.Time
	took  time.Duration
	words []string
}

// stat is how often a process performed a command, and how long that took.
type stat struct {
	calls int
	took  time.Duration
}

// containers are the commands of which a server counts each subcommand.
var containers = map[string]bool{
	"ACL": true, "CLIENT": true, "CLUSTER": true, "COMMAND": true, "CONFIG": true, "LATENCY": true, "SLOWLOG": true,
}

// account adds a command that was performed.
func (p *process) account(words []string, took time.Duration) {
	p.served++
	p.busy += took
	name := strings.ToLower(words[0])
	if containers[words[0]] && len(words) > 1 {
		name += "|" + strings.ToLower(words[1])
	}
	st := p.stats[name]
	if st == nil {
		st = &stat{}
		p.stats[name] = st
	}
	st.calls++
	st.took += took
	if took >= slowAfter {
		p.slow = append(p.slow, slowEntry{id: len(p.slow), at: time.Now(), took: took, words: words})
	}
}

// did is how often a command was performed.
func (p *process) did(name string) int {
	if st := p.stats[name]; st != nil {
		return st.calls
	}
	return 0
}

// command describes one command.
type command struct {
	least   int // words, with the name
	write   bool
	loading bool // also served while the data is loaded
	do      func(c *session, out []byte, words []string) []byte
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"PING":     {1, false, false, ping},
		"HELLO":    {1, false, true, hello},
		"AUTH":     {2, false, true, auth},
		"SELECT":   {2, false, true, ok},
		"CLIENT":   {2, false, true, client},
		"INFO":     {1, false, true, info},
		"CONFIG":   {2, false, true, config},
		"SLOWLOG":  {2, false, true, slowlog},
		"LATENCY":  {2, false, true, func(_ *session, out []byte, _ []string) []byte { return head(out, '*', 0) }},
		"ROLE":     {1, false, true, role},
		"DEBUG":    {2, false, true, debug},
		"GET":      {2, false, false, func(c *session, out []byte, w []string) []byte { return c.get(out, w[1]) }},
		"SET":      {3, true, false, set},
		"MGET":     {2, false, false, mget},
		"MSET":     {3, true, false, mset},
		"INCR":     {2, true, false, incr},
		"SETBIT":   {4, true, false, setbit},
		"BITFIELD": {2, true, false, bitfield},
		"GETBIT":   {3, false, false, getbit},
		"BITCOUNT": {2, false, false, bitcount},
		"GETRANGE": {4, false, false, getrange},
		"STRLEN":   {2, false, false, strlen},
		"EXISTS":   {2, false, false, exists},
		"DEL":      {2, true, false, del},
		"UNLINK":   {2, true, false, del},
		"EXPIRE":   {3, true, false, expire},
		"PEXPIRE":  {3, true, false, expire},
		"PTTL":     {2, false, false, pttl},
		"DBSIZE":   {1, false, false, dbsize},
		"FLUSHALL": {1, true, false, flushall},

		"ASKING": {1, false, false, ok},

		"SUBSCRIBE":  {2, false, true, subscribe},
		"PSUBSCRIBE": {2, false, true, subscribe},
		"PUBLISH":    {3, false, true, publish},

		"ACL":          {2, false, true, acl},
		"BGREWRITEAOF": {1, false, false, bgsave},
		"BGSAVE":       {1, false, false, bgsave},
		"CLUSTER":      {2, false, true, cluster},
		"COMMAND":      {2, false, true, commandInfo},
		"EVAL":         {3, false, false, eval},
		"FAILOVER":     {1, false, true, failover},
		"REPLICAOF":    {3, false, true, replicaof},
		"SLAVEOF":      {3, false, true, replicaof},
		"SHUTDOWN":     {1, false, true, shutdown},
		"TIME":         {1, false, true, now},
	}
}

// reply performs a command and appends the reply, with the checks in the order of Redis.
func (c *session) reply(out []byte, words []string) []byte {
	s := c.server
	known, there := commands[words[0]]
	switch {
	case !there:
		return fail(out, "%s", unknown(words))
	case len(words) < known.least:
		return wrongNumber(out, words[0])
	case !c.allowed && words[0] != "AUTH" && words[0] != "HELLO":
		return fail(out, "NOAUTH Authentication required.")
	case s.state.readOnly() && known.write:
		return fail(out, "READONLY You can't write against a read only replica.")
	case s.state.Loading && !known.loading:
		return fail(out, "LOADING Redis is loading the dataset in memory")
	}
	return known.do(c, out, words)
}

// unknown is the error of a command that there is not.
func unknown(words []string) string {
	text := "ERR unknown command '" + words[0] + "', with args beginning with: "
	for _, word := range words[1:] {
		text += "'" + word + "' "
	}
	return text
}

// movedTo is the redirection of a command on a key that ASKING does not precede; "" = none.
func (c *session) movedTo(name string, write bool) string {
	asked := c.asked
	if c.asked = name == "ASKING"; asked || !write && name != "GET" {
		return ""
	}
	return c.server.moved
}

func ping(c *session, out []byte, words []string) []byte {
	if c.subscribed > 0 && c.version == 2 {
		return bulks(head(out, '*', 2), "pong", strings.Join(words[1:], ""))
	}
	if len(words) > 1 {
		return bulk(out, words[1])
	}
	return append(out, "+PONG\r\n"...)
}

func slowlog(c *session, out []byte, words []string) []byte {
	p := c.process
	switch strings.ToUpper(words[1]) {
	case "LEN":
		return number(out, len(p.slow))
	case "GET":
		most := 10
		if len(words) > 2 {
			most, _ = strconv.Atoi(words[2])
		}
		most = min(most, len(p.slow))
		out = head(out, '*', most)
		for i := range most {
			e := p.slow[len(p.slow)-1-i]
			out = number(number(number(head(out, '*', 6), e.id), int(e.at.Unix())), int(e.took.Microseconds()))
			out = bulks(head(out, '*', len(e.words)), e.words...)
			out = bulks(out, "127.0.0.1:1", "")
		}
		return out
	}
	return ok(c, out, words)
}

func bulks(out []byte, texts ...string) []byte {
	for _, text := range texts {
		out = bulk(out, text)
	}
	return out
}

func set(c *session, out []byte, words []string) []byte {
	e := entry{value: words[2]}
	old, there := c.process.find(words[1])
	for i := 3; i < len(words); i++ {
		switch option := strings.ToUpper(words[i]); {
		case option == "NX" && there, option == "XX" && !there:
			return c.null(out)
		case option == "NX", option == "XX":
		case option == "KEEPTTL":
			e.expires = old.expires
		case (option == "EX" || option == "PX") && i+1 < len(words):
			i++
			e.expires = time.Now().Add(life(option == "PX", words[i]))
		default:
			return fail(out, "ERR syntax error")
		}
	}
	c.process.keys[words[1]] = e
	return ok(c, out, words)
}

func mget(c *session, out []byte, words []string) []byte {
	out = head(out, '*', len(words)-1)
	for _, key := range words[1:] {
		out = c.get(out, key)
	}
	return out
}

func (c *session) get(out []byte, key string) []byte {
	if e, found := c.process.find(key); found {
		return bulk(out, e.value)
	}
	return c.null(out)
}

func (c *session) null(out []byte) []byte {
	if c.version == 3 {
		return append(out, "_\r\n"...)
	}
	return append(out, "$-1\r\n"...)
}

func mset(c *session, out []byte, words []string) []byte {
	if len(words)%2 == 0 {
		return wrongNumber(out, "mset")
	}
	for i := 1; i < len(words); i += 2 {
		c.process.keys[words[i]] = entry{value: words[i+1]}
	}
	return ok(c, out, words)
}

func wrongNumber(out []byte, name string) []byte {
	return fail(out, "ERR wrong number of arguments for '%s' command", strings.ToLower(name))
}

func incr(c *session, out []byte, words []string) []byte {
	e, there := c.process.find(words[1])
	n, err := strconv.Atoi(e.value)
	if there && err != nil {
		return fail(out, "ERR value is not an integer or out of range")
	}
	e.value = strconv.Itoa(n + 1)
	c.process.keys[words[1]] = e
	return number(out, n+1)
}

func fail(out []byte, format string, args ...any) []byte {
	return append(fmt.Appendf(append(out, '-'), format, args...), "\r\n"...)
}

func setbit(c *session, out []byte, words []string) []byte {
	e, _ := c.process.find(words[1])
	place, mask := bitAt(words)
	b := make([]byte, max(len(e.value), place+1))
	copy(b, e.value)
	old := b[place] & mask
	if b[place] &^= mask; words[3] == "1" {
		b[place] |= mask
	}
	e.value = string(b)
	c.process.keys[words[1]] = e
	return number(out, int(min(old, 1)))
}

// bitfield has the one form that ledgers use: KEY OVERFLOW SAT INCRBY u8 #N COUNT.
func bitfield(c *session, out []byte, words []string) []byte {
	if len(words) != 8 || !strings.EqualFold(strings.Join(words[2:6], " "), "OVERFLOW SAT INCRBY u8") {
		return fail(out, "ERR syntax error")
	}
	n, err := strconv.Atoi(strings.TrimPrefix(words[6], "#"))
	by, err2 := strconv.Atoi(words[7])
	if err != nil || err2 != nil || words[6][0] != '#' {
		return fail(out, "ERR bit offset is not an integer or out of range")
	}
	e, _ := c.process.find(words[1])
	b := make([]byte, max(len(e.value), n+1))
	copy(b, e.value)
	b[n] = byte(min(int(b[n])+by, 255))
	e.value = string(b)
	c.process.keys[words[1]] = e
	return number(head(out, '*', 1), int(b[n]))
}

func getbit(c *session, out []byte, words []string) []byte {
	e, _ := c.process.find(words[1])
	place, mask := bitAt(words)
	if place >= len(e.value) {
		return number(out, 0)
	}
	return number(out, int(min(e.value[place]&mask, 1)))
}

func bitAt(words []string) (place int, mask byte) {
	n, _ := strconv.Atoi(words[2])
	return n / 8, 1 << (7 - n%8)
}

func bitcount(c *session, out []byte, words []string) []byte {
	e, _ := c.process.find(words[1])
	n := 0
	for _, b := range []byte(e.value) {
		n += bits.OnesCount8(b)
	}
	return number(out, n)
}

func getrange(c *session, out []byte, words []string) []byte {
	e, _ := c.process.find(words[1])
	from, _ := strconv.Atoi(words[2])
	to, _ := strconv.Atoi(words[3])
	if from < 0 {
		from = max(0, from+len(e.value))
	}
	if to < 0 {
		to += len(e.value)
	}
	if to = min(to, len(e.value)-1); from > to {
		return bulk(out, "")
	}
	return bulk(out, e.value[from:to+1])
}

func bulk(out []byte, text string) []byte {
	return append(append(head(out, '$', len(text)), text...), "\r\n"...)
}

func strlen(c *session, out []byte, words []string) []byte {
	e, _ := c.process.find(words[1])
	return number(out, len(e.value))
}

func exists(c *session, out []byte, words []string) []byte {
	n := 0
	for _, key := range words[1:] {
		if _, there := c.process.find(key); there {
			n++
		}
	}
	return number(out, n)
}

func del(c *session, out []byte, words []string) []byte {
	n := 0
	for _, key := range words[1:] {
		if _, there := c.process.find(key); there {
			n++
			delete(c.process.keys, key)
		}
	}
	return number(out, n)
}

func expire(c *session, out []byte, words []string) []byte {
	e, there := c.process.find(words[1])
	if !there {
		return number(out, 0)
	}
	e.expires = time.Now().Add(life(words[0] == "PEXPIRE", words[2]))
	c.process.keys[words[1]] = e
	return number(out, 1)
}

func life(millis bool, text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	if millis {
		return time.Duration(n) * time.Millisecond
	}
	return time.Duration(n) * time.Second
}

func pttl(c *session, out []byte, words []string) []byte {
	switch e, there := c.process.find(words[1]); {
	case !there:
		return number(out, -2)
	case e.expires.IsZero():
		return number(out, -1)
	default:
		return number(out, int(time.Until(e.expires).Milliseconds()))
	}
}

func dbsize(c *session, out []byte, _ []string) []byte {
	for key := range c.process.keys {
		c.process.find(key) // deletes the key if it has expired
	}
	return number(out, len(c.process.keys))
}

// find is a key that has not expired. The caller holds the mutex, as for all below.
func (p *process) find(key string) (entry, bool) {
	e, ok := p.keys[key]
	if ok && !e.expires.IsZero() && !time.Now().Before(e.expires) {
		delete(p.keys, key)
		return entry{}, false
	}
	return e, ok
}

func number(out []byte, n int) []byte {
	return head(out, ':', n)
}

func head(out []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(out, kind), int64(n), 10), "\r\n"...)
}

func flushall(c *session, out []byte, words []string) []byte {
	clear(c.process.keys)
	return ok(c, out, words)
}

func ok(_ *session, out []byte, _ []string) []byte {
	return append(out, "+OK\r\n"...)
}
