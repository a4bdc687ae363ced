package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// findKeys asks a node of a cluster which words of the user's commands are keys, as they decide
// which node serves a request. Each answer may take as long as limit.
func (r *Runner) findKeys(ctx context.Context, c *redis.Conn, limit time.Duration) error {
	own, ok := r.run.Redis.(workload.Keyed)
	if !ok || r.run.Routes.Current().Kind != topology.KindCluster {
		return nil
	}
	err := own.FindKeys(func(words []string) ([]string, bool, error) {
		within, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return keysOf(within, c, words)
	})
	crossing, ok := errors.AsType[*workload.CrossSlot](err)
	switch {
	case ok:
		return &plan.Error{
			Reason:  plan.CommandInvalid,
			Err:     err,
			Message: crossing.Error(),
		}
	case err != nil:
		return &plan.Error{
			Reason: plan.TargetUnreachable,
			Err:    err,
			Passes: true,
			Message: fmt.Sprintf("%s gives no answer to COMMAND GETKEYS: %s", c.RemoteAddr(),
				dial.ShortMessage(err)),
		}
	}
	return nil
}

// keysOf returns the keys of a command as the server finds them; false if it does not say: it may
// not be asked, or would refuse the command.
func keysOf(ctx context.Context, c *redis.Conn, words []string) ([]string, bool, error) {
	if len(words) == 1 {
		return nil, true, nil
	}
	getKeys := append([]string{"COMMAND", "GETKEYS"}, words...)
	answers, err := c.Exchange(ctx, resp.AppendCommand(nil, getKeys...), 1)
	if err != nil {
		return nil, false, err
	}
	answer := answers[0]
	if answer.Type == '*' {
		var keys []string
		for _, key := range answer.Items {
			keys = append(keys, key.Text)
		}
		return keys, true, nil
	}
	if !strings.Contains(answer.Text, "no key arguments") {
		return nil, false, nil
	}
	return channelOf(ctx, c, words)
}

// channelOf returns the shard channel of a command of sharded pub/sub, which has a slot and is no
// key: COMMAND INFO has its position as that of the first key.
func channelOf(ctx context.Context, c *redis.Conn, words []string) ([]string, bool, error) {
	answers, err := c.Exchange(ctx, resp.AppendCommand(nil, "COMMAND", "INFO", words[0]), 1)
	if err != nil {
		return nil, false, err
	}
	const firstKey = 3 // of name, arity, flags, first key, last key, step
	if len(answers[0].Items) == 0 || len(answers[0].Items[0].Items) <= firstKey {
		return nil, false, nil
	}
	at, err := strconv.Atoi(answers[0].Items[0].Items[firstKey].Text)
	if err != nil || at <= 0 || at >= len(words) {
		return nil, true, nil //nolint:nilerr // a position that is no number is none
	}
	return words[at : at+1], true, nil
}
