package fault_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// fakeRedis is a server in memory that supports the commands which faults send.
type fakeRedis struct {
	runID   string
	primary string // host:port that it replicates from; "" = it is a primary
	config  map[string]string
	clients []int // ids of normal clients
	paused  bool  // writes are
	hung    bool  // until settle
	calls   map[string]int
	dead    bool // until its container is restarted
}

// fakeServers are the servers of a test, by address.
type fakeServers struct {
	mu      sync.Mutex
	servers map[string]*fakeRedis
	queues  map[string]string // address by key
	broken  []string          // what cannot be reverted, in order
	refuse  error             // of every command that changes something
}

var errRefused = errors.New("connection refused")

func (f *fakeServers) at(ctx context.Context, address string) (*fakeRedis, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, ok := f.servers[address]
	if !ok || r.dead {
		return nil, errRefused
	}
	if r.hung || f.queuedAt(address) {
		return nil, context.DeadlineExceeded
	}
	return r, nil
}

func (f *fakeServers) queuedAt(address string) bool {
	return slices.Contains(slices.Collect(maps.Values(f.queues)), address)
}

func (f *fakeServers) note(what string, words ...any) {
	f.broken = append(f.broken, fmt.Sprintf(what, words...))
}

func (f *fakeServers) Ask(ctx context.Context, address string, login redis.Login) (topology.Server, error) {
	reply, err := f.Do(ctx, address, login, "INFO")
	text, _ := reply.(string)
	return topology.ServerOf(address, redis.ParseInfo(text)), err
}

func (f *fakeServers) Shutdown(ctx context.Context, address string, _ redis.Login) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.at(ctx, address)
	if err = errors.Join(err, f.refuse); err != nil {
		return err
	}
	f.note("shutdown %s", address)
	r.dead = true
	return nil
}

func (f *fakeServers) Segfault(ctx context.Context, address string, login redis.Login) error {
	return f.Shutdown(ctx, address, login)
}

func (f *fakeServers) Queue(ctx context.Context, key, address string, _ redis.Login, _ [][]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queues[key] != "" {
		return nil
	}
	if _, err := f.at(ctx, address); err != nil || f.refuse != nil {
		return errors.Join(err, f.refuse)
	}
	f.queues[key] = address
	return nil
}

func (f *fakeServers) Queued(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queues[key] != ""
}

func (f *fakeServers) HangUp(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.queues, key)
}

// withSubcommands are the commands of which a server counts each subcommand.
var withSubcommands = []string{
	"ACL", "CLIENT", "CLUSTER", "CONFIG", "FUNCTION", "LATENCY", "MEMORY", "SCRIPT",
	"SLOWLOG",
}

func (f *fakeServers) Do(ctx context.Context, address string, _ redis.Login, command ...any) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.at(ctx, address)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(fmt.Sprintln(command...))
	name := strings.ToUpper(words[0])
	if len(words) > 1 && slices.Contains(withSubcommands, name) {
		name += " " + strings.ToUpper(words[1])
	}
	r.calls[name]++
	switch name {
	case "PING":
		return "PONG", nil
	case "TIME":
		return []any{"0", "0"}, nil
	case "ACL DRYRUN", "CONFIG REWRITE":
		return "OK", nil
	case "INFO":
		return f.info(address, r), nil
	case "CONFIG GET":
		var pairs []any
		for _, name := range words[2:] {
			if value, ok := r.config[name]; ok {
				pairs = append(pairs, name, value)
			}
		}
		return pairs, nil
	case "CONFIG SET":
		if f.refuse != nil {
			return nil, f.refuse
		}
		for i := 2; i+1 < len(words); i += 2 {
			r.config[words[i]] = words[i+1]
		}
		return "OK", nil
	case "EVAL", "PUBLISH":
		if r.paused {
			return nil, context.DeadlineExceeded
		}
		return int64(0), nil
	}
	if f.refuse != nil && name != "CLIENT LIST" {
		return nil, f.refuse
	}
	return f.breaking(address, r, name, words)
}

