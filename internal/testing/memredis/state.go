package memredis

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// Version is the version in INFO and HELLO, unless State has another.
const Version = "7.4.2"

// Link is the state of a replica's connection to its primary.
type Link int

// The states of a link.
const (
	LinkUp      Link = iota // the zero value: it receives all writes
	LinkLost                // it was up before
	LinkSyncing             // it was up before, and the replica copies the whole data set
	LinkNever               // it was never up
)

// State is what a server is. The zero value is a primary of its own. What INFO, ROLE, HELLO and CLUSTER reply follows
// from it, so that they agree as those of a real server do.
type State struct {
	Name      string    // "" = redis; valkey
	Version   string    // "" = Version
	Mode      string    // "" = standalone; cluster or sentinel
	RunID     string    // "" = another for each process
	Primary   string    // host:port that it replicates from; "" = none: it is a primary
	Active    bool      // of KeyDB, with active-replica: it replicates, and takes writes
	Link      Link      // to its primary
	Replicas  []Replica // nil = the running servers of its group that replicate from it
	FullSyncs int       // sync_full
	Offset    int       // 0 = that of the commands so far
	Failover  string    // master_failover_state; "" = no-failover
	Loading   bool      // it loads its data, and refuses most commands
	Appends   bool      // it has an append-only file
	Saved     bool      // it has loaded a snapshot
}

// Replica is a replica in the list of its primary.
type Replica struct {
	Address string
	State   string // "" = online; wait_bgsave, send_bulk
	Offset  int
	Lag     int // seconds since its last acknowledgement
}

// Change changes what a server is. It stays so over restarts.
func (s *Server) Change(change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
}

// State is what the server is.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// SetReadOnly makes the server a replica, which refuses writes, or a primary again.
func (s *Server) SetReadOnly(on bool) {
	s.Change(func(is *State) {
		if is.Primary = ""; on {
			is.Primary = "127.0.0.1:1"
		}
	})
}

// SetLoading makes the server refuse commands as Redis does while it loads its data, or serve them again.
func (s *Server) SetLoading(on bool) {
	s.Change(func(is *State) { is.Loading = on })
}

// SetMemory sets maxmemory, in bytes, and maxmemory-policy. The server evicts nothing by itself: see Evict.
func (s *Server) SetMemory(limit int, policy string) {
	s.Set("maxmemory", fmt.Sprint(limit))
	s.Set("maxmemory-policy", policy)
}

func (s *State) readOnly() bool {
	return s.Primary != "" && !s.Active
}

// runID identifies the process among those of all servers.
func (s *Server) runID() string {
	return cmp.Or(s.state.RunID, fmt.Sprintf("%040x", sha1.Sum(fmt.Append(nil, s.address, s.runs))))
}

// nodeID is the server's as a node of a cluster.
func (s *Server) nodeID() string {
	return fmt.Sprintf("%040x", sha1.Sum([]byte(s.address)))
}

// replicas are those that a primary lists.
func (s *Server) replicas() []Replica {
	if s.state.Replicas != nil {
		return s.state.Replicas
	}
	var all []Replica
	for _, address := range slices.Sorted(maps.Keys(s.group.servers)) {
		other := s.group.servers[address]
		if other.process != nil && other.state.Primary == s.address && other.state.Link == LinkUp {
			all = append(all, Replica{Address: address, Offset: s.offset()})
		}
	}
	return all
}

func (s *Server) offset() int {
	if s.state.Offset == 0 && s.process != nil {
		return s.process.served
	}
	return s.state.Offset
}

// mode is Mode, as INFO and HELLO name it.
func (s *State) mode() string {
	return cmp.Or(s.Mode, "standalone")
}

// section is a part of INFO.
type section struct {
	name string
	more bool // not among the default ones
	text func(*Server, *process) string
}

