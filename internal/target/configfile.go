package target

import (
	"context"
	"strings"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Tally is what a process has counted since its start, or since a CONFIG RESETSTAT. Redis shows in
// no other way that its configuration file was rewritten, and anyone may reset the count; but not
// without a trace.
type Tally struct {
	Rewrites int64 `json:"rewrites"` // CONFIG REWRITEs that succeeded
	Commands int64 `json:"commands"` // all commands
	// Calls are the numbers of calls of commands that hardly anybody but an operator sends, by name.
	// The check of the target has just sent some. After a reset they are lower, and remain so for
	// long.
	Calls map[string]int64 `json:"calls"`
	// Reset is how long the last CONFIG RESETSTAT took, in microseconds; "" = there was none. The
	// command counts itself once it has reset everything.
	Reset string `json:"reset,omitempty"`
}

// TallyOf reads a tally from INFO; nil where the server does not count subcommands, as before Redis
// 7.
func TallyOf(info redis.Info) *Tally {
	t := &Tally{Commands: info.Int("total_commands_processed"), Calls: map[string]int64{}}
	counts := false
	for field := range info {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok || !strings.HasPrefix(name, "config|") && !strings.HasPrefix(name, "acl|") {
			continue
		}
		stat, _ := info.Command(name)
		t.Calls[name] = stat.Calls
		counts = counts || strings.HasPrefix(name, "config|")
	}
	if !counts {
		return nil
	}
	stat, _ := info.Command("config|rewrite")
	t.Rewrites = stat.Calls - stat.Failed
	t.Reset = info.Pairs("cmdstat_config|resetstat")["usec"]
	return t
}

// resetBefore reports whether the counts of a process were reset between two tallies of it.
func (t *Tally) resetBefore(now *Tally) bool {
	if now.Reset != t.Reset || now.Commands < t.Commands {
		return true
	}
	for name, calls := range t.Calls {
		if now.Calls[name] < calls {
			return true
		}
	}
	return false
}

// FileState is what is known of a server's configuration file.
type FileState int

// The states.
const (
	FileUntouched FileState = iota // it was not rewritten, or there is none
	// a CONFIG REWRITE has written to it what the server had then, as Sentinel does on every server
	// that it makes a replica
	FileRewritten
	FileInDoubt // it may have been rewritten
)

// Why a configuration file is in doubt.
const (
	DoubtReset     = "CONFIG RESETSTAT was sent meanwhile, before which a CONFIG REWRITE cannot be seen"
	DoubtUncounted = "this server does not count CONFIG REWRITE"
)

// FileSince determines from INFO of a process what is known of its configuration file since a tally
// of the same process, nil where it did not count; and why it is in doubt.
func (r Redis) FileSince(before *Tally, info redis.Info) (state FileState, doubt string) {
	if info["config_file"] == "" {
		return FileUntouched, ""
	}
	now := TallyOf(info)
	switch {
	case before == nil || now == nil:
		if len(r.Sentinels.Addresses) > 0 { // assume that they rewrote it
			return FileRewritten, ""
		}
		return FileInDoubt, DoubtUncounted
	case before.resetBefore(now):
		if now.Rewrites > 0 {
			return FileRewritten, ""
		}
		return FileInDoubt, DoubtReset
	case now.Rewrites > before.Rewrites:
		return FileRewritten, ""
	}
	return FileUntouched, ""
}

// RewriteFile makes a server write its present settings to its configuration file. It does nothing
// where the server has none that it can write.
func (r Redis) RewriteFile(ctx context.Context, address string) error {
	_, err := r.send(ctx, address, "CONFIG", "REWRITE")
	if err == nil || !redis.IsReply(err) {
		return err
	}
	for _, fine := range []string{
		"running without a config file", "Read-only file system",
		"Permission denied",
	} {
		if strings.Contains(err.Error(), fine) {
			return nil
		}
	}
	return err
}

// Info reads INFO of a server: the default sections, or the named one.
func (r Redis) Info(ctx context.Context, address string, section ...string) (redis.Info, error) {
	return r.readInfo(ctx, address, append([]string{"INFO"}, section...))
}

// ClusterInfo reads CLUSTER INFO of a node.
func (r Redis) ClusterInfo(ctx context.Context, address string) (redis.Info, error) {
	return r.readInfo(ctx, address, []string{"CLUSTER", "INFO"})
}

func (r Redis) readInfo(ctx context.Context, address string, command []string) (redis.Info, error) {
	reply, err := r.send(ctx, address, command...)
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	return redis.ParseInfo(text), nil
}

// Settings reads settings of a server by one CONFIG GET. A server before Redis 7 accepts only one
// name.
func (r Redis) Settings(
	ctx context.Context, address string, names ...string,
) (map[string]string, error) {
	reply, err := r.send(ctx, address, append([]string{"CONFIG", "GET"}, names...)...)
	if err != nil {
		return nil, err
	}
	return topology.Pairs(reply), nil
}

// send sends a command.
func (r Redis) send(ctx context.Context, address string, words ...string) (any, error) {
	command := make([]any, len(words))
	for i, word := range words {
		command[i] = word
	}
	return r.Servers.Do(ctx, address, r.Login, command...)
}
