package memredis

import (
	"maps"
	"sync"

	"github.com/redquake/redquake/internal/testing/memnet"
)

// Group are servers on one network that know of each other: a primary lists those of its group that replicate from it.
type Group struct {
	network *memnet.Network
	mu      sync.Mutex // never held while waiting
	servers map[string]*Server
	scripts map[string]Script
	watch   func(Command)
}

// NewGroup returns a group without servers.
func NewGroup(network *memnet.Network) *Group {
	return &Group{
		network: network,
		servers: map[string]*Server{},
		scripts: map[string]Script{},
	}
}

// Add makes a server without a process, which Restart starts. It replaces, and kills, the server at that address.
func (g *Group) Add(address string, o Options) *Server {
	s := &Server{
		group: g, mu: &g.mu, address: address, options: o, state: o.State, cost: o.Cost,
		config: map[string]string{}, scripts: map[string]Script{}, calls: map[string]int{},
	}
	g.Remove(address)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.servers[address] = s
	return s
}

// Remove kills the server at an address, if there is one, and forgets it.
func (g *Group) Remove(address string) {
	if s := g.At(address); s != nil {
		s.Kill()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.servers, address)
}

// At is the server at an address; nil if there is none.
func (g *Group) At(address string) *Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.servers[address]
}

// All are the servers, by address.
func (g *Group) All() map[string]*Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.servers)
}

// Kill kills all servers.
func (g *Group) Kill() {
	for _, s := range g.All() {
		s.Kill()
	}
}

// Command is a command that a server has replied to.
type Command struct {
	Address string
	Words   []string // the first in upper case
	Refused bool     // by an error reply
}

// Watch calls seen for each command of the group from now on, one at a time, after it was performed and before its
// reply is sent.
func (g *Group) Watch(seen func(Command)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watch = seen
}
