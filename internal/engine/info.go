package engine

import (
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

// parseInfo reads INFO's text. What the server does not tell stays zero. Valkey names itself in server_name and keeps redis_version at
// the Redis it forked from, so valkey_version goes first.
func parseInfo(text string) record.Server {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(line, "#") {
			fields[name] = value
		}
	}
	integer := func(name string) int64 {
		n, _ := strconv.ParseInt(fields[name], 10, 64) // absent or strange: 0, as documented
		return n
	}
	seconds := func(name string) float64 {
		x, _ := strconv.ParseFloat(fields[name], 64)
		return x
	}
	s := record.Server{
		RunID: fields["run_id"], Name: "redis", Version: fields["redis_version"], Mode: fields["redis_mode"], Role: fields["role"],
		UptimeSeconds: integer("uptime_in_seconds"), Loading: integer("loading") != 0,
		CPUSeconds:           seconds("used_cpu_sys") + seconds("used_cpu_user"),
		CPUMainThreadSeconds: seconds("used_cpu_sys_main_thread") + seconds("used_cpu_user_main_thread"),
		UsedMemory:           integer("used_memory"), UsedMemoryRSS: integer("used_memory_rss"),
		MaxMemory: integer("maxmemory"), MaxMemoryPolicy: fields["maxmemory_policy"],
		ConnectedClients: integer("connected_clients"), RejectedConnections: integer("rejected_connections"),
		EvictedKeys: integer("evicted_keys"), ExpiredKeys: integer("expired_keys"), CommandsProcessed: integer("total_commands_processed"),
		AOFEnabled: integer("aof_enabled") != 0, AOFDelayedFsync: integer("aof_delayed_fsync"),
		BlockedClients: integer("blocked_clients"), MaxClients: integer("maxclients"),
		TotalReads: integer("total_reads_processed"), TotalWrites: integer("total_writes_processed"),
		IOThreadedReads: integer("io_threaded_reads_processed"), IOThreadedWrites: integer("io_threaded_writes_processed"),
		InstantaneousOps: integer("instantaneous_ops_per_sec"), LatestForkMicros: integer("latest_fork_usec"),
	}
	if _, count, ok := strings.Cut(fields["errorstat_OOM"], "count="); ok {
		s.OOMErrors, _ = strconv.ParseInt(count, 10, 64)
	}
	if v := fields["valkey_version"]; v != "" {
		s.Name, s.Version = "valkey", v
	}
	if n := fields["server_name"]; n != "" {
		s.Name = n
	}
	if mode := fields["server_mode"]; s.Mode == "" {
		s.Mode = mode
	}
	return s
}

// slowest reads SLOWLOG GET's reply. Entries with a number below next were told in an earlier reading; it returns the number that comes next.
func slowest(v resp.Value, next int64) (record.SlowLog, int64) {
	log := record.SlowLog{Total: next}
	for _, entry := range v.Items {
		if len(entry.Items) < 4 {
			continue
		}
		id, micros := wholeNumber(entry.Items[0]), wholeNumber(entry.Items[2])
		log.Total = max(log.Total, id+1)
		if id < next || micros <= log.WorstMicros {
			continue
		}
		log.WorstMicros = micros
		if words := entry.Items[3].Items; len(words) > 0 {
			log.Command = strings.ToUpper(bounded(words[0].Text))
		}
	}
	return log, log.Total
}

// latencyEvents reads LATENCY LATEST's reply.
func latencyEvents(v resp.Value) []record.LatencyEvent {
	var events []record.LatencyEvent
	for _, e := range v.Items {
		if len(e.Items) < 4 || len(events) == record.MaxLatencyEvents {
			continue
		}
		events = append(events, record.LatencyEvent{
			Name: bounded(e.Items[0].Text), Unix: wholeNumber(e.Items[1]), LatestMillis: wholeNumber(e.Items[2]), MaxMillis: wholeNumber(e.Items[3]),
		})
	}
	return events
}

// configValue is the value in the reply to CONFIG GET of one parameter: a list, or with RESP3 a map.
func configValue(v resp.Value) string {
	if len(v.Items) < 2 {
		return ""
	}
	return bounded(v.Items[1].Text)
}

func wholeNumber(v resp.Value) int64 {
	n, _ := strconv.ParseInt(v.Text, 10, 64) // strange: 0
	return n
}

// bounded is a server's word, cut to what a record has room for.
func bounded(text string) string { return text[:min(len(text), 64)] }