var sections = []section{
	{"Server", false, (*Server).infoServer},
	{"Clients", false, func(_ *Server, p *process) string {
		return fmt.Sprintf("connected_clients:%d\r\nmaxclients:%s\r\nblocked_clients:0\r\n", len(p.sessions),
			p.config["maxclients"])
	}},
	{"Memory", false, func(_ *Server, p *process) string {
		memory := 1 << 20
		for key, e := range p.keys {
			memory += len(key) + len(e.value) + 64
		}
		return fmt.Sprintf("used_memory:%d\r\nused_memory_rss:%d\r\nmaxmemory:%s\r\nmaxmemory_policy:%s\r\n", memory, memory,
			p.config["maxmemory"], p.config["maxmemory-policy"])
	}},
	{"Persistence", false, func(s *Server, p *process) string {
		loaded := 0
		if s.state.Saved {
			loaded = 1
		}
		return fmt.Sprintf("loading:%d\r\nrdb_bgsave_in_progress:0\r\nrdb_last_save_time:%d\r\nrdb_last_bgsave_status:ok\r\n"+
			"rdb_last_bgsave_time_sec:%d\r\nrdb_saves:%d\r\nrdb_last_cow_size:0\r\nrdb_last_load_keys_loaded:%d\r\n"+
			"aof_enabled:%d\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_rewrite_time_sec:-1\r\n"+
			"aof_last_bgrewrite_status:ok\r\naof_rewrites:%d\r\naof_last_cow_size:0\r\nmodule_fork_in_progress:0\r\n",
			digit(s.state.Loading), p.began.Unix(), min(0, p.did("bgsave")-1), p.did("bgsave"), loaded,
			digit(s.state.Appends), p.did("bgrewriteaof"))
	}},
	{"Stats", false, func(s *Server, p *process) string {
		forks := p.did("bgsave") + p.did("bgrewriteaof")
		return fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\nrejected_connections:0\r\n"+
			"sync_full:%d\r\nsync_partial_ok:0\r\nsync_partial_err:0\r\nexpired_keys:0\r\nevicted_keys:%d\r\n"+
			"latest_fork_usec:%d\r\ntotal_forks:%d\r\nio_threaded_reads_processed:0\r\nio_threaded_writes_processed:0\r\n",
			p.clients, p.served, s.state.FullSyncs, p.evicted, 100*min(1, forks), forks)
	}},
	{"Replication", false, (*Server).infoReplication},
	{"CPU", false, func(_ *Server, p *process) string {
		busy := p.busy.Seconds()
		return fmt.Sprintf("used_cpu_sys:0.000000\r\nused_cpu_user:%f\r\nused_cpu_sys_main_thread:0.000000\r\n"+
			"used_cpu_user_main_thread:%f\r\n", busy, busy)
	}},
	{"Commandstats", true, func(_ *Server, p *process) string {
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(p.stats)) {
			st := p.stats[name]
			fmt.Fprintf(&text, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=0,failed_calls=0\r\n", name,
				st.calls, st.took.Microseconds(), float64(st.took.Microseconds())/float64(st.calls))
		}
		return text.String()
	}},
	{"Cluster", false, func(s *Server, _ *process) string {
		return fmt.Sprintf("cluster_enabled:%d\r\n", digit(s.state.Mode == "cluster"))
	}},
	{"Keyspace", false, func(_ *Server, p *process) string {
		expires := 0
		for key, e := range p.keys {
			if p.find(key); !e.expires.IsZero() {
				expires++
			}
		}
		if len(p.keys) == 0 {
			return ""
		}
		return fmt.Sprintf("db0:keys=%d,expires=%d,avg_ttl=0\r\n", len(p.keys), expires)
	}},
}

// digit is how INFO shows a bool.
func digit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// info replies to INFO: the default sections, the named ones, or all of them.
func info(c *session, out []byte, words []string) []byte {
	asked := map[string]bool{}
	for _, word := range words[1:] {
		asked[strings.ToLower(word)] = true
	}
	whole := asked["all"] || asked["everything"]
	defaults := len(words) == 1 || asked["default"]
	var parts []string
	for _, one := range sections {
		if whole || asked[strings.ToLower(one.name)] || defaults && !one.more {
			parts = append(parts, "# "+one.name+"\r\n"+one.text(c.server, c.process))
		}
	}
	return bulk(out, strings.Join(parts, "\r\n"))
}

