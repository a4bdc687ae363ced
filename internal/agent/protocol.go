// Package agent implements the load pod's side of the protocol between operator and pod: HTTPS with
// a certificate and a bearer token per run. All instants in the protocol are on the pod's clock:
// monotonic nanoseconds since its process started.
//
//	GET  /v1/status                     Status
//	POST /v1/start   StartRequest       204; 409 if not Ready, started with another instant, the
//	                                    instant has passed, or meant for another instance; the same
//	                                    instant again is 204
//	GET  /v1/intervals?after=A&ack=K    intervals with Seq > A in order, encoded by
//	                                    record.AppendInterval, each preceded by its length as a
//	                                    uvarint; intervals with Seq <= K may be dropped. Seq =
//	                                    Index+1.
//	                  &wait=D           without a new interval the response is delayed for up to D (a
//	                                    Go duration, at most MaxWait; default 0)
//	                  &max=BYTES        the response ends with the interval that reaches it (at least
//	                                    1, at most MaxBatch, the default)
//	                  &instance=I       409 if the process has another instance (the container was
//	                                    restarted)
//	POST /v1/step   StepRequest         204; another rate from an instant on, for a load that
//	                                    searches; 409 if it does not Run, the instant has passed or
//	                                    lies before another step's, or it is meant for another
//	                                    instance; the same step again is 204
//	POST /v1/stop                       204; the load ends immediately (abort), its record can still
//	                                    be pulled
//	                  ?verify=true      the load has ended as planned: its ledger is still read back,
//	                                    if the plan enables it
//	POST /v1/cleanup                    204 once the keys of the load are removed, if the plan says so,
//	                                    or could not be; it begins with the first request, which is
//	                                    sent when all pods have ended; 409 until then
//	POST /v1/release                    204; the record was pulled and stored: the process may exit;
//	                                    409 while the load runs
//
// Every request carries "Authorization: Bearer <token>"; without it the response is 401 for any
// path. A response of 4xx contains a message as text/plain. A response to /v1/intervals is limited
// to about MaxBatch, so more intervals may be available; its headers contain the state of the pod.
package agent

import (
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Port is the TCP port an agent listens on in its pod.
const Port = 7379

// ServerName is the name in the run's certificate: pods are reached by address, so the name is the
// same for all.
const ServerName = "agent.redquake"

// The paths.
const (
	PathStatus    = "/v1/status"
	PathStart     = "/v1/start"
	PathStep      = "/v1/step"
	PathIntervals = "/v1/intervals"
	PathStop      = "/v1/stop"
	PathCleanup   = "/v1/cleanup"
	PathRelease   = "/v1/release"
)

// The headers of a response to /v1/intervals, consistent with its body.
const (
	HeaderState   = "Redquake-State"    // a State
	HeaderLastSeq = "Redquake-Last-Seq" // newest finished interval, decimal
	HeaderLost    = "Redquake-Lost"     // Status.Lost, decimal
)

const (
	// MaxWait is the maximum time that GET /v1/intervals waits for a new interval.
	MaxWait = 5 * time.Second
	// MaxBatch is the size in bytes above which no further interval is added to a response to GET
	// /v1/intervals, unless the request says less. It contains at least one, if there is one.
	MaxBatch = 4 << 20
)

// State is the state of an agent. It only advances.
type State string

// The states. Failed can follow Preparing, Ready, Running or Verifying; after a stop each of these
// is followed by Finished.
// Verifying is between Running and Finished, if the plan enables it.
const (
	Preparing State = "Preparing" // connecting, prefilling
	Ready     State = "Ready"     // waits for the start
	Running   State = "Running"   // a start instant is set (it may be in the future)
	// the load has ended, there are no further intervals; its ledger is being read back, which a stop
	// ends
	Verifying State = "Verifying"
	Finished  State = "Finished" // there are no further intervals
	// could not prepare or continue, with Reason and Message; the record can be pulled
	Failed State = "Failed"
)

// Ended reports whether the pod has finished its work: there are no further intervals, and
// Status.Ledger and Status.Guarantees are final.
func (s State) Ended() bool {
	return s == Finished || s == Failed
}

// Reasons of Failed in addition to those of package plan.
const (
	ReasonOther      = "Other"      // an error without a reason, or a panic; Message contains its text
	ReasonTerminated = "Terminated" // the pod was terminated (SIGTERM) before the load ended
)

// Status is the answer to GET /v1/status.
type Status struct {
	Run string `json:"run"`
	Pod int    `json:"pod"`
	// random, per process: a restarted container has a new clock and record
	Instance string `json:"instance"`
	State    State  `json:"state"`
	// of Failed: a plan.Reason, ReasonOther or ReasonTerminated; of Preparing: of what is waited for
	Reason string `json:"reason,omitempty"`
	// human-readable: progress of the preparation, or what failed, with the address
	Message string `json:"message,omitempty"`

	Now int64 `json:"now"` // the pod's clock when the response was created
	// the wall clock at the same instant, nanoseconds since 1970
	Wall      int64  `json:"wall,omitempty"`
	StartAt   int64  `json:"startAt,omitempty"`   // the start instant that was set, pod's clock
	StartedAt int64  `json:"startedAt,omitempty"` // when the load actually began, pod's clock
	LastSeq   uint64 `json:"lastSeq"`             // newest finished interval; 0 = none yet
	// intervals that were dropped before they were acknowledged
	Lost uint64 `json:"lost,omitempty"`

	// result of the verification; only once ended, if the plan enables it
	Ledger *record.Ledger `json:"ledger,omitempty"`
	// how often was false what applications count on; only once ended, if the workload finds that out
	Guarantees *record.Guarantees `json:"guarantees,omitempty"`

	Server *record.Server `json:"server,omitempty"` // the first reading of INFO, once read
	// what the user should know of the deployment, in sentences; at most 16 are read
	Notes []string `json:"notes,omitempty"`
	// the discovered topology; absent before, and for a standalone server
	Layout *Layout `json:"layout,omitempty"`
}

// Layout lists the servers of a deployment, host:port each; at most maxServers of each role.
type Layout struct {
	Topology  string   `json:"topology"` // Standalone | Replication | Sentinel | Cluster
	Primaries []string `json:"primaries,omitempty"`
	Replicas  []string `json:"replicas,omitempty"`
}

// maxServers bounds the lists of a Layout.
const maxServers = 64

func layoutOf(m *topology.Map) *Layout {
	if m == nil {
		return nil
	}
	first := func(servers []string) []string { return servers[:min(len(servers), maxServers)] }
	return &Layout{
		Topology:  string(m.Kind),
		Primaries: first(m.Primaries()),
		Replicas:  first(m.Replicas()),
	}
}

// StartRequest sets the start instant T on the pod's clock.
type StartRequest struct {
	At       int64  `json:"at"`
	Instance string `json:"instance,omitempty"` // the process whose clock was read; "" = any
}

// StepRequest sets the rate of a load that searches, from an instant on.
type StepRequest struct {
	At       int64   `json:"at"`   // nanoseconds since the start instant T
	Rate     float64 `json:"rate"` // requests/s over all pods; 0 = the load ends at At
	Instance string  `json:"instance,omitempty"`
}
