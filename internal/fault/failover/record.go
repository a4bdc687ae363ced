package failover

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// failoverRecord is the record of a failover. The failover has happened once the recorded primary
// is no longer the primary: so no operator process begins it twice.
type failoverRecord struct {
	Method v1alpha1.FailoverMethod `json:"method"` // never Auto
	// host:port of the primary, as the topology names it
	Primary     string             `json:"primary"`
	Cluster     *clusterRecord     `json:"cluster,omitempty"`
	Sentinel    *sentinelRecord    `json:"sentinel,omitempty"`
	Replication *replicationRecord `json:"replication,omitempty"`
}

// clusterRecord is what is recorded of a failover in a cluster beside what every failover records.
type clusterRecord struct {
	Node  string `json:"node"`  // ID of the primary
	Epoch uint64 `json:"epoch"` // config epoch: it grows with every failover
	// one that the shard serves: the node that owns it is the shard's primary
	Slot uint16 `json:"slot"`
	// host:port of the replica to promote, as it announced itself
	Replica string `json:"replica"`
	// host:port of the shard's other replicas, which are queried as well
	Others []string `json:"others,omitempty"`
}

// sentinelRecord is what is recorded of a failover through Sentinel beside what every failover
// records.
type sentinelRecord struct {
	MasterName string `json:"masterName"`
	// config epoch: it grows with every failover
	Epoch int64 `json:"epoch"`
	// host:port of the one that gets the command: it refuses a second
	Sentinel string `json:"sentinel"`
	// COORDINATED, where the sentinel supports it
	Option string `json:"option,omitempty"`
	// for how long writes are paused; 0 where they are not
	Pause time.Duration `json:"pauseNanoseconds,omitempty"`
	// whether the pause held until the old primary was demoted; nil until that is known
	Held *bool `json:"held,omitempty"`
}

// replicationRecord is what is recorded of a failover without sentinels beside what every failover
// records.
type replicationRecord struct {
	Replica string `json:"replica"` // host:port of the replica to promote, as it announced itself
	// The primary of each replica that is not to be promoted, by the replica's host:port. FAILOVER
	// does not change it: the replica must be pointed to the new primary.
	Follows map[string]string `json:"follows,omitempty"`
}
