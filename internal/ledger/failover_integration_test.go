//go:build integration

package ledger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/topology"
)

// sentinelWorld is a primary with two replicas under three sentinels.
func sentinelWorld(t *testing.T) (*world, []*server, []*server) {
	t.Helper()
	nodes := []*server{startRedis(t)}
	for range 2 {
		nodes = append(nodes, startReplica(t, nodes[0]))
	}
	sentinels := startSentinels(t, nodes[0])
	until(t, "sentinels know everybody", func() bool {
		for _, s := range sentinels {
			if _, err := s.try("SENTINEL", "CKQUORUM", "m"); err != nil {
				return false
			}
		}
		return strings.Contains(sentinels[0].do("INFO", "sentinel"), "slaves=2,sentinels=3")
	})
	layout := func() (Layout, error) {
		address, err := primaryBySentinel(sentinels[0])
		if err != nil {
			return Layout{}, err
		}
		var l Layout
		for _, n := range nodes {
			l.Nodes = append(l.Nodes, Node{Address: n.address, Primary: n.address == address})
		}
		return l, nil
	}
	return newWorld(t, 2, layout), nodes, sentinels
}

func primaryBySentinel(s *server) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	raw, err := dial(ctx, s.address)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	v, err := newConn(raw, s.address).ask(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m")
	if err != nil {
		return "", err
	}
	if len(v.Items) != 2 {
		return "", errors.New("the sentinel names no primary")
	}
	return net.JoinHostPort(v.Items[0].Text, v.Items[1].Text), nil
}

// failOver asks for a failover until a replica is fit for it, and waits until the sentinels name another primary.
func failOver(t *testing.T, sentinels []*server) {
	t.Helper()
	before, err := primaryBySentinel(sentinels[0])
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the sentinel agrees to fail over", func() bool {
		_, err := sentinels[0].try("SENTINEL", "FAILOVER", "m")
		return err == nil
	})
	until(t, "another primary", func() bool {
		now, err := primaryBySentinel(sentinels[0])
		return err == nil && now != before
	})
}

func TestSentinelFailoverLosesQuietly(t *testing.T) {
	w, _, sentinels := sentinelWorld(t)
	w.load()
	time.Sleep(500 * time.Millisecond)
	failOver(t, sentinels)
	time.Sleep(500 * time.Millisecond)
	w.settled()
	r := w.verify()
	if r.Lost == 0 {
		t.Error("a failover of a healthy primary lost nothing")
	}
	if r.Errors > r.Lost/20 {
		t.Errorf("%d errors while %d writes were lost: this failure is known for being quiet", r.Errors, r.Lost)
	}
	if r.Replicas != 2 {
		t.Errorf("%d replicas were read", r.Replicas)
	}
}

func TestSentinelFailoverWithWritesPausedLosesNothing(t *testing.T) {
	w, nodes, sentinels := sentinelWorld(t)
	w.load()
	time.Sleep(500 * time.Millisecond)
	nodes[0].do("CLIENT", "PAUSE", "20000", "WRITE")
	failOver(t, sentinels)
	time.Sleep(500 * time.Millisecond)
	w.settled()
	if r := w.verify(); r.Lost != 0 || r.Acked == 0 {
		t.Errorf("%+v", *r)
	}
}

// clusterWorld is three primaries, the first with a replica.
func clusterWorld(t *testing.T) (*world, []*server) {
	t.Helper()
	var nodes []*server
	for range 4 {
		nodes = append(nodes, startClusterNode(t))
	}
	primaries := nodes[:3]
	for i, n := range primaries {
		n.do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(topology.SlotCount*i/3), strconv.Itoa(topology.SlotCount*(i+1)/3-1))
	}
	for _, n := range nodes[1:] {
		n.do("CLUSTER", "MEET", "127.0.0.1", nodes[0].port(), nodes[0].bus)
	}
	until(t, "the replica knows its primary", func() bool {
		_, err := nodes[3].try("CLUSTER", "REPLICATE", nodes[0].do("CLUSTER", "MYID"))
		return err == nil
	})
	until(t, "the cluster is whole", func() bool {
		for _, n := range nodes {
			if !strings.Contains(n.do("CLUSTER", "INFO"), "cluster_state:ok") {
				return false
			}
		}
		return strings.Contains(nodes[3].do("INFO", "replication"), "master_link_status:up") && strings.Contains(nodes[0].do("INFO", "replication"), "state=online")
	})
	return newWorld(t, 2, func() (Layout, error) { return clusterLayout(nodes) }), nodes
}

func startClusterNode(t *testing.T) *server {
	t.Helper()
	bus := strconv.Itoa(freePort(t))
	s := startRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "15000", "--cluster-port", bus)
	s.bus = bus
	return s
}

// clusterLayout asks the last node, which is a replica at first. Shards are numbered by the slots that they serve.
func clusterLayout(nodes []*server) (Layout, error) {
	text, err := nodes[len(nodes)-1].try("CLUSTER", "NODES")
	if err != nil {
		return Layout{}, err
	}
	var l Layout
	shardByID, replicas := map[string]int{}, map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		address, _, _ := strings.Cut(f[1], "@")
		if strings.HasPrefix(address, ":") {
			address = "127.0.0.1" + address
		}
		if strings.Contains(f[2], "slave") {
			replicas[address] = f[3]
			continue
		}
		if len(f) < 9 {
			continue // a primary without slots
		}
		var first, last int
		if _, err := fmt.Sscanf(f[8], "%d-%d", &first, &last); err != nil {
			return Layout{}, err
		}
		shard := (first*3 + topology.SlotCount/2) / topology.SlotCount
		shardByID[f[0]] = shard
		l.Nodes = append(l.Nodes, Node{Address: address, Shard: shard, Primary: true})
	}
	for address, id := range replicas {
		if shard, ok := shardByID[id]; ok {
			l.Nodes = append(l.Nodes, Node{Address: address, Shard: shard})
		}
	}
	if len(l.Nodes) < 3 {
		return Layout{}, errors.New("the cluster is not whole")
	}
	l.ShardOf = func(slot uint16) int {
		for shard := range 3 {
			if int(slot) < topology.SlotCount*(shard+1)/3 {
				return shard
			}
		}
		return -1
	}
	return l, nil
}

func TestClusterFailoverLosesNothing(t *testing.T) {
	w, nodes := clusterWorld(t)
	w.load()
	time.Sleep(500 * time.Millisecond)
	nodes[3].do("CLUSTER", "FAILOVER")
	until(t, "the replica has taken over", func() bool {
		return strings.Contains(nodes[3].do("ROLE")+nodes[3].do("INFO", "replication"), "role:master")
	})
	time.Sleep(500 * time.Millisecond)
	w.settled()
	r := w.verify()
	if r.Lost != 0 || r.Acked == 0 || r.Replicas != 1 {
		t.Errorf("%+v", *r)
	}
	for writer := range w.acked {
		for shard, numbers := range w.acked[writer] {
			if len(numbers) == 0 {
				t.Errorf("writer %d wrote nothing to shard %d", writer, shard)
			}
		}
	}
}
