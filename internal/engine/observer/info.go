package observer

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// slowLogOf reads the reply of SLOWLOG GET at an instant. Entries with an ID below next were part
// of an earlier reading. It returns the next ID.
func slowLogOf(v resp.Value, next, at int64) (record.SlowLog, int64) {
	log := record.SlowLog{Total: next}
	var commands []record.SlowCommand
	for _, entry := range v.Items {
		if len(entry.Items) < 4 {
			continue
		}
		id := integer(entry.Items[0])
		log.Total = max(log.Total, id+1)
		words := entry.Items[3].Items
		if id >= next && len(words) > 0 {
			commands = append(commands, record.SlowCommand{
				Command:     strings.ToUpper(truncate(words[0].Text)),
				Count:       1,
				WorstMicros: integer(entry.Items[2]),
				At:          at,
			})
		}
	}
	log.Commands = record.MergeSlow(commands, nil)
	return log, log.Total
}

// allNew reports whether no entry of a reply of SLOWLOG GET was part of an earlier reading, so that
// there may be more new ones.
func allNew(v resp.Value, next int64) bool {
	return len(v.Items) > 0 && !slices.ContainsFunc(v.Items, func(entry resp.Value) bool {
		return len(entry.Items) == 0 || integer(entry.Items[0]) < next
	})
}

// latencyEvents reads the reply of LATENCY LATEST.
func latencyEvents(v resp.Value) []record.LatencyEvent {
	var events []record.LatencyEvent
	for _, e := range v.Items {
		if len(e.Items) < 4 || len(events) == record.MaxLatencyEvents {
			continue
		}
		events = append(events, record.LatencyEvent{
			Name:         truncate(e.Items[0].Text),
			Unix:         integer(e.Items[1]),
			LatestMillis: integer(e.Items[2]),
			MaxMillis:    integer(e.Items[3]),
		})
	}
	return events
}

// configValue returns the value from the reply to CONFIG GET of one parameter: a list, or a map in
// RESP3.
func configValue(v resp.Value) string {
	if len(v.Items) < 2 {
		return ""
	}
	return truncate(v.Items[1].Text)
}

func integer(v resp.Value) int64 {
	n, _ := strconv.ParseInt(v.Text, 10, 64) // 0 if it is not a number
	return n
}

// truncate limits text from a server to the length that a record allows.
func truncate(text string) string {
	return text[:min(len(text), 64)]
}

// ReadInfo reads INFO. The caller sets At.
func ReadInfo(ctx context.Context, c *redis.Conn) (record.Server, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return record.Server{}, err
	}
	s := serverFromInfo(info)
	s.Address = c.RemoteAddr()
	return s, nil
}

// serverFromInfo converts INFO. Fields that are missing stay zero.
func serverFromInfo(info redis.Info) record.Server {
	s := record.Server{
		RunID:         info["run_id"],
		Name:          info.Name(),
		Version:       info.Version(),
		Mode:          info.Mode(),
		Role:          info["role"],
		UptimeSeconds: info.Int("uptime_in_seconds"),
		Loading:       info.On("loading"),
		CPUSeconds:    info.Float("used_cpu_sys") + info.Float("used_cpu_user"),
		CPUMainThreadSeconds: info.Float("used_cpu_sys_main_thread") +
			info.Float("used_cpu_user_main_thread"),
		UsedMemory:          info.Int("used_memory"),
		UsedMemoryRSS:       info.Int("used_memory_rss"),
		MaxMemory:           info.Int("maxmemory"),
		MaxMemoryPolicy:     info["maxmemory_policy"],
		ConnectedClients:    info.Int("connected_clients"),
		RejectedConnections: info.Int("rejected_connections"),
		EvictedClients:      info.Int("evicted_clients"),
		BufferedClients:     info.Int("client_output_buffer_limit_disconnections"),
		QueryingClients:     info.Int("client_query_buffer_limit_disconnections"),
		EvictedKeys:         info.Int("evicted_keys"),
		ExpiredKeys:         info.Int("expired_keys"),
		CommandsProcessed:   info.Int("total_commands_processed"),
		AOFEnabled:          info.On("aof_enabled"),
		AOFDelayedFsync:     info.Int("aof_delayed_fsync"),
		AOFSize:             info.Int("aof_current_size"),
		BlockedClients:      info.Int("blocked_clients"),
		MaxClients:          info.Int("maxclients"),
		TotalReads:          info.Int("total_reads_processed"),
		TotalWrites:         info.Int("total_writes_processed"),
		IOThreadedReads:     info.Int("io_threaded_reads_processed"),
		IOThreadedWrites:    info.Int("io_threaded_writes_processed"),
		NetInput:            info.Int("total_net_input_bytes"),
		NetOutput:           info.Int("total_net_output_bytes"),
		FullSyncs:           info.Int("sync_full"),
		PartialSyncs:        info.Int("sync_partial_ok"),
		Replicas:            info.Int("connected_slaves"),
		SyncedReplicas:      syncedReplicas(info),
		PrimaryLink:         primaryLink(info),
		InstantaneousOps:    info.Int("instantaneous_ops_per_sec"),
		LatestForkMicros:    info.Int("latest_fork_usec"),
	}
	s.OOMErrors, _ = strconv.ParseInt(info.Pairs("errorstat_OOM")["count"], 10, 64)
	s.MisconfErrors, _ = strconv.ParseInt(info.Pairs("errorstat_MISCONF")["count"], 10, 64)
	return s
}

// syncedReplicas counts the replicas of a primary that have its data and follow.
func syncedReplicas(info redis.Info) (n int64) {
	for i := range info.Int("connected_slaves") {
		replica, ok := info["slave"+strconv.FormatInt(i, 10)]
		if !ok {
			break // the count of a hostile server has no bound
		}
		if strings.Contains(replica, "state=online") {
			n++
		}
	}
	return n
}

// primaryLink returns the state of a replica's link to its primary; 0 for a primary.
func primaryLink(info redis.Info) int64 {
	switch info["master_link_status"] {
	case "":
		return 0
	case "up":
		return record.LinkUp
	}
	return record.LinkDown
}
