// Package plan defines what a run does: the plan that is shared by operator and load pods, its
// validation, and its shape over time. It depends on no engine or driver, so that the manager does
// not link them.
package plan

import (
	"strings"
	"time"
)

// Plan is the input of a load pod. It is the contract between the operator and the pod: one type,
// compiled into both, written as JSON into a ConfigMap that every pod of the run mounts. It
// contains no secrets, only the paths of their files.
// Durations are nanoseconds in the JSON.
type Plan struct {
	Run      string        `json:"run"`      // identifies the run; the load test's UID
	Pods     int           `json:"pods"`     // how many pods share the load
	Interval time.Duration `json:"interval"` // the recording grid's step
	// where Redis is; without addresses and sentinels for a workload without Redis
	Target   Target        `json:"target"`
	Client   Client        `json:"client"`         // how to connect to it
	Shape    Shape         `json:"shape"`          // amount of load and duration, over all pods
	Workload Workload      `json:"workload"`       // the requests
	Probe    Probe         `json:"probe"`          // the low-rate stream in parallel with the load
	Info     time.Duration `json:"info,omitempty"` // how often pod 0 reads INFO; 0 = never

	Verify *Verify `json:"verify,omitempty"` // nil = no ledger of acknowledged writes
}

// IsSocket reports whether an address is unix://PATH, as package redis dials it, instead of
// host:port.
func IsSocket(address string) bool {
	return strings.HasPrefix(address, "unix://")
}

// LedgerOperation is the name of the ledger writes in every record.
const LedgerOperation = "ledger"

// Verify makes a share of the load's requests ledger writes, which are read back after the load:
// see package ledger.
type Verify struct {
	Share       float64 `json:"share"`                 // of all requests, above 0, at most 1
	StaleReads  bool    `json:"staleReads,omitempty"`  // read registers from replicas during the load
	DualPrimary bool    `json:"dualPrimary,omitempty"` // send writes to every node during the load
}

// Target is a Redis deployment from the perspective of a client.
type Target struct {
	Topology Topology `json:"topology,omitempty"` // "" = Standalone
	// host:port; names are resolved at most 20 ms before a dial. Standalone uses the first that
	// replies; may be empty if there are sentinels. Of the command line also one unix://PATH
	Addresses []string `json:"addresses"`
	// with topology Sentinel, and optionally with Auto
	Sentinel *Sentinel `json:"sentinel,omitempty"`
	Username string    `json:"username,omitempty"` // ACL user; "" = default
	// read for every dial, so that a rotated secret is picked up
	PasswordFile string `json:"passwordFile,omitempty"`
	TLS          *TLS   `json:"tls,omitempty"`      // nil = plain TCP
	Database     int    `json:"database,omitempty"` // 0 in a cluster
}

// IsSet reports whether there is a Redis: some workloads can do without.
func (t *Target) IsSet() bool {
	return len(t.Addresses) > 0 || t.Sentinel != nil
}

// Topology is the topology of a deployment: one of topology.Kind, or Auto.
type Topology string

// The topologies.
const (
	TopologyAuto        Topology = "Auto" // detected from the servers before the start
	TopologyStandalone  Topology = "Standalone"
	TopologyReplication Topology = "Replication"
	TopologySentinel    Topology = "Sentinel"
	TopologyCluster     Topology = "Cluster"
)

// Sentinel is the sentinels that monitor a deployment.
type Sentinel struct {
	// host:port; sentinels that they announce are queried as well
	Addresses    []string `json:"addresses"`
	MasterName   string   `json:"masterName,omitempty"`   // "" = the only one that they monitor
	Username     string   `json:"username,omitempty"`     // ACL user of the sentinels; "" = default
	PasswordFile string   `json:"passwordFile,omitempty"` // read at every dial
	TLS          *TLS     `json:"tls,omitempty"`          // nil = plain TCP
}

// TLS are the TLS settings. Files are in PEM format.
type TLS struct {
	CAFile             string `json:"caFile,omitempty"` // "" = the system's roots
	CertFile           string `json:"certFile,omitempty"`
	KeyFile            string `json:"keyFile,omitempty"`
	ServerName         string `json:"serverName,omitempty"` // "" = the host that was dialled
	InsecureSkipVerify bool   `json:"insecureSkipVerify,omitempty"`
}

// Client is how the load connects to Redis. In mode Dedicated one request is in flight per
// connection, or one batch if Pipeline > 1.
type Client struct {
	Connections int `json:"connections"` // per pod, at least 1
	Pipeline    int `json:"pipeline"`    // requests per batch, at least 1
	// of one attempt, TCP and TLS and HELLO
	DialTimeout time.Duration `json:"dialTimeout"`
	// from the send; a request with a later reply is Unknown
	RequestTimeout time.Duration `json:"requestTimeout"`
	// of an operation of cacheAside and http; 0 = RequestTimeout
	RemoteTimeout time.Duration `json:"remoteTimeout,omitempty"`
	Protocol      int           `json:"protocol"` // 2 | 3
	// where read-only commands go; "" = Primary
	ReadFrom ReadFrom `json:"readFrom,omitempty"`
	Mode     Mode     `json:"mode,omitempty"` // "" = Dedicated
	// of a connection, which is then replaced between two requests; 0 = unlimited
	MaxAge time.Duration `json:"maxAge,omitempty"`
	// of a failed request, at most; its latency counts from the first attempt
	Retries int `json:"retries,omitempty"`
	// added to each round trip in the client, to simulate a slower network
	AddedLatency time.Duration `json:"addedLatency,omitempty"`
	Driver       Driver        `json:"driver,omitempty"` // "" = Native
	// of the driver's library, which has its own defaults
	Options Options  `json:"options,omitempty"`
	Adapter *Adapter `json:"adapter,omitempty"` // of a library that is not in Go
}

