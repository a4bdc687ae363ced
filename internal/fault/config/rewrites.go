package config

import (
	"context"
	"strings"

	"github.com/redquake/redquake/internal/redis"

	"github.com/redquake/redquake/internal/target"
)

// tally is what a process has counted since its start, or since a CONFIG RESETSTAT. Redis shows in no other way that its configuration file was rewritten, and
// anyone may reset the count; but not without a trace.
type tally struct {
	Rewrites int64 `json:"rewrites"` // CONFIG REWRITEs that succeeded
	Commands int64 `json:"commands"` // all commands
	// Calls are the numbers of calls of commands that hardly anybody but an operator sends, by name. The check of the target has just sent some. After a reset they are
	// lower, and remain so for long.
	Calls map[string]int64 `json:"calls"`
	// Reset is how long the last CONFIG RESETSTAT took, in microseconds; "" = there was none. The command counts itself once it has reset everything.
	Reset string `json:"reset,omitempty"`
}

// tallyOf reads a tally. counted is false where a server does not count subcommands, as before Redis 7.
func tallyOf(info redis.Info) (now tally, counted bool) {
	now.Commands, now.Calls = info.Int("total_commands_processed"), map[string]int64{}
	for field := range info {
		name, is := strings.CutPrefix(field, "cmdstat_")
		if !is || !strings.HasPrefix(name, "config|") && !strings.HasPrefix(name, "acl|") {
			continue
		}
		stat, _ := info.Command(name)
		now.Calls[name] = stat.Calls
		counted = counted || strings.HasPrefix(name, "config|")
	}
	stat, _ := info.Command("config|rewrite")
	now.Rewrites, now.Reset = stat.Calls-stat.Failed, info.Pairs("cmdstat_config|resetstat")["usec"]
	return now, counted
}

// resetBefore reports whether the counts of a process were reset between two tallies of it.
func (t tally) resetBefore(now tally) bool {
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

// What is known of the server's configuration file at the revert. Sentinel rewrites the file of every server that it makes a replica of another.
const (
	fileUntouched = iota // it was not rewritten during the fault
	fileRewritten        // it was, and contains the fault's values
	fileInDoubt          // it may have been
)

// Why a configuration file is in doubt.
const (
	doubtReset     = "CONFIG RESETSTAT was sent meanwhile, before which a CONFIG REWRITE cannot be seen"
	doubtUncounted = "this server does not count CONFIG REWRITE"
)

// fileState determines what is known of the file, and why it is in doubt.
func (s settings) fileState(ctx context.Context, at target.Process, record settingsRecord) (state int, doubt string, err error) {
	if at.Identity != target.Original {
		if record.Kept != "" {
			return fileRewritten, "", nil
		}
		return fileUntouched, "", nil
	}
	info, err := s.Info(ctx, at.Address, "everything")
	if err != nil || info["config_file"] == "" || record.Sealed {
		return fileUntouched, "", err
	}
	now, counted := tallyOf(info)
	switch {
	case !counted || record.Tally == nil:
		if len(s.Sentinels.Addresses) > 0 { // assume that they rewrote it
			return fileRewritten, "", nil
		}
		return fileInDoubt, doubtUncounted, nil
	case !record.Tally.resetBefore(now):
		if now.Rewrites > record.Tally.Rewrites {
			return fileRewritten, "", nil
		}
		return fileUntouched, "", nil
	case now.Rewrites > 0:
		return fileRewritten, "", nil
	}
	return fileInDoubt, doubtReset, nil
}

// rewrite writes the present values to the file. A file that cannot be written contains nothing of the fault.
func (s settings) rewrite(ctx context.Context, address string) error {
	_, err := s.Servers.Do(ctx, address, s.Login, "CONFIG", "REWRITE")
	if err == nil || !redis.IsReply(err) {
		return err
	}
	for _, fine := range []string{"running without a config file", "Read-only file system", "Permission denied"} {
		if strings.Contains(err.Error(), fine) {
			return nil
		}
	}
	return err
}
