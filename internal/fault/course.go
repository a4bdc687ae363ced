package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// observed is what one server told at one look.
type observed struct {
	runID   string
	role    topology.Role
	loading bool
	linked  bool // a replica whose link to its primary is up, and no sync under way
	online  int  // replicas that a primary holds for online
	cluster clusterState
}

// clusterState is a node's view of its cluster; zero outside of one.
type clusterState struct {
	known             bool
	ok                bool
	suspected, failed int // slots whose primary is PFAIL, FAIL
}

// course follows servers from before a fault and tells what changes, each thing once. It is pure: looks come in, sightings go out.
type course struct {
	before   map[string]observed // by pod, at the first look
	replicas int                 // in sync, before
	said     map[string]bool     // event and object
	strained bool                // a replica was out of sync since
	down     bool                // the cluster was down since
}

func newCourse() *course { return &course{said: map[string]bool{}} }

// note takes one look at all servers, by pod; those that did not answer are absent.
func (c *course) note(at time.Time, now map[string]observed) []contract.Sighting {
	if c.before == nil {
		c.before, c.replicas = now, inSync(now)
		return nil
	}
	var seen []contract.Sighting
	tell := func(event, object, format string, words ...any) {
		if key := event + " " + object; !c.said[key] {
			c.said[key] = true
			seen = append(seen, contract.Sighting{At: at, Event: event, Object: object, Message: fmt.Sprintf(format, words...)})
		}
	}
	for pod, o := range now {
		old, known := c.before[pod]
		if empty := !known && o.cluster.known; o.role == topology.Primary && !empty && (!known || old.role != topology.Primary) && len(c.before) > 1 { // a new node of a cluster has no slots yet
			tell(contract.EventPromoted, pod, "ROLE says primary")
		}
		if (!known || o.runID != old.runID) && !o.loading {
			tell(contract.EventDatasetLoaded, pod, "a new process answers, run_id %s", o.runID)
		}
	}
	c.noteCluster(now, tell)
	if synced := inSync(now); c.replicas > 0 && synced < c.replicas {
		c.strained = true
	} else if c.strained {
		tell(contract.EventReplicasResynced, "replicas", "%d replicas are in sync", synced)
	}
	return seen
}

func (c *course) noteCluster(now map[string]observed, tell func(event, object, format string, words ...any)) {
	known, ok, suspected, failed := 0, 0, 0, 0
	for pod, o := range now {
		if _, member := c.before[pod]; !member || !o.cluster.known { // a new node does not know the cluster yet
			continue
		}
		known++
		if o.cluster.ok {
			ok++
		}
		suspected, failed = max(suspected, o.cluster.suspected), max(failed, o.cluster.failed)
	}
	if known == 0 {
		return
	}
	if suspected > 0 {
		tell(contract.EventSubjectivelyDown, "cluster", "a node misses the primary of %d slots (PFAIL)", suspected)
	}
	if failed > 0 {
		tell(contract.EventObjectivelyDown, "cluster", "the primary of %d slots has failed (FAIL)", failed)
	}
	switch {
	case ok < known:
		c.down = true
		tell(contract.EventClusterDown, "cluster", "cluster_state fail at %d of %d nodes", known-ok, known)
	case c.down && suspected == 0 && failed == 0:
		tell(contract.EventSlotsCovered, "cluster", "cluster_state ok at all %d nodes that answer", known)
	}
}

// inSync counts the replicas that both sides hold for linked.
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

// heard turns what a sentinel published into a sighting.
func (c *course) heard(at time.Time, sentinel, channel, payload string) []contract.Sighting {
	events := map[string]string{"+sdown": contract.EventSubjectivelyDown, "+odown": contract.EventObjectivelyDown, "+elected-leader": contract.EventElected, "+switch-master": contract.EventSwitched}
	event, known := events[channel]
	if !known || (event == contract.EventSubjectivelyDown || event == contract.EventObjectivelyDown) && !strings.HasPrefix(payload, "master ") {
		return nil
	}
	if c.said[event+" sentinels"] { // the first that says it
		return nil
	}
	c.said[event+" sentinels"] = true
	return []contract.Sighting{{At: at, Event: event, Object: "sentinels", Message: fmt.Sprintf("%s at %s: %s", channel, sentinel, payload)}}
}

// observedFrom reads INFO.
func observedFrom(info redis.Info) observed {
	server, replication := topology.ServerOf("", info), topology.ReplicationOf(info)
	o := observed{runID: server.RunID, role: server.Role, loading: server.Loading, linked: replication.LinkUp && !replication.Syncing}
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
		known: info["cluster_state"] != "", ok: info["cluster_state"] == "ok",
		suspected: int(info.Int("cluster_slots_pfail")), failed: int(info.Int("cluster_slots_fail")),
	}
}
