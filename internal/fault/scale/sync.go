package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/podstate"
)

// bringIn makes every added server a replica, and returns what is missing until all are in sync and
// their pods ready.
func (s *replicaScale) bringIn(ctx context.Context, now *scaling) string {
	var missing []string
	for _, name := range now.changed() {
		m := now.record.Members[name]
		why := s.bringOne(ctx, now, name, &m)
		now.record.setMember(name, m)
		if why != "" {
			missing = append(missing, name+" "+why)
		}
	}
	return strings.Join(missing, "; ")
}

func (s *replicaScale) bringOne(ctx context.Context, now *scaling, name string, m *member) string {
	pod, err := s.Pod(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return "does not exist yet"
	case err != nil:
		return err.Error()
	case pod.DeletionTimestamp != nil:
		return "is still terminating"
	}
	if m.Came.IsZero() {
		m.Came = s.now()
	}
	if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
		return "is " + waitsFor(pod)
	}
	m.Address = s.Address(pod)
	primary, missing := s.sync(ctx, now, name, m)
	if missing != "" {
		return missing
	}
	if !podstate.IsReady(pod) {
		return "is in sync, but its pod is not ready"
	}
	if m.Synced.IsZero() {
		m.Synced = s.now()
		m.How = fmt.Sprintf("after %s; %s", m.Synced.Sub(m.Came).Round(100*time.Millisecond),
			now.record.syncsSince(primary))
		if m.Refused != "" {
			m.How += "; a failover may make it the primary, as " + m.Refused
		}
	}
	return s.unsettled(m)
}

// sync makes the server of a pod a replica where it is not, and returns its primary. missing is ""
// once it is in sync, or was promoted itself.
func (s *replicaScale) sync(
	ctx context.Context, now *scaling, name string, m *member,
) (primary serverInfo, missing string) {
	own, err := s.info(ctx, m.Address)
	if err != nil {
		return serverInfo{}, "does not answer yet: " + err.Error()
	}
	if own.Loading {
		return serverInfo{}, "is loading its data set"
	}
	if m.Slot == nil {
		m.Slot = now.record.Slot
	}
	address, primary, err := s.primaryFor(ctx, now, *m)
	switch {
	case err != nil:
		return serverInfo{}, "has to wait for its primary: " + err.Error()
	case address == m.Address:
		return primary, ""
	}
	if why := s.lower(ctx, m, own); why != "" {
		return serverInfo{}, why
	}
	switch {
	case m.Slot != nil:
		if why := s.join(ctx, now, m, own.Version); why != "" {
			return serverInfo{}, why
		}
	case own.role != topology.Replica:
		return serverInfo{}, s.adopt(ctx, own, m.Address, address)
	}
	return primary, outOfSync(name, m.Address, address, own, primary)
}

// adopt makes a server that started as a primary a replica. It must be empty: a replica deletes its
// own data.
func (s *replicaScale) adopt(ctx context.Context, own serverInfo, address, primary string) string {
	if !own.blank() {
		return fmt.Sprintf(
			"started as a primary that holds keys or has replicas (%s), so it is not changed: the start "+
				"script of the workload must make it a replica", format.Plural(len(own.followers), "replica"))
	}
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return err.Error()
	}
	_, err = s.Servers.Do(ctx, address, s.Login, "REPLICAOF", host, port)
	if err != nil {
		return fmt.Sprintf("started as an empty primary, and could not be made a replica: %v", err)
	}
	return "started as an empty primary and was made to replicate from " + primary
}

func outOfSync(name, address, primary string, own, said serverInfo) string {
	switch {
	case !own.LinkUp && !own.Syncing:
		return fmt.Sprintf(
			"has no link to %s (master_link_status:down): is masterauth right there, and the network open?",
			own.Primary)
	case !own.LinkUp || own.Syncing:
		return "is syncing with " + own.Primary
	case !said.lists(name, address):
		return fmt.Sprintf("is not listed as online by primary %s", primary)
	}
	if a, _ := said.follower(name, address); a.Lag > 1 {
		return fmt.Sprintf("lags %d s behind primary %s", a.Lag, primary)
	}
	return ""
}

// syncsSince counts the syncs since the record was made, if the primary is still the same process.
func (r *scaleRecord) syncsSince(said serverInfo) string {
	if r.Syncs.RunID == "" || r.Syncs.RunID != said.RunID {
		return "its primary is another process than before"
	}
	return fmt.Sprintf("its primary has served %s and %s since",
		format.Plural(int(said.syncs.Full-r.Syncs.Full), "full sync"),
		format.Plural(int(said.syncs.Partial-r.Syncs.Partial), "partial sync"))
}

// takeOut waits until every removed pod is deleted, and makes the nodes of a cluster forget it.
func (s *replicaScale) takeOut(ctx context.Context, now *scaling) string {
	var missing []string
	for _, name := range now.changed() {
		if _, err := s.Pod(ctx, name); err == nil {
			missing = append(missing, name+" is still running")
			continue
		} else if !apierrors.IsNotFound(err) {
			missing = append(missing, err.Error())
			continue
		}
		m := now.record.Members[name]
		if why := s.forget(ctx, now, &m); why != "" {
			missing = append(missing, name+" "+why)
		} else if m.Gone.IsZero() {
			m.Gone = s.now()
		}
		now.record.setMember(name, m)
	}
	return strings.Join(missing, "; ")
}

// waitsFor is why a pod does not run yet, in the words of the scheduler or the kubelet.
func waitsFor(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "not scheduled: " + c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", pod.Status.Phase, w.Reason, w.Message), ": ")
		}
	}
	return string(pod.Status.Phase)
}

// recordAdded records the current node IDs of added servers, and reports whether one is new.
func (s *replicaScale) recordAdded(ctx context.Context, now *scaling) (changed bool) {
	if s.by < 0 || now.record.Slot == nil {
		return false
	}
	for _, name := range now.changed() {
		pod, err := s.Pod(ctx, name)
		if err != nil || pod.Status.PodIP == "" {
			continue
		}
		m := now.record.Members[name]
		m.Address = s.Address(pod)
		nodes, err := s.listing(ctx, m.Address)
		if err == nil && !slices.Contains(m.Nodes, myself(nodes).id) {
			m.Nodes = append(m.Nodes, myself(nodes).id)
			changed = true
		}
		now.record.setMember(name, m)
	}
	return changed
}
