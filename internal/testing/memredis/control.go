package memredis

import (
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

func hello(c *session, out []byte, words []string) []byte {
	version := c.version
	if len(words) > 1 {
		if version, _ = strconv.Atoi(words[1]); version != 2 && version != 3 {
			return fail(out, "NOPROTO unsupported protocol version")
		}
	}
	if len(words) > 4 && strings.EqualFold(words[2], "AUTH") {
		if refused := auth(c, nil, words[2:5]); refused[0] == '-' {
			return append(out, refused...)
		}
	}
	if !c.allowed {
		return fail(out,
			"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> "+
				"<pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	if c.version = version; version == 3 {
		out = head(out, '%', 7)
	} else {
		out = head(out, '*', 14)
	}
	role := "master"
	if c.server.state.readOnly() {
		role = "replica"
	}
	out = bulks(out, "server", "redis", "version", c.server.version(), "proto")
	out = bulk(number(out, version), "id")
	out = bulks(number(out, c.id), "mode", c.server.state.mode(), "role", role, "modules")
	return head(out, '*', 0)
}

func auth(c *session, out []byte, words []string) []byte {
	user, password := "default", words[len(words)-1]
	if len(words) > 2 {
		user = words[1]
	}
	switch own := c.server.options.Password; {
	case own == "" && len(words) == 2:
		return fail(out,
			"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case user != "default", own != "" && password != own:
		return fail(out, "WRONGPASS invalid username-password pair or user is disabled.")
	}
	c.allowed = true
	return ok(c, out, words)
}

// settings are the defaults of the settings that there are.
var settings = map[string]string{
	"appendonly":                  "no",
	"appendfsync":                 "everysec",
	"busy-reply-threshold":        "5000",
	"cluster-node-timeout":        "15000",
	"dir":                         "/data",
	"hz":                          "10",
	"io-threads":                  "1",
	"io-threads-do-reads":         "no",
	"latency-monitor-threshold":   "0",
	"maxclients":                  "10000",
	"maxmemory":                   "0",
	"maxmemory-policy":            "noeviction",
	"min-replicas-max-lag":        "10",
	"min-replicas-to-write":       "0",
	"repl-backlog-size":           "1048576",
	"repl-diskless-sync":          "yes",
	"repl-timeout":                "60",
	"replica-priority":            "100",
	"replica-serve-stale-data":    "yes",
	"save":                        "",
	"slowlog-log-slower-than":     "10000",
	"slowlog-max-len":             "128",
	"stop-writes-on-bgsave-error": "yes",
	"timeout":                     "0",
}

// Set sets a setting, also for the processes after this one, as a configuration file does. It panics if there is no
// such setting.
func (s *Server) Set(name, value string) {
	if _, known := settings[name]; !known {
		panic("memredis has no setting " + name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config[name] = value; s.process != nil {
		s.process.config[name] = value
	}
}

// Setting is the present value of a setting; "" while no process runs.
func (s *Server) Setting(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return ""
	}
	return s.process.config[name]
}

// Settings are the present values of all settings; nil while no process runs.
func (s *Server) Settings() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	return maps.Clone(s.process.config)
}

// LoseChanges lets the connection break instead of the reply to every CONFIG SET that changes something, from now on.
func (s *Server) LoseChanges() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losesChanges = true
}

func config(c *session, out []byte, words []string) []byte {
	p := c.process
	switch strings.ToUpper(words[1]) {
	case "GET":
		if len(words) < 3 {
			return wrongNumber(out, "config|get")
		}
		var found []string
		for _, name := range slices.Sorted(maps.Keys(p.config)) {
			if slices.ContainsFunc(words[2:], func(pattern string) bool {
				matches, _ := path.Match(strings.ToLower(pattern), name)
				return matches
			}) {
				found = append(found, name, p.config[name])
			}
		}
		kind, count := byte('*'), len(found)
		if c.version == 3 {
			kind, count = '%', len(found)/2
		}
		return bulks(head(out, kind, count), found...)
	case "SET":
		return configSet(c, out, words)
	case "REWRITE":
		return fail(out, "ERR The server is running without a config file")
	case "RESETSTAT":
		clear(p.stats)
		return ok(c, out, words)
	}
	return unknownSubcommand(out, words)
}

// configSet sets all of its settings or none.
func configSet(c *session, out []byte, words []string) []byte {
	if len(words) < 4 || len(words)%2 != 0 {
		return wrongNumber(out, "config|set")
	}
	p, changed := c.process, false
	after := maps.Clone(p.config)
	for i := 2; i < len(words); i += 2 {
		name, value := strings.ToLower(words[i]), words[i+1]
		before, known := p.config[name]
		if !known {
			return fail(out, "ERR Unknown option or number of arguments for CONFIG SET - '%s'", words[i])
		}
		if name == "io-threads" && !c.server.changesThreads() {
			return fail(out, "ERR CONFIG SET failed (possibly related to argument '%s') - can't set immutable config", words[i])
		}
		if _, err := strconv.Atoi(settings[name]); err == nil {
			n, err := bytesOf(value)
			if err != nil {
				return fail(out,
					"ERR CONFIG SET failed (possibly related to argument '%s') - argument couldn't be parsed into an integer",
					words[i])
			}
			value = strconv.Itoa(n)
		}
		after[name] = value
		changed = changed || value != before
	}
	p.config = after
	c.hangsUp = changed && c.server.losesChanges
	return ok(c, out, words)
}

// changesThreads reports whether the number of I/O threads can be changed while the server runs: since Valkey 9.
func (s *Server) changesThreads() bool {
	major, _, _ := strings.Cut(s.version(), ".")
	n, _ := strconv.Atoi(major)
	return s.state.Name == "valkey" && n >= 9
}

// bytesOf is a number, with a unit as for memory or without.
func bytesOf(text string) (int, error) {
	digits := strings.TrimRight(strings.ToLower(text), "kmgb")
	n, err := strconv.Atoi(digits)
	unit, known := map[string]int{
		"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1_000_000, "mb": 1 << 20,
		"g": 1_000_000_000, "gb": 1 << 30,
	}[strings.ToLower(text)[len(digits):]]
	if err == nil && !known {
		err = strconv.ErrSyntax
	}
	return n * unit, err
}

func unknownSubcommand(out []byte, words []string) []byte {
	return fail(out, "ERR unknown subcommand '%s'. Try %s HELP.", words[1], words[0])
}

func client(c *session, out []byte, words []string) []byte {
	p := c.process
	switch strings.ToUpper(words[1]) {
	case "ID":
		return number(out, c.id)
	case "LIST":
		return bulk(out, p.list(c, words[2:]))
	case "KILL":
		return clientKill(c, out, words)
	case "PAUSE":
		return clientPause(c, out, words)
	case "UNPAUSE":
		p.pause.until, p.pause.writes = time.Time{}, false
		p.wake()
		return ok(c, out, words)
	// MAINT_NOTIFICATIONS is Redis Software's: a server without it lets go-redis wait for a mutex, in which a bubble has
	// no end
	case "SETINFO", "SETNAME", "NO-EVICT", "NO-TOUCH", "REPLY", "TRACKING", "MAINT_NOTIFICATIONS":
		return ok(c, out, words)
	}
	return unknownSubcommand(out, words)
}

// list is what CLIENT LIST shows: all connections are of type normal.
func (p *process) list(asking *session, words []string) string {
	if len(words) == 2 && strings.EqualFold(words[0], "TYPE") && !strings.EqualFold(words[1], "normal") {
		return ""
	}
	var text strings.Builder
	for _, other := range p.inOrder() {
		command := "NULL"
		if other.last != "" {
			command = other.last
		}
		if other == asking {
			command = "client|list"
		}
		fmt.Fprintf(&text, "id=%d addr=%s laddr=%s fd=8 name= age=%d idle=%d flags=N db=0 sub=0 psub=0 multi=-1 qbuf=26 "+
			"events=r cmd=%s user=default resp=%d\n", other.id, other.conn.RemoteAddr(), other.conn.LocalAddr(),
			int(time.Since(other.opened).Seconds()), int(time.Since(other.used).Seconds()), command, other.version)
	}
	return text.String()
}

func (p *process) inOrder() []*session {
	return slices.SortedFunc(maps.Keys(p.sessions), func(a, b *session) int { return a.id - b.id })
}

// clientKill closes connections by their type, which is normal for all, or by their ID.
func clientKill(c *session, out []byte, words []string) []byte {
	if len(words) < 4 {
		return fail(out, "ERR No such client")
	}
	itself, n := false, 0
	matches := func(*session) bool { return true }
	for i := 2; i+1 < len(words); i += 2 {
		switch value := words[i+1]; strings.ToUpper(words[i]) {
		case "SKIPME":
			itself = strings.EqualFold(value, "no")
		case "TYPE":
			matches = func(*session) bool { return strings.EqualFold(value, "normal") }
		case "ID":
			matches = func(other *session) bool { return fmt.Sprint(other.id) == value }
		default:
			return fail(out, "ERR syntax error")
		}
	}
	for other := range c.process.sessions {
		if !matches(other) || other == c && !itself {
			continue
		}
		if n++; other == c {
			c.hangsUp = true
			continue
		}
		_ = other.conn.Close()
		delete(c.process.sessions, other)
	}
	return number(out, n)
}

func clientPause(c *session, out []byte, words []string) []byte {
	if len(words) < 3 {
		return wrongNumber(out, "client|pause")
	}
	n, err := strconv.Atoi(words[2])
	if err != nil || n < 0 {
		return fail(out, "ERR timeout is not an integer or out of range")
	}
	p := c.process
	writes := len(words) > 3 && strings.EqualFold(words[3], "WRITE")
	until := time.Now().Add(time.Duration(n) * time.Millisecond)
	if time.Now().Before(p.pause.until) { // the later end and the stricter mode hold
		writes = writes && p.pause.writes
		if p.pause.until.After(until) {
			until = p.pause.until
		}
	}
	p.pause.until, p.pause.writes = until, writes
	p.wake()
	return ok(c, out, words)
}

func acl(c *session, out []byte, words []string) []byte {
	switch strings.ToUpper(words[1]) {
	case "WHOAMI":
		return bulk(out, "default")
	case "DRYRUN":
		if len(words) < 4 {
			return wrongNumber(out, "acl|dryrun")
		}
		if words[2] != "default" {
			return fail(out, "ERR User '%s' not found", words[2])
		}
		if !c.server.has(words[3]) {
			return fail(out, "ERR Command '%s' not found", words[3])
		}
		return ok(c, out, words)
	}
	return unknownSubcommand(out, words)
}

// has reports whether the server has a command.
func (s *Server) has(name string) bool {
	_, known := commands[strings.ToUpper(name)]
	switch strings.ToUpper(name) {
	case "SENTINEL":
		return s.state.Mode == "sentinel"
	case "BLPOP", "SCRIPT", "EVAL_RO", "CLUSTER":
		return true
	}
	return known
}

// several are the commands with more than one key, and how many words there are from one to the next.
var several = map[string]int{"MGET": 1, "MSET": 2, "EXISTS": 1, "DEL": 1, "UNLINK": 1}

// getKeys is COMMAND GETKEYS: a command has a key, as its second word, unless it is served before data is.
func getKeys(c *session, out []byte, words []string) []byte {
	name := strings.ToUpper(words[0])
	known, there := commands[name]
	switch {
	case !there || !c.server.has(name):
		return fail(out, "ERR Invalid command specified")
	case len(words) < known.least:
		return fail(out, "ERR Invalid number of arguments specified for command")
	case known.loading || known.least == 1 || name == "EVAL":
		return fail(out, "ERR The command has no key arguments")
	}
	keys := words[1:2:2]
	for i := 1 + several[name]; i > 1 && i < len(words); i += several[name] {
		keys = append(keys, words[i])
	}
	return bulks(head(out, '*', len(keys)), keys...)
}

func commandInfo(c *session, out []byte, words []string) []byte {
	if len(words) > 2 && strings.EqualFold(words[1], "GETKEYS") {
		return getKeys(c, out, words[2:])
	}
	if len(words) != 3 || !strings.EqualFold(words[1], "INFO") {
		return unknownSubcommand(out, append(words, "")[:2])
	}
	if out = head(out, '*', 1); !c.server.has(words[2]) {
		if c.version == 3 {
			return append(out, "_\r\n"...)
		}
		return append(out, "*-1\r\n"...)
	}
	return head(head(number(bulk(head(out, '*', 4), strings.ToLower(words[2])), -1), '*', 0), '*', 0)
}

func debug(c *session, out []byte, words []string) []byte {
	if strings.EqualFold(words[1], "SEGFAULT") {
		c.server.end(c.process)
		return out
	}
	return ok(c, out, words)
}

func shutdown(c *session, out []byte, _ []string) []byte {
	c.server.end(c.process)
	return out
}

func bgsave(_ *session, out []byte, words []string) []byte {
	if words[0] == "BGREWRITEAOF" {
		return append(out, "+Background append only file rewriting started\r\n"...)
	}
	return append(out, "+Background saving started\r\n"...)
}

// eval knows the scripts that return a number.
func eval(_ *session, out []byte, words []string) []byte {
	if n, is := strings.CutPrefix(words[1], "return "); is {
		if n, err := strconv.Atoi(n); err == nil {
			return number(out, n)
		}
	}
	return fail(out, "ERR Error compiling script (new function): memredis runs no such script")
}

func now(_ *session, out []byte, _ []string) []byte {
	at := time.Now()
	return bulks(head(out, '*', 2), fmt.Sprint(at.Unix()), fmt.Sprint(at.Nanosecond()/1000))
}

func replicaof(c *session, out []byte, words []string) []byte {
	is := &c.server.state
	if strings.EqualFold(words[1], "NO") && strings.EqualFold(words[2], "ONE") {
		is.Primary = ""
		return ok(c, out, words)
	}
	is.Primary, is.Link = net.JoinHostPort(words[1], words[2]), LinkUp
	return ok(c, out, words)
}

// failover changes the roles at once.
func failover(c *session, out []byte, words []string) []byte {
	s := c.server
	switch {
	case len(words) == 2 && strings.EqualFold(words[1], "ABORT"):
		return fail(out, "ERR No failover in progress.")
	case s.state.Primary != "":
		return fail(out, "ERR FAILOVER is not valid when server is a replica.")
	case len(s.replicas()) == 0:
		return fail(out, "ERR FAILOVER requires connected replicas.")
	case len(words) < 4 || !strings.EqualFold(words[1], "TO"):
		return fail(out, "ERR syntax error")
	}
	next := net.JoinHostPort(words[2], words[3])
	to := s.group.servers[next]
	if to == nil || to.state.Primary != s.address {
		return fail(out, "ERR FAILOVER target HOST and PORT is not a replica.")
	}
	to.state.Primary, s.state.Primary, s.state.Link = "", next, LinkUp
	return ok(c, out, words)
}

// cluster is that of a node which has met no other: what a test needs of others it scripts.
func cluster(c *session, out []byte, words []string) []byte {
	s := c.server
	if s.state.Mode != "cluster" {
		return fail(out, "ERR This instance has cluster support disabled")
	}
	switch strings.ToUpper(words[1]) {
	case "MYID":
		return bulk(out, s.nodeID())
	case "NODES":
		_, port, _ := net.SplitHostPort(s.address)
		n, _ := strconv.Atoi(port)
		return bulk(out, fmt.Sprintf("%s :%d@%d myself,master - 0 0 0 connected\n", s.nodeID(), n, n+10000))
	case "INFO":
		return bulk(out, "cluster_state:fail\r\ncluster_slots_assigned:0\r\ncluster_slots_ok:0\r\ncluster_slots_pfail:0\r\n"+
			"cluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\ncluster_current_epoch:0\r\n"+
			"cluster_my_epoch:0\r\ncluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\n"+
			"total_cluster_links_buffer_limit_exceeded:0\r\n")
	}
	return unknownSubcommand(out, words)
}
