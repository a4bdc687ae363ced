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

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// told is what a server says of itself and its replicas.
type told struct {
	topology.ReplicationInfo
	topology.Server
	role      topology.Role
	followers []topology.Attached
	keys      bool // it holds data
	syncs     syncs
}

// blank is a server that came up on its own and has nothing to lose.
func (t told) blank() bool {
	return t.role == topology.Primary && !t.Loading && !t.keys && len(t.followers) == 0
}

// follower is how a primary sees the server of a pod, which announces the pod's IP or a name that begins with the pod's.
func (t told) follower(pod, address string) (topology.Attached, bool) {
	_, port, _ := net.SplitHostPort(address)
	i := slices.IndexFunc(t.followers, func(a topology.Attached) bool {
		host, p, _ := net.SplitHostPort(a.Address)
		return a.Address == address || p == port && (host == pod || strings.HasPrefix(host, pod+"."))
	})
	if i < 0 {
		return topology.Attached{}, false
	}
	return t.followers[i], true
}

// lists says whether a primary holds the server of a pod for an online replica.
func (t told) lists(pod, address string) bool {
	a, known := t.follower(pod, address)
	return known && a.Online
}

func (s *replicaScale) info(ctx context.Context, address string) (told, error) {
	info, err := s.Info(ctx, address)
	if err != nil {
		return told{}, err
	}
	t := told{ReplicationInfo: topology.ReplicationOf(info), Server: topology.ServerOf(address, info)}
	t.role, t.followers = t.ReplicationInfo.Role, t.Replicas
	t.syncs = syncs{RunID: t.RunID, Full: info.Int("sync_full"), Partial: info.Int("sync_partial_ok")}
	for field := range info {
		t.keys = t.keys || strings.HasPrefix(field, "db") && info.Pairs(field)["keys"] != ""
	}
	return t, nil
}

// recordPrimary finds the primary of the selected server, and records it and what it counts.
func (s *replicaScale) recordPrimary(ctx context.Context, target *v1alpha1.FaultTarget, record *scaleRecord) error {
	own, err := s.info(ctx, target.Address)
	if err != nil {
		return problem.NotYet("Redis at %s did not answer INFO: %v", target.Address, err)
	}
	if own.Mode == "cluster" {
		if err := s.recordShard(ctx, target, record); err != nil {
			return err
		}
	} else {
		record.Primary = primaryOf(own, target.Address)
	}
	said, err := s.info(ctx, record.Primary)
	if err != nil || said.role != topology.Primary {
		return problem.NotYet("%s, the primary of pod %s, does not answer as one (%v): replicas are scaled while all is well", record.Primary, target.Pod, err)
	}
	record.Followers, record.Syncs = len(said.followers), said.syncs
	return nil
}

// primaryOf is the primary that a server names: itself, if it is one.
func primaryOf(said told, address string) string {
	if said.role == topology.Replica {
		return said.Primary
	}
	return address
}

// recordGoing checks the servers that would be removed: all are replicas, and the primary of each stays and answers.
func (s *replicaScale) recordGoing(ctx context.Context, now *scaling) error {
	if err := s.primaryAmong(ctx, now); err != nil {
		return err
	}
	for _, name := range now.changed() {
		pod, err := s.Pod(ctx, name)
		if err != nil {
			return err
		}
		m := member{Address: s.Address(pod)}
		if now.record.Slot != nil {
			if m, err = s.node(ctx, m.Address); err != nil {
				return err
			}
		}
		_, said, err := s.primaryFor(ctx, now, m)
		if err == nil && !said.lists(name, m.Address) {
			err = fmt.Errorf("it does not list it as a replica that is online")
		}
		if err != nil {
			return problem.NotYet("the primary of %s must be there before the replica is removed: %v", name, err)
		}
		now.record.setMember(name, m)
	}
	return nil
}

// primaryFor asks the primary that a pod's server has, or shall have. Most of the servers that stay know it; a tie is the recorded one's.
func (s *replicaScale) primaryFor(ctx context.Context, now *scaling, m member) (string, told, error) {
	asked := s.staying(ctx, now)
	if m.Slot != nil {
		owner, err := s.ownerOf(ctx, *m.Slot, asked)
		if err != nil {
			return "", told{}, err
		}
		said, err := s.info(ctx, owner.address)
		return owner.address, said, err
	}
	votes, best := map[string]int{}, asked[0]
	for _, address := range asked {
		if said, err := s.info(ctx, address); err == nil {
			votes[primaryOf(said, address)]++
		}
	}
	for address, n := range votes {
		if n > votes[best] {
			best = address
		}
	}
	said, err := s.info(ctx, best)
	if err == nil && said.role != topology.Primary {
		err = fmt.Errorf("%s is no primary", best)
	}
	return best, said, err
}

