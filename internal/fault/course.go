package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// observed is the state of one server, from one poll.
type observed struct {
	runID   string
	up      time.Duration // of the process, to the second
	role    topology.Role
	loading bool
	linked  bool // a replica whose link to its primary is up, with no full sync in progress
	online  int  // replicas that a primary lists as online
	cluster clusterState
}

// clusterState is a node's view of its cluster; zero outside of one.
type clusterState struct {
	known             bool
	ok                bool
	suspected, failed int // slots whose primary is PFAIL, FAIL
}

// course compares servers with their state before a fault and reports each change once. It is pure:
// polls come in, sightings go out.
type course struct {
	began    time.Time           // of the first poll
	before   map[string]observed // by pod, from the first poll that it answered
	replicas int                 // in sync, before
	reported map[string]bool     // event and object
	strained bool                // a replica has been out of sync since
	down     bool                // the cluster has been down since
	seen     []contract.Sighting // by the call of note or notePublished that is in progress
}

func newCourse() *course {
	return &course{reported: map[string]bool{}}
}

// note compares one poll of all servers, by pod; servers that did not answer are absent.
func (c *course) note(at time.Time, now map[string]observed) []contract.Sighting {
	if c.before == nil {
		c.began, c.before, c.replicas = at, now, inSync(now)
		return nil
	}
	c.seen = nil
	c.complete(at, now)
	for pod, o := range now {
		c.noteServer(at, pod, o)
	}
	c.noteCluster(at, now)
	c.noteReplicas(at, now)
	return c.seen
}

// uptimeError is by how much the uptime in INFO is too long at most: it is the difference of two
// instants that are rounded to the second.
const uptimeError = time.Second

// complete adds the servers that were too slow for the first poll: a process that is older than that
// is not new.
func (c *course) complete(at time.Time, now map[string]observed) {
	late := false
	for pod, o := range now {
		if _, known := c.before[pod]; !known && o.up > at.Sub(c.began)+uptimeError {
			c.before[pod], late = o, true
		}
	}
	if late {
		c.replicas = max(c.replicas, inSync(now))
	}
}

func (c *course) noteServer(at time.Time, pod string, o observed) {
	old, ok := c.before[pod]
	isNew := !ok || o.runID != old.runID
	promoted := o.role == topology.Primary && (!ok || old.role != topology.Primary)
	unassigned := !ok && o.cluster.known // a new node of a cluster is a primary without slots
	if promoted && !unassigned && len(c.before) > 1 {
		c.report(at, contract.EventPromoted, pod, "ROLE says primary")
	}
	if isNew && o.loading {
		c.report(at, contract.EventLoading, pod,
			"a new process answers LOADING: it reads its data, run_id %s", o.runID)
	}
	if isNew && !o.loading {
		c.report(at, contract.EventDatasetLoaded, pod, "a new process answers, run_id %s", o.runID)
	}
}

func (c *course) noteCluster(at time.Time, now map[string]observed) {
	nodes, ok, suspected, failed := c.tally(now)
	if nodes == 0 {
		return
	}
	if suspected > 0 {
		c.report(at, contract.EventSubjectivelyDown, "cluster",
			"a node misses the primary of %d slots (PFAIL)", suspected)
	}
	if failed > 0 {
		c.report(at, contract.EventObjectivelyDown, "cluster",
			"the primary of %d slots has failed (FAIL)", failed)
	}
	switch {
	case ok < nodes:
		c.down = true
		c.report(at, contract.EventClusterDown, "cluster", "cluster_state fail at %d of %d nodes",
			nodes-ok, nodes)
	case c.down && suspected == 0 && failed == 0:
		c.report(at, contract.EventSlotsCovered, "cluster",
			"cluster_state ok at all %d nodes that answer", nodes)
	}
}

// tally counts the nodes of the cluster from before the fault and those of them that are ok, and
// the most slots that one of them suspects or holds for failed. A new node is not part of the
// cluster yet.
func (c *course) tally(now map[string]observed) (nodes, ok, suspected, failed int) {
	for pod, o := range now {
		if _, member := c.before[pod]; !member || !o.cluster.known {
			continue
		}
		nodes++
		if o.cluster.ok {
			ok++
		}
		suspected = max(suspected, o.cluster.suspected)
		failed = max(failed, o.cluster.failed)
	}
	return nodes, ok, suspected, failed
}

func (c *course) noteReplicas(at time.Time, now map[string]observed) {
	synced := inSync(now)
	switch {
	case synced < c.replicas:
		c.strained = true
	case c.strained:
		c.report(at, contract.EventReplicasResynced, "replicas", "%d replicas are in sync", synced)
	}
}

// inSync counts the replicas that are linked in the view of both sides.
func inSync(now map[string]observed) int {
	linked, online := 0, 0
	for _, o := range now {
		if o.linked {
			linked++
		}
		online += o.online
	}
	return min(linked, online)
}

// notePublished turns a message that a sentinel published into a sighting.
func (c *course) notePublished(
	at time.Time, sentinel, channel, payload string,
) []contract.Sighting {
	events := map[string]string{
		"+sdown":          contract.EventSubjectivelyDown,
		"+odown":          contract.EventObjectivelyDown,
		"+elected-leader": contract.EventElected,
		"+switch-master":  contract.EventSwitched,
	}
	event, ok := events[channel]
	isDown := event == contract.EventSubjectivelyDown || event == contract.EventObjectivelyDown
	// sentinels also report replicas and other sentinels
	if !ok || isDown && !strings.HasPrefix(payload, "master ") {
		return nil
	}
	c.seen = nil
	c.report(at, event, "sentinels", "%s at %s: %s", channel, sentinel, payload)
	return c.seen
}

// report adds a sighting, the first time that the event happens to the object.
func (c *course) report(at time.Time, event, object, format string, words ...any) {
	if key := event + " " + object; !c.reported[key] {
		c.reported[key] = true
		c.seen = append(c.seen, contract.Sighting{
			At:      at,
			Event:   event,
			Object:  object,
			Message: fmt.Sprintf(format, words...),
		})
	}
}

// observedFrom reads INFO.
func observedFrom(info redis.Info) observed {
	server := topology.ServerOf("", info)
	replication := topology.ReplicationOf(info)
	o := observed{
		runID:   server.RunID,
		up:      server.Uptime,
		role:    server.Role,
		loading: server.Loading,
		linked:  replication.LinkUp && !replication.Syncing,
	}
	for _, replica := range replication.Replicas {
		if replica.Online {
			o.online++
		}
	}
	return o
}

// clusterStateFrom reads CLUSTER INFO.
func clusterStateFrom(info redis.Info) clusterState {
	return clusterState{
		known:     info["cluster_state"] != "",
		ok:        info["cluster_state"] == "ok",
		suspected: int(info.Int("cluster_slots_pfail")),
		failed:    int(info.Int("cluster_slots_fail")),
	}
}
