package target

import (
	"context"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

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
