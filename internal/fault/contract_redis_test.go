package fault_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// memory are the servers of a stage, each with three clients, which connect again, and what cannot be reverted there.
type memory struct {
	*memredis.Group
	network *memnet.Network
	client  topology.Real // of the operator
	ends    context.Context
	visits  sync.WaitGroup

	mu      sync.Mutex
	changes []string // that cannot be reverted, in order
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	network := memnet.New()
	ends, end := context.WithCancel(context.Background())
	m := &memory{
		Group: memredis.NewGroup(network), network: network, client: topology.Real{Client: redis.NewClient(network.Dial)},
		ends: ends,
	}
	m.Watch(m.note)
	t.Cleanup(func() {
		end()
		m.visits.Wait()
		m.client.Close()
		m.Kill()
	})
	return m
}

// start starts a server and its clients.
func (m *memory) start(address string, state memredis.State) {
	server := m.Add(address, memredis.Options{State: state, Memory: 8 << 20})
	server.Set("appendonly", "yes")
	server.Restart()
	for range 3 {
		m.visits.Go(func() { m.visit(address) })
	}
}

// visit is a client that only keeps a connection open, until the server is there no more.
func (m *memory) visit(address string) {
	for m.ends.Err() == nil && m.At(address) != nil {
		c, err := m.network.Dial(m.ends, "tcp", address)
		if err == nil {
			stop := context.AfterFunc(m.ends, func() { _ = c.Close() })
			_, _ = io.Copy(io.Discard, c)
			stop()
			_ = c.Close()
			continue
		}
		select {
		case <-m.ends.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// queries are the commands that change nothing, and shown those whose change a server shows, or that end by themselves:
// a script that hangs, a message to subscribers.
var (
	queries = []string{
		"ACL DRYRUN", "ACL WHOAMI", "AUTH", "CLIENT LIST", "COMMAND", "CONFIG GET", "DEBUG SLEEP 0.000", "HELLO", "INFO", "PING", "TIME",
	}
	shown = []string{
		"CLIENT PAUSE", "CLIENT UNPAUSE", "CONFIG SET", "EVAL", "EVAL_RO", "PUBLISH", "REPLICAOF",
	}
)

// isOneOf is whether a command begins with the words of one of these.
func isOneOf(words, commands []string) bool {
	return slices.ContainsFunc(commands, func(name string) bool {
		return strings.HasPrefix(strings.ToUpper(strings.Join(words, " "))+" ", name+" ")
	})
}

// note takes down what cannot be reverted: all that neither asks nor is shown.
func (m *memory) note(c memredis.Command) {
	if c.Refused || isOneOf(c.Words, queries) || isOneOf(c.Words, shown) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes = append(m.changes, fmt.Sprintf("%s at %s", strings.Join(c.Words, " "), c.Address))
}

func (m *memory) broken() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.changes)
}

// refuse lets all servers refuse every command that changes something; nil = they perform it again.
func (m *memory) refuse(err error) {
	if err == nil {
		m.Script("", nil)
		return
	}
	m.Script("", func(_ string, words []string) any {
		if isOneOf(words, queries) {
			return nil
		}
		return err
	})
}