// ReadFrom is where read-only commands go. Writes go to a primary.
type ReadFrom string

// Where to read.
const (
	ReadPrimary ReadFrom = "Primary"
	ReadReplica ReadFrom = "Replica" // the primary if no replica is known
	ReadAny     ReadFrom = "Any"     // all servers round-robin
)

// Mode is how users share connections.
type Mode string

// The modes.
const (
	Dedicated   Mode = "Dedicated"   // one request, or batch, in flight per connection
	Multiplexed Mode = "Multiplexed" // concurrent requests of several users are sent in one batch
)

// Shape is the amount of load over time. A user sends one batch of Client.Pipeline requests per
// turn. Exactly one of Users, Rate, Stages sets the amount; with Rate > 0 or stages with rates it
// is an open loop, and Users bounds the number of arrivals in flight (0 = Connections*Pipeline).
type Shape struct {
	Users int     `json:"users,omitempty"` // closed loop: virtual users over all pods
	Rate  float64 `json:"rate,omitempty"`  // open loop: requests/s over all pods
	// open loop: how arrivals follow each other; "" = Even
	Arrivals Arrivals `json:"arrivals,omitempty"`
	// closed loop: pause of a user between a reply and its next request
	ThinkTime time.Duration `json:"thinkTime,omitempty"`
	// users or rate grow linearly from 0 over this time
	RampUp time.Duration `json:"rampUp,omitempty"`
	// open loop that begins at Rate = Search.From; Runner.Step sets further rates, and the end
	Search *Search `json:"search,omitempty"`
	// linear from the previous stage's end value (0 at first) to this one's; without RampUp and WarmUp
	Stages []Stage `json:"stages,omitempty"`
	// recorded, but excluded from all figures; follows RampUp
	WarmUp time.Duration `json:"warmUp,omitempty"`
	// after RampUp and WarmUp; with Stages: their sum
	Duration time.Duration `json:"duration,omitempty"`
	// number of requests over all pods after which the load ends; Duration, if set, is the upper bound
	Requests uint64 `json:"requests,omitempty"`
}

// Arrivals is how the arrivals of an open loop follow each other.
type Arrivals string

// The arrivals.
const (
	Even    Arrivals = "Even"    // each in the middle of its slot, 1/rate
	Poisson Arrivals = "Poisson" // independent of each other, as those of many users are
)

// Stage is a part of a Shape.
type Stage struct {
	Duration time.Duration `json:"duration"`
	Users    int           `json:"users,omitempty"`
	Rate     float64       `json:"rate,omitempty"`
}

// OpenLoop reports whether arrivals are scheduled in advance.
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

// Length returns the time from the start to the end of the run, including ramp-up and warm-up; 0 if
// only Requests ends it.
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

// MeasuredFrom returns when the measured time begins: after ramp-up and warm-up, counted from the
// start.
func (s Shape) MeasuredFrom() time.Duration {
	return s.RampUp + s.WarmUp
}

// Probe is a low-rate open-loop stream in parallel with the load: one command at a fixed rate over
// separate connections. While no connection is established every arrival dials a new one, even
// while older dials hang, to measure the first instant at which the server serves a new client. Its
// command may contain the placeholders of Command; {user} is the pod's index.
type Probe struct {
	// per second, of the run; in a cluster for each shard; 0 = no probe
	Rate float64 `json:"rate"`
	// e.g. SET rq:probe:{user} {seq} EX 60: a write, because a read-only server is an outage for most
	// applications; or GET rq:probe:{user}
	Words []string `json:"words,omitempty"`
}

// OperationTimeout is how long an operation of the load may take.
func (p *Plan) OperationTimeout() time.Duration {
	if p.Workload.IsRemote() && p.Client.RemoteTimeout > 0 {
		return p.Client.RemoteTimeout
	}
	return p.Client.RequestTimeout
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

// ReadOnly tells which of the Operations only read.
func (p *Plan) ReadOnly() []bool {
	only := make([]bool, len(p.Operations()))
	for i, o := range p.Workload.Operations() {
		only[i] = o.ReadOnly
	}
	return only
}

// Tallies are the names of the plan's further counters, nil for most workloads.
func (p *Plan) Tallies() []string {
	return p.Workload.Tallies()
}

// KernelStamps reports whether the kernel stamps the replies of the load: a time for which the load
// generator did not run is then no part of the time from the send.
func (p *Plan) KernelStamps() bool {
	return !p.Client.Driver.IsLibrary() && p.Workload.HTTP == nil && p.Workload.CacheAside == nil
}
