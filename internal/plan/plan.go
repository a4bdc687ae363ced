// Package plan says what a run does: the plan that operator and load pods share, its one validation, and its shape over time. It knows no engine
// and no driver: whoever only decides about a load, as the manager does, needs nothing else.
package plan

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/search"
)

// Plan is all that a load pod needs to know. It is the contract between the operator and the pod: one type, compiled into
// both, written as JSON into a ConfigMap that every pod of the run mounts. It holds no secret, only the files where they lie.
// Durations are nanoseconds in the JSON.
type Plan struct {
	Run      string        `json:"run"`            // identifies the run; the load test's UID
	Pods     int           `json:"pods"`           // how many pods share the load
	Interval time.Duration `json:"interval"`       // the recording grid's step
	Target   Target        `json:"target"`         // where Redis is
	Client   Client        `json:"client"`         // how to talk to it
	Shape    Shape         `json:"shape"`          // how much, how long: over all pods
	Workload Workload      `json:"workload"`       // what to send
	Probe    Probe         `json:"probe"`          // the thin stream beside the load
	Info     time.Duration `json:"info,omitempty"` // how often pod 0 asks Redis for INFO; 0 = never

	Verify *Verify `json:"verify,omitempty"` // nil = no ledger of acknowledged writes
}

// LedgerOperation is the name of the ledger writes in every record.
const LedgerOperation = "ledger"

// Verify makes a share of the load's requests ledger writes, which are read back after the load: package ledger says how.
type Verify struct {
	Share       float64 `json:"share"`                 // of all requests, above 0, at most 1
	StaleReads  bool    `json:"staleReads,omitempty"`  // read registers from replicas beside the load
	DualPrimary bool    `json:"dualPrimary,omitempty"` // offer writes to every node beside the load
}

// Target is a Redis deployment as a client reaches it.
type Target struct {
	Topology     Topology  `json:"topology,omitempty"`     // "" = Standalone
	Addresses    []string  `json:"addresses"`              // host:port; names are resolved anew, at most 20 ms before a dial. Standalone uses the first that answers; may be empty where there are sentinels
	Sentinel     *Sentinel `json:"sentinel,omitempty"`     // who tells the primary; with Sentinel, and with Auto where there are some
	Username     string    `json:"username,omitempty"`     // ACL user; "" = default
	PasswordFile string    `json:"passwordFile,omitempty"` // read at every dial, so that a rotated secret is picked up
	TLS          *TLS      `json:"tls,omitempty"`          // nil = plain TCP
	Database     int       `json:"database,omitempty"`     // 0 in a cluster
}

// Topology is how the servers of a deployment relate, as it is asked for: one of topology.Kind, or Auto.
type Topology string

// The topologies.
const (
	TopologyAuto        Topology = "Auto" // asked of the servers before the start
	TopologyStandalone  Topology = "Standalone"
	TopologyReplication Topology = "Replication"
	TopologySentinel    Topology = "Sentinel"
	TopologyCluster     Topology = "Cluster"
)

// Sentinel is how to reach the sentinels that watch a deployment.
type Sentinel struct {
	Addresses    []string `json:"addresses"`              // host:port; those that they announce are asked too
	MasterName   string   `json:"masterName,omitempty"`   // "" = the only one that they watch
	Username     string   `json:"username,omitempty"`     // ACL user of the sentinels; "" = default
	PasswordFile string   `json:"passwordFile,omitempty"` // read at every dial
	TLS          *TLS     `json:"tls,omitempty"`          // nil = plain TCP
}

// TLS says how to trust the server and how to be trusted by it. Paths are of PEM files.
type TLS struct {
	CAFile             string `json:"caFile,omitempty"` // "" = the system's roots
	CertFile           string `json:"certFile,omitempty"`
	KeyFile            string `json:"keyFile,omitempty"`
	ServerName         string `json:"serverName,omitempty"` // "" = the host that was dialled
	InsecureSkipVerify bool   `json:"insecureSkipVerify,omitempty"`
}

// Client is how the load talks to Redis. Where Mode is Dedicated one request is in flight per connection, or one batch where Pipeline > 1.
type Client struct {
	Connections    int           `json:"connections"`            // per pod, at least 1
	Pipeline       int           `json:"pipeline"`               // requests per batch, at least 1
	DialTimeout    time.Duration `json:"dialTimeout"`            // of one attempt, TCP and TLS and HELLO
	RequestTimeout time.Duration `json:"requestTimeout"`         // from the send; a reply after it is Unknown
	Protocol       int           `json:"protocol"`               // 2 | 3
	ReadFrom       ReadFrom      `json:"readFrom,omitempty"`     // where read-only commands go; "" = Primary
	Mode           Mode          `json:"mode,omitempty"`         // "" = Dedicated
	MaxAge         time.Duration `json:"maxAge,omitempty"`       // of a connection, which is then replaced between two requests; 0 = no end
	Retries        int           `json:"retries,omitempty"`      // of a failed request, at most; its latency counts from the first attempt
	AddedLatency   time.Duration `json:"addedLatency,omitempty"` // added to each round trip in the client, to stand for a slower network
	Driver         Driver        `json:"driver,omitempty"`       // "" = Native
	GoRedis        *GoRedis      `json:"goRedis,omitempty"`      // with Driver GoRedis; nil = its defaults
}

