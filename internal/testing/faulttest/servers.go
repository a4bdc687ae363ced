package faulttest

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// ErrRefused is the error of an address where nothing listens.
const ErrRefused = syscall.ECONNREFUSED

// Servers are servers in memory behind the product's own client. It implements topology.Servers and topology.Listener.
type Servers struct {
	topology.Real
	*memredis.Group
	network *memnet.Network
	primary string // which replicas follow: the last one that was started

	mu      sync.Mutex
	sent    []string
	dialled []string
}

func newServers(t *testing.T) *Servers {
	t.Helper()
	network := memnet.New()
	s := &Servers{
		Group:   memredis.NewGroup(network),
		network: network,
		primary: "10.0.0.1:6379",
	}
	s.Client = redis.NewClient(s.Dial)
	s.Watch(func(c memredis.Command) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, strings.Join(c.Words, " "))
	})
	t.Cleanup(func() {
		s.Client.Close()
		s.Group.Kill()
	})
	return s
}

// Dial connects to a server.
func (s *Servers) Dial(ctx context.Context, protocol, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialled = append(s.dialled, address)
	s.mu.Unlock()
	return s.network.Dial(ctx, protocol, address)
}

// Start starts a server. It replaces the one at that address, if there is one.
func (s *Servers) Start(address string, state memredis.State) *memredis.Server {
	s.Client.Close() // idle connections to the one before
	server := s.Add(address, memredis.Options{State: state})
	server.Restart()
	return server
}

// start starts the server of a pod. A replica is in sync with the primary that was started before.
func (s *Servers) start(address string, role topology.Role, runID string) {
	state := memredis.State{
		RunID:   runID,
		Appends: true,
		Active:  role == topology.Active,
	}
	switch role {
	case topology.Primary:
		s.primary = address
	case topology.Sentinel:
		state.Mode = "sentinel"
	default:
		state.Primary = s.primary
	}
	s.Start(address, state)
}

// Kill kills the server at an address: nothing listens there any more.
func (s *Servers) Kill(address string) {
	s.At(address).Kill()
	s.Client.Close() // idle connections to it
}

// Change changes what the server at an address is.
func (s *Servers) Change(address string, change func(*memredis.State)) {
	s.At(address).Change(change)
}

// Sent are the commands that servers have replied to since the start or Forget, in order.
func (s *Servers) Sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Strangers are the addresses that were dialled, but for those that begin with 10.0.0.
func (s *Servers) Strangers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.dialled), func(address string) bool {
		return strings.HasPrefix(address, "10.0.0.")
	})
}

// Forget forgets what was sent.
func (s *Servers) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = nil
}

// Lists lets a primary list these replicas instead of the servers that follow it.
func Lists(replicas ...memredis.Replica) func(*memredis.State) {
	return func(s *memredis.State) { s.Replicas = append([]memredis.Replica{}, replicas...) }
}

// Reply is a script that always replies the same.
func Reply(reply any) memredis.Script {
	return func(string, []string) any { return reply }
}

// By is a script that replies what a function returns; an error that is no reply of a server ends the connection.
func By(answer func(address string, words []string) (any, error)) memredis.Script {
	return func(address string, words []string) any {
		reply, err := answer(address, words)
		switch {
		case redis.IsReply(err):
			return err
		case err != nil:
			return memredis.HangUp
		}
		return reply
	}
}