func (s *Server) infoServer(p *process) string {
	name := ""
	if s.state.Name == "valkey" {
		name = fmt.Sprintf("server_name:valkey\r\nvalkey_version:%s\r\n", s.version())
	}
	version := s.version()
	if name != "" {
		version = "7.2.4" // the Redis from which Valkey was forked
	}
	_, port, _ := net.SplitHostPort(s.address)
	return fmt.Sprintf("redis_version:%s\r\n%sredis_mode:%s\r\nrun_id:%s\r\ntcp_port:%s\r\nserver_time_usec:%d\r\n"+
		"uptime_in_seconds:%d\r\nhz:%s\r\nconfig_file:\r\n", version, name, s.state.mode(), s.runID(), port,
		time.Now().UnixMicro(), int(time.Since(p.began).Seconds()), p.config["hz"])
}

func (s *Server) version() string {
	return cmp.Or(s.state.Version, Version)
}

func (s *Server) infoReplication(p *process) string {
	is := &s.state
	text := "role:master\r\n"
	if is.Primary != "" {
		word := "slave"
		if is.Active {
			word = "active-replica"
		}
		host, port, _ := net.SplitHostPort(is.Primary)
		status := "up"
		if is.Link != LinkUp {
			status = "down"
		}
		text = fmt.Sprintf("role:%s\r\nmaster_host:%s\r\nmaster_port:%s\r\nmaster_link_status:%s\r\n"+
			"master_last_io_seconds_ago:0\r\nmaster_sync_in_progress:%d\r\nslave_read_repl_offset:%d\r\n"+
			"slave_repl_offset:%d\r\n", word, host, port, status, digit(is.Link == LinkSyncing), s.offset(), s.offset())
		switch is.Link {
		case LinkUp:
		case LinkNever:
			text += "master_link_down_since_seconds:-1\r\n"
		default:
			text += "master_link_down_since_seconds:5\r\n"
		}
		text += fmt.Sprintf("slave_priority:%s\r\nslave_read_only:%d\r\n", p.config["replica-priority"], digit(!is.Active))
	}
	list := s.replicas()
	text += fmt.Sprintf("connected_slaves:%d\r\n", len(list))
	for i, r := range list {
		host, port, _ := net.SplitHostPort(r.Address)
		text += fmt.Sprintf("slave%d:ip=%s,port=%s,state=%s,offset=%d,lag=%d\r\n", i, host, port, cmp.Or(r.State, "online"),
			r.Offset, r.Lag)
	}
	if !strings.HasPrefix(s.version(), "6.0") && s.version()[0] >= '6' {
		text += fmt.Sprintf("master_failover_state:%s\r\n", cmp.Or(is.Failover, "no-failover"))
	}
	return text + fmt.Sprintf("master_repl_offset:%d\r\n", s.offset())
}

func role(c *session, out []byte, _ []string) []byte {
	s := c.server
	if s.state.readOnly() {
		host, port, _ := net.SplitHostPort(s.state.Primary)
		out = bulks(head(out, '*', 5), "slave", host)
		link := map[Link]string{LinkUp: "connected", LinkSyncing: "sync"}[s.state.Link]
		return number(bulk(append(append(append(out, ':'), port...), "\r\n"...), cmp.Or(link, "connect")), s.offset())
	}
	list := s.replicas()
	out = head(number(bulk(head(out, '*', 3), "master"), s.offset()), '*', len(list))
	for _, r := range list {
		host, port, _ := net.SplitHostPort(r.Address)
		out = bulks(head(out, '*', 3), host, port, fmt.Sprint(r.Offset))
	}
	return out
}