// breaking executes the commands that faults inject. One without a case breaks something, and INFO counts it: a query
// needs a case in Do.
func (f *fakeServers) breaking(address string, r *fakeRedis, name string, words []string) (any, error) {
	switch name {
	case "CLIENT PAUSE":
		r.paused = true
		return "OK", nil
	case "CLIENT UNPAUSE":
		r.paused = false
		return "OK", nil
	case "CLIENT LIST":
		text := "id=1000 addr=10.0.9.9:1 name= idle=0 flags=N cmd=client|list\n"
		for _, id := range r.clients {
			text += fmt.Sprintf("id=%d addr=10.0.0.50:%d name= idle=0 flags=N cmd=get\n", id, id)
		}
		return text, nil
	case "CLIENT KILL":
		n := len(r.clients)
		r.clients = []int{2000 + r.calls[name]} // they reconnect
		f.note("client kill at %s", address)
		return int64(n), nil
	case "BGSAVE":
		f.note("fork at %s", address)
		return "Background saving started", nil
	case "DEBUG":
		if words[2] != "0.000" {
			f.note("hang at %s", address)
			r.hung = true
			return nil, context.DeadlineExceeded
		}
		return "OK", nil
	case "FAILOVER":
		if strings.EqualFold(words[1], "ABORT") {
			return nil, redis.Error("ERR No failover in progress.")
		}
		next := words[2] + ":" + words[3]
		f.note("failover to %s", next)
		f.servers[next].primary, r.primary = "", next
		return "OK", nil
	case "REPLICAOF":
		r.primary = words[1] + ":" + words[2]
		return "OK", nil
	}
	f.note("%s at %s", strings.ToLower(strings.Join(words, " ")), address)
	return "OK", nil
}

// info is the reply of INFO everything.
func (f *fakeServers) info(address string, r *fakeRedis) string {
	lines := []string{
		"redis_version:7.2.4", "redis_mode:standalone", "run_id:" + r.runID, "config_file:", "used_memory:1000000",
		"used_memory_rss:1000000",
		fmt.Sprintf("total_forks:%d", r.calls["BGSAVE"]), fmt.Sprintf("rdb_saves:%d", r.calls["BGSAVE"]),
		"latest_fork_usec:100", "rdb_last_bgsave_status:ok",
		fmt.Sprintf("total_connections_received:%d", 10+r.calls["CLIENT KILL"]), "aof_enabled:1",
		"master_failover_state:no-failover",
		fmt.Sprintf("cmdstat_debug:calls=%d,usec=%d", r.calls["DEBUG"],
			3_000_000*strings.Count(strings.Join(f.broken, " "), "hang at "+address)),
		"io_threaded_reads_processed:5", "io_threaded_writes_processed:5", "total_commands_processed:100000",
		"db0:keys=1,expires=0",
	}
	for name, calls := range r.calls {
		if name != "DEBUG" { // with its time
			lines = append(lines, fmt.Sprintf("cmdstat_%s:calls=%d,usec=1", strings.ReplaceAll(strings.ToLower(name), " ", "|"),
				calls))
		}
	}
	if r.primary != "" {
		host, port, _ := strings.Cut(r.primary, ":")
		return strings.Join(append(lines, "role:slave", "master_host:"+host, "master_port:"+port, "master_link_status:up",
			"master_sync_in_progress:0"), "\r\n")
	}
	lines = append(lines, "role:master")
	n := 0
	for _, at := range slices.Sorted(maps.Keys(f.servers)) {
		if other := f.servers[at]; other.primary == address && !other.dead {
			host, port, _ := strings.Cut(at, ":")
			lines = append(lines, fmt.Sprintf("slave%d:ip=%s,port=%s,state=online,offset=1,lag=0", n, host, port))
			n++
		}
	}
	return strings.Join(append(lines, fmt.Sprintf("connected_slaves:%d", n)), "\r\n")
}
