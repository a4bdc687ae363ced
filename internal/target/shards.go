package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// mostViews is how many nodes of a cluster are asked for its shards: a node that lost its
// configuration knows only itself.
const mostViews = 5

// clusterView is CLUSTER NODES of one node.
type clusterView struct {
	text   string
	shards []topology.Group // by their lowest slot
	slots  int
	err    error
}

// assignShards sets the shards of the nodes of a cluster, and adds the nodes that only CLUSTER
// NODES lists. It reports whether there is a cluster.
func (r Redis) assignShards(ctx context.Context, c *Census) (bool, error) {
	view, found := r.bestView(ctx, c.Servers)
	if !found || view.err != nil {
		return found, view.err
	}
	nodes := nodeLines(view.text)
	unaddressed := map[string][]string{} // by primary: they are in no view of the load
	for id, line := range nodes {
		if line.noAddress() {
			unaddressed[line.primary] = append(unaddressed[line.primary], id)
		}
	}
	for shard, group := range view.shards {
		for _, node := range group.Nodes {
			at := c.place(shard, node.ID, node.Address, nodes)
			if node.Role == topology.Primary {
				c.Voters = append(c.Voters, r.voter(ctx, at, node, nodes[node.ID]))
			}
			for _, id := range unaddressed[node.ID] {
				c.place(shard, id, "", nodes)
			}
		}
	}
	slices.SortFunc(c.Missing, func(a, b Missing) int { return strings.Compare(a.Name, b.Name) })
	return true, nil
}

// voter is a primary of a cluster; at is its server, nil where the target does not select its pod.
func (r Redis) voter(ctx context.Context, at *Server, node topology.Node, line nodeLine) Voter {
	if at != nil {
		return Voter{
			Name:    at.Pod.Name,
			Address: at.Address,
			Answers: at.Err == nil,
		}
	}
	v := Voter{
		Name:    nameOfNode(node.ID),
		Address: node.Address,
		Answers: !line.failed(),
	}
	if _, _, pod := r.residentAt(ctx, node.Address); pod != "" {
		v.Name = pod
	}
	return v
}

func nameOfNode(id string) string {
	return "node " + id[:min(len(id), 8)]
}

// place sets the shard of the server that is a node, by its ID, else by its address, and returns
// it. Without one, the node is a missing copy.
func (c *Census) place(shard int, id, address string, nodes map[string]nodeLine) *Server {
	at := slices.IndexFunc(c.Servers, func(s Server) bool { return s.node == id })
	if at < 0 && address != "" {
		at = slices.IndexFunc(c.Servers, func(s Server) bool {
			return s.node == "" &&
				s.Address == address
		})
	}
	if at >= 0 {
		c.Servers[at].Shard = shard
		return &c.Servers[at]
	}
	c.Missing = append(c.Missing, Missing{
		Name:    nameOfNode(id),
		Shard:   shard,
		node:    id,
		address: address,
		Why:     fmt.Sprintf("is in no pod of the target that answers (%s)", nodes[id].flags),
	})
	return nil
}

// bestView asks some nodes, and returns the view with the most slots. found is false where no
// server is a node of a cluster.
func (r Redis) bestView(ctx context.Context, servers []Server) (best clusterView, found bool) {
	var asked []*Server
	for i := range servers {
		s := &servers[i]
		if s.Err == nil && s.State.Mode == "cluster" && len(asked) < mostViews {
			asked = append(asked, s)
		}
	}
	if len(asked) == 0 {
		return clusterView{}, false
	}
	views := make([]clusterView, len(asked))
	var asking sync.WaitGroup
	for i := range asked {
		asking.Go(func() { views[i] = r.viewOf(ctx, asked[i].Address) })
	}
	asking.Wait()
	best = views[0]
	for _, v := range views[1:] {
		if v.err == nil && (best.err != nil || v.slots > best.slots) {
			best = v
		}
	}
	return best, true
}

func (r Redis) viewOf(ctx context.Context, address string) (v clusterView) {
	reply, err := r.Servers.Do(ctx, address, r.Login, "CLUSTER", "NODES")
	if err != nil {
		return clusterView{err: r.Refusal(err, address, "CLUSTER", "NODES")}
	}
	v.text, _ = reply.(string)
	view, err := topology.ParseNodes(v.text, address)
	if err != nil {
		return clusterView{
			err: problem.Unsupported("the cluster at %s cannot be understood: %v", address, err),
		}
	}
	v.shards = topology.InOrder(view)
	for _, group := range v.shards {
		for _, slots := range group.Ranges {
			v.slots += int(slots[1]) - int(slots[0]) + 1
		}
	}
	return v
}

// nodeLine is what a line of CLUSTER NODES says about a copy.
type nodeLine struct{ flags, primary string }

func (l nodeLine) noAddress() bool {
	return slices.Contains(strings.Split(l.flags, ","), "noaddr")
}

// failed reports whether the node is, or seems, down.
func (l nodeLine) failed() bool {
	return slices.ContainsFunc(strings.Split(l.flags, ","), func(f string) bool {
		return f == "fail" ||
			f == "fail?" || f == "noaddr"
	})
}

// nodeLines reads CLUSTER NODES by ID. A node in a handshake belongs to no shard yet, and is not a
// copy of anything.
func nodeLines(text string) map[string]nodeLine {
	nodes := map[string]nodeLine{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) >= 8 {
			nodes[words[0]] = nodeLine{flags: strings.TrimPrefix(words[2], "myself,"), primary: words[3]}
		}
	}
	return nodes
}
