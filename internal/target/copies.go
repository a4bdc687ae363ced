package target

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
)

// longestLag is the time since a replica's last acknowledgement, in seconds, from which it counts as lost: the default of min-replicas-max-lag.
const longestLag = 10

// markSentinels gives servers that do not answer the role of a sentinel if another pod of their controller is one.
func markSentinels(found []Server) {
	of := map[types.UID]bool{}
	for i := range found {
		if owner := metav1.GetControllerOf(found[i].Pod); owner != nil && found[i].State.Role == topology.Sentinel {
			of[owner.UID] = true
		}
	}
	for i := range found {
		if owner := metav1.GetControllerOf(found[i].Pod); owner != nil && found[i].Err != nil && of[owner.UID] {
			found[i].State.Role = topology.Sentinel
		}
	}
}

// missingPods are the pods of a target that do not run, or that a StatefulSet lacks. Pods that have ended for good, and those of sentinels, are no copies.
func (r Redis) missingPods(ctx context.Context, all []corev1.Pod, found []Server) ([]Missing, error) {
	sentinels := map[types.UID]bool{}
	for i := range found {
		if owner := metav1.GetControllerOf(found[i].Pod); owner != nil && found[i].State.Role == topology.Sentinel {
			sentinels[owner.UID] = true
		}
	}
	var missing []Missing
	exists, sets := map[string]bool{}, map[types.UID]string{}
	for i := range all {
		pod := &all[i]
		owner := metav1.GetControllerOf(pod)
		if pod.Labels[v1alpha1.LabelLoadTest] != "" || owner != nil && sentinels[owner.UID] {
			continue
		}
		if owner != nil && owner.Kind == "StatefulSet" {
			sets[owner.UID] = owner.Name
		}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		exists[pod.Name] = true
		if why := absence(pod); why != "" {
			missing = append(missing, Missing{Name: pod.Name, Why: why, Shard: NoShard})
		}
	}
	for _, name := range sets {
		lacking, err := r.lacking(ctx, name, exists)
		if err != nil {
			return nil, err
		}
		missing = append(missing, lacking...)
	}
	return missing, nil
}

// lacking are the pods that a StatefulSet should have and that do not exist; none where it cannot be read.
func (r Redis) lacking(ctx context.Context, name string, exists map[string]bool) ([]Missing, error) {
	set := &appsv1.StatefulSet{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, set); apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read StatefulSet %s: %w", name, err)
	}
	var missing []Missing
	first, replicas := int32(0), int32(1)
	if set.Spec.Ordinals != nil {
		first = set.Spec.Ordinals.Start
	}
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	for n := first; n < first+replicas; n++ {
		if pod := fmt.Sprintf("%s-%d", name, n); !exists[pod] {
			missing = append(missing, Missing{Name: pod, Why: "does not exist", Shard: NoShard})
		}
	}
	return missing, nil
}

// listing is a replica in the list of its primary.
type listing struct {
	topology.Attached
	shard int
}

func (l listing) inSync() bool { return l.Online && l.Lag <= longestLag }

// markCopies sets which servers are copies in sync, by their own view and by the lists of replicas. It adds the replicas that are in a list and in no pod of the target.
func markCopies(c *Census) {
	byAddress, others := listings(c)
	for i := range c.Servers {
		s := &c.Servers[i]
		s.Behind = behind(s)
		if s.Behind != "" || s.State.Role != topology.Replica {
			continue
		}
		listed, known := byAddress[s.Address]
		if !known { // it announces another address
			if at := slices.IndexFunc(others, func(l listing) bool { return l.shard == s.Shard && l.inSync() }); at >= 0 {
				others = slices.Delete(others, at, at+1)
				continue
			}
		}
		if !known || !listed.inSync() {
			s.Behind = "is not listed as online by its primary"
		}
	}
	c.addListed(byAddress, others)
}

// listings are the replicas that the servers list: by the address of a server or of a missing node, and the others.
func listings(c *Census) (byAddress map[string]listing, others []listing) {
	ours := map[string]bool{}
	for i := range c.Servers {
		ours[c.Servers[i].Address] = true
	}
	for i := range c.Missing {
		ours[c.Missing[i].address] = true
	}
	byAddress = map[string]listing{}
	for i := range c.Servers {
		for _, a := range c.Servers[i].State.Replication.Replicas {
			if l := (listing{a, c.Servers[i].Shard}); ours[a.Address] {
				byAddress[a.Address] = l
			} else {
				others = append(others, l)
			}
		}
	}
	return byAddress, others
}

// behind is why a server by itself is no copy in sync.
func behind(s *Server) string {
	link := s.State.Replication
	switch {
	case s.Err != nil:
		return "does not answer"
	case s.State.Loading:
		return "loads its data"
	case s.State.Role == topology.Replica && link.Syncing:
		return "copies the whole data set"
	case s.State.Role == topology.Replica && !link.LinkUp:
		return "is not connected to its primary"
	case s.State.Role == topology.Unknown:
		return "has an unknown role"
	}
	return ""
}

// addListed adds the listed replicas that can be no server and no missing copy of their shard, each of which may be listed by another address.
func (c *Census) addListed(byAddress map[string]listing, others []listing) {
	for i := range c.Missing {
		c.Missing[i].Online = c.Missing[i].address != "" && byAddress[c.Missing[i].address].inSync()
	}
	unknown := map[int]int{} // copies by shard of which no list has the address
	for i := range c.Servers {
		if _, listed := byAddress[c.Servers[i].Address]; !listed && c.Servers[i].Behind != "" && c.Servers[i].State.Role != topology.Sentinel {
			unknown[c.Servers[i].Shard]++
		}
	}
	for i := range c.Missing {
		if _, listed := byAddress[c.Missing[i].address]; !listed {
			unknown[c.Missing[i].Shard]++
		}
	}
	slices.SortStableFunc(others, func(a, b listing) int { return rank(a) - rank(b) })
	for _, l := range others {
		if unknown[l.shard]--; unknown[l.shard] >= 0 {
			continue
		}
		one := Missing{Name: l.Address, Shard: l.shard, Online: l.inSync()}
		if !one.Online {
			one.Why = "is not online"
		}
		c.Missing = append(c.Missing, one)
	}
}

// rank puts replicas in sync first: the first ones are taken for known copies, which do not count twice.
func rank(l listing) int {
	if l.inSync() {
		return 0
	}
	return 1
}
