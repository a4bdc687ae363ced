package target

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
)

// MayRun returns why the operator's user may not run a command, given as it would be sent, at a
// server; nil where it may, and where the server does not reveal that. A Problem names the ACL rule
// that is missing, or a command that is renamed or disabled. The command is not run.
func (r Redis) MayRun(ctx context.Context, address string, command ...string) error {
	user := cmp.Or(r.Login.Username, "default")
	ask := []any{"ACL", "DRYRUN", user}
	for _, word := range command {
		ask = append(ask, word)
	}
	reply, err := r.Servers.Do(ctx, address, r.Login, ask...)
	switch {
	case err == nil && reply == "OK":
		return nil
	case err == nil:
		return problem.Unsupported("at %s, %v. Give user %s the ACL rule %s", address, reply, user,
			ruleOf(command))
	case !redis.IsReply(err):
		return err
	case strings.Contains(err.Error(), "not found") && strings.Contains(err.Error(), "Command"):
		return unknownCommand(address, command)
	}
	// a server before Redis 7, or one whose ACL forbids DRYRUN itself
	return r.exists(ctx, address, command)
}

// exists returns a Problem where a server does not have a command. It returns nil where the ACL
// forbids COMMAND.
func (r Redis) exists(ctx context.Context, address string, command []string) error {
	reply, err := r.Servers.Do(ctx, address, r.Login, "COMMAND", "INFO", command[0])
	if err != nil && !redis.IsReply(err) {
		return err
	}
	known, ok := reply.([]any)
	if ok && len(known) == 1 && (known[0] == nil || isEmpty(known[0])) {
		return unknownCommand(address, command)
	}
	return nil
}

// Refusal is MayRun for a command that was sent: it turns an error reply into a Problem, and
// returns other errors unchanged.
func (r Redis) Refusal(err error, address string, command ...string) error {
	if err == nil || !redis.IsReply(err) {
		return err
	}
	switch text := err.Error(); {
	case redis.Passes(err):
		return problem.NotYet("%v", err)
	case strings.Contains(text, "NOPERM"):
		return problem.Unsupported("%v. Give user %s the ACL rule %s", err,
			cmp.Or(r.Login.Username, "default"), ruleOf(command))
	case strings.Contains(text, "unknown command"):
		return unknownCommand(address, command)
	}
	return err
}

func unknownCommand(address string, command []string) error {
	return problem.Unsupported(
		"the server at %s has no command %s: it is renamed or disabled there (rename-command)", address,
		strings.ToUpper(command[0]))
}

// containers are the commands whose second word is a command of its own in ACL rules.
var containers = map[string]bool{
	"acl":      true,
	"client":   true,
	"cluster":  true,
	"config":   true,
	"latency":  true,
	"memory":   true,
	"script":   true,
	"sentinel": true,
	"slowlog":  true,
}

// ruleOf is the ACL rule that allows a command: +client|pause, +bgsave.
func ruleOf(command []string) string {
	name := strings.ToLower(command[0])
	if containers[name] && len(command) > 1 {
		return fmt.Sprintf("+%s|%s", name, strings.ToLower(command[1]))
	}
	return "+" + name
}

func isEmpty(reply any) bool {
	list, ok := reply.([]any)
	return ok && len(list) == 0
}