// ReadFrom is where read-only commands go. Writes go to a primary.
type ReadFrom string

// Where to read.
const (
	ReadPrimary ReadFrom = "Primary"
	ReadReplica ReadFrom = "Replica" // without one that is known: the primary
	ReadAny     ReadFrom = "Any"     // all in turn
)

// Mode is how users share connections.
type Mode string

// The modes.
const (
	Dedicated   Mode = "Dedicated"   // one request, or batch, in flight per connection
	Multiplexed Mode = "Multiplexed" // what users ask for at the same time goes out in one batch
)

// Driver is the client that makes the requests.
type Driver string

// The drivers.
const (
	NativeDriver  Driver = "Native"  // Redquake's own: no retries, cheap
	GoRedisDriver Driver = "GoRedis" // go-redis with its pool, its retries and its view of the topology: what a Go service lives through
)

// GoRedis are options of go-redis, by its names.
type GoRedis struct {
	PoolSize            int           `json:"poolSize,omitempty"`            // 0 = Client.Connections
	MaxRetries          *int          `json:"maxRetries,omitempty"`          // nil = its default, -1 = none
	StateReloadInterval time.Duration `json:"stateReloadInterval,omitempty"` // of a cluster's layout; 0 = its default
}

// Shape is how much load there is at which time. A user's turn is one batch of Client.Pipeline requests. Exactly one of Users, Rate, Stages says how much;
// Rate > 0 or stages with rates make it open loop, and Users then bounds the number of arrivals in flight (0 = Connections*Pipeline).
type Shape struct {
	Users     int           `json:"users,omitempty"`     // closed loop: virtual users over all pods
	Rate      float64       `json:"rate,omitempty"`      // open loop: requests/s over all pods
	ThinkTime time.Duration `json:"thinkTime,omitempty"` // closed loop: pause of a user between a reply and its next request
	RampUp    time.Duration `json:"rampUp,omitempty"`    // users or rate grow linearly from 0 over this time
	Search    *search.Spec  `json:"search,omitempty"`    // open loop that begins at Rate = Search.From; Runner.Step brings the further rates, and the end
	Stages    []Stage       `json:"stages,omitempty"`    // linear from the previous stage's end value (0 at first) to this one's; they bring their own ramp: no RampUp, WarmUp
	WarmUp    time.Duration `json:"warmUp,omitempty"`    // measured, but outside every figure; follows RampUp
	Duration  time.Duration `json:"duration,omitempty"`  // after RampUp and WarmUp; with Stages: their sum
	Requests  uint64        `json:"requests,omitempty"`  // end after so many requests over all pods, instead of Duration (which then is the upper bound if > 0)
}

// Stage is a part of a Shape.
type Stage struct {
	Duration time.Duration `json:"duration"`
	Users    int           `json:"users,omitempty"`
	Rate     float64       `json:"rate,omitempty"`
}

// OpenLoop says whether arrivals are fixed in advance.
func (s Shape) OpenLoop() bool {
	if s.Rate > 0 {
		return true
	}
	for _, st := range s.Stages {
		if st.Rate > 0 {
			return true
		}
	}
	return false
}

// Length is the time from the start to the end of the run, ramp-up and warm-up included; 0 where only Requests ends it.
func (s Shape) Length() time.Duration {
	d := s.Duration
	if len(s.Stages) > 0 {
		d = 0
		for _, st := range s.Stages {
			d += st.Duration
		}
	}
	if d == 0 {
		return 0
	}
	return s.RampUp + s.WarmUp + d
}

// MeasuredFrom is when the figures begin: after ramp-up and warm-up, counted from the start.
func (s Shape) MeasuredFrom() time.Duration { return s.RampUp + s.WarmUp }

// Probe is the thin open-loop stream beside the load: one command at a low fixed rate on connections of its own. While no
// connection is up every arrival dials afresh, also while older dials still hang, so that the first instant at which the
// server serves a new client is seen. Its command may hold the placeholders of Command; {user} is the pod's index.
type Probe struct {
	Rate  float64  `json:"rate"`            // per second and pod; 0 = no probe
	Words []string `json:"words,omitempty"` // e.g. SET rq:probe:{user} {seq} EX 60: a write, as read-only is an outage to most
}

// Operations are the names of the plan's operations, in the order of Interval.Ops.
func (p *Plan) Operations() []string {
	var names []string
	for _, o := range p.Workload.Operations() {
		names = append(names, o.Name)
	}
	if p.Verify != nil {
		names = append(names, LedgerOperation)
	}
	return names
}

// Tallies are the names of the plan's further counters, nil for most workloads.
func (p *Plan) Tallies() []string { return p.Workload.Tallies() }