// staying are the addresses of the servers that stay, as far as they run, each once: the recorded primary's first.
func (s *replicaScale) staying(ctx context.Context, now *scaling) []string {
	found := []string{now.record.Primary}
	for _, name := range now.staying() {
		if pod, err := s.Pod(ctx, name); err == nil && pod.Status.PodIP != "" && !slices.Contains(found, s.Address(pod)) {
			found = append(found, s.Address(pod))
		}
	}
	return found
}

// bringIn waits until every pod that comes runs and is in sync, and says what is missing. What a server cannot find out by itself is set there.
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
	own, err := s.info(ctx, m.Address)
	if err != nil {
		return "does not answer yet: " + err.Error()
	}
	if own.Loading {
		return "is loading its data set"
	}
	if m.Slot == nil {
		m.Slot = now.record.Slot
	}
	primary, said, err := s.primaryFor(ctx, now, *m)
	switch {
	case err != nil:
		return "has to wait for its primary: " + err.Error()
	case primary == m.Address: // it was promoted meanwhile
	case m.Slot != nil:
		if why := s.join(ctx, now, m); why != "" {
			return why
		}
	case own.role != topology.Replica:
		return s.adopt(ctx, own, m.Address, primary)
	}
	if why := outOfSync(name, m.Address, primary, own, said); why != "" {
		return why
	}
	if !isReady(pod) {
		return "is in sync, but its pod is not ready"
	}
	if m.Synced.IsZero() {
		m.Synced = s.now()
		m.How = fmt.Sprintf("after %s; %s", m.Synced.Sub(m.Came).Round(100*time.Millisecond), now.record.syncsSince(said))
	}
	return ""
}

// adopt makes a server that came up on its own a replica. Only one that holds nothing: what it held would be deleted.
func (s *replicaScale) adopt(ctx context.Context, own told, address, primary string) string {
	if !own.blank() {
		return fmt.Sprintf("came up as a primary that holds keys or has replicas (%s of them), so it is left alone: the start script of the workload must make it a replica", plural(len(own.followers), "replica"))
	}
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return err.Error()
	}
	if _, err := s.Servers.Do(ctx, address, s.Login, "REPLICAOF", host, port); err != nil {
		return fmt.Sprintf("came up as an empty primary, and could not be made a replica: %v", err)
	}
	return "came up as an empty primary and was made to replicate from " + primary
}

func outOfSync(name, address, primary string, own, said told) string {
	switch {
	case primary == address:
		return ""
	case !own.LinkUp && !own.Syncing:
		return fmt.Sprintf("has no link to %s (master_link_status:down): is masterauth right there, and the network open?", own.Primary)
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

// syncsSince says by which syncs the replicas came, if the primary is the process that counted before.
func (r *scaleRecord) syncsSince(said told) string {
	if r.Syncs.RunID == "" || r.Syncs.RunID != said.RunID {
		return "its primary is another process than before"
	}
	return fmt.Sprintf("its primary has given %s and %s since", plural(int(said.syncs.Full-r.Syncs.Full), "full sync"), plural(int(said.syncs.Partial-r.Syncs.Partial), "partial sync"))
}

// takeOut waits until every pod that goes is gone, and no node of a cluster knows it.
func (s *replicaScale) takeOut(ctx context.Context, now *scaling) string {
	var missing []string
	for _, name := range now.changed() {
		if _, err := s.Pod(ctx, name); err == nil {
			missing = append(missing, name+" is still there")
			continue
		} else if !apierrors.IsNotFound(err) {
			missing = append(missing, err.Error())
			continue
		}
		m := now.record.Members[name]
		if why := s.forget(ctx, now, m); why != "" {
			missing = append(missing, name+" "+why)
			continue
		}
		if m.Gone.IsZero() {
			m.Gone = s.now()
			now.record.setMember(name, m)
		}
	}
	return strings.Join(missing, "; ")
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
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
