// Package agent is a load pod's side of the wire between the operator and the pod: HTTPS with a certificate and a bearer token that
// belong to one run. All instants on the wire are the pod's own clock: nanoseconds since its process began, monotonic.
//
//	GET  /v1/status                     Status
//	POST /v1/start   StartRequest       204; 409 if not Ready, started with another instant, the instant has passed, or meant for
//	                                    another instance; the same instant again is 204
//	GET  /v1/intervals?after=A&ack=K    intervals with Seq > A in order, encoded by record.AppendInterval, each led by its length
//	                                    as a uvarint; intervals with Seq <= K may be forgotten. Seq = Index+1.
//	                  &wait=D           nothing new: the answer waits for up to D (a Go duration, at most MaxWait; default 0)
//	                  &instance=I       409 if this process is another one (the container restarted)
//	POST /v1/step   StepRequest         204; another rate from an instant on, for a load that searches; 409 if it does not Run, the instant has
//	                                    passed or lies before another step's, or it is meant for another instance; the same step again is 204
//	POST /v1/stop                       204; the load ends now (abort), what was measured is kept and can be pulled
//	POST /v1/release                    204; everything was pulled and stored: the process may exit; 409 while the load runs
//
// Every request carries "Authorization: Bearer <token>"; without it the answer is 401, whatever the path. An answer of 4xx carries a
// sentence as text/plain. An answer to /v1/intervals is at most about MaxBatch long, so more may wait; its headers say where the pod stood.
package agent

import (
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Port is the TCP port an agent listens on in its pod.
const Port = 7379

// ServerName is the name in the run's certificate: pods are reached by address, so the name is the same for all.
const ServerName = "agent.redquake"

// The paths.
const (
	PathStatus    = "/v1/status"
	PathStart     = "/v1/start"
	PathStep      = "/v1/step"
	PathIntervals = "/v1/intervals"
	PathStop      = "/v1/stop"
	PathRelease   = "/v1/release"
)

// The headers of an answer to /v1/intervals, taken at the same instant as its body.
const (
	HeaderState   = "Redquake-State"    // a State
	HeaderLastSeq = "Redquake-Last-Seq" // newest finished interval, decimal
	HeaderLost    = "Redquake-Lost"     // Status.Lost, decimal
)

const (
	// MaxWait is the longest that GET /v1/intervals waits for something new.
	MaxWait = 5 * time.Second
	// MaxBatch is the size in bytes after which an answer to GET /v1/intervals takes no further interval. It always holds at least one, if there is one.
	MaxBatch = 4 << 20
)

// State is where an agent stands. It only moves forward.
type State string

// The states. Failed can follow Preparing, Ready or Running; a stop leads from each of these to Finished.
// Verifying comes only where the plan asks for it, between Running and Finished.
const (
	Preparing State = "Preparing" // dialling, pre-filling
	Ready     State = "Ready"     // waits for the start
	Running   State = "Running"   // a start instant is set (it may lie ahead)
	Verifying State = "Verifying" // the load has ended, no further interval will come; its ledger is read back. A stop ends that
	Finished  State = "Finished"  // no further interval will come
	Failed    State = "Failed"    // could not prepare or go on; Reason and Message say why; what was measured can be pulled
)

// Ended says that the pod has nothing more to do: no further interval will come, and Status.Ledger is final.
func (s State) Ended() bool { return s == Finished || s == Failed }

// Reasons of Failed beside those of package engine.
const (
	ReasonOther      = "Other"      // an error that names no reason, or a panic: Message holds its text
	ReasonTerminated = "Terminated" // the pod was told to end (SIGTERM) before the load was over
)

// Status is the answer to GET /v1/status.
type Status struct {
	Run      string `json:"run"`
	Pod      int    `json:"pod"`
	Instance string `json:"instance"` // random, per process: after a restart of the container clock and record are others
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`  // of Failed: a engine.Reason, ReasonOther or ReasonTerminated
	Message  string `json:"message,omitempty"` // for people: progress of the preparation, or what failed, with the address

	Now       int64  `json:"now"`                 // the pod's clock when the answer was made
	StartAt   int64  `json:"startAt,omitempty"`   // the start instant that was set, pod's clock
	StartedAt int64  `json:"startedAt,omitempty"` // when the load really began, pod's clock
	LastSeq   uint64 `json:"lastSeq"`             // newest finished interval; 0 = none yet
	Lost      uint64 `json:"lost,omitempty"`      // intervals that had to be forgotten before they were acknowledged

	Ledger *record.Ledger `json:"ledger,omitempty"` // what became of the acknowledged writes; only when Finished, where the plan asks for it

	Server *record.Server `json:"server,omitempty"` // the first reading of INFO, once made
	Layout *Layout        `json:"layout,omitempty"` // how the deployment looked when it was found out; absent before, and for one server at an address
}

// Layout is a deployment by its servers, host:port each. Of a large one they are the first ones.
type Layout struct {
	Topology  string   `json:"topology"` // Standalone | Replication | Sentinel | Cluster
	Primaries []string `json:"primaries,omitempty"`
	Replicas  []string `json:"replicas,omitempty"`
}

// mostServers bounds the lists of a Layout.
const mostServers = 64

func layoutOf(m *topology.Map) *Layout {
	if m == nil {
		return nil
	}
	first := func(servers []string) []string { return servers[:min(len(servers), mostServers)] }
	return &Layout{Topology: string(m.Kind), Primaries: first(m.Primaries()), Replicas: first(m.Replicas())}
}

// StartRequest sets the start instant T on the pod's clock.
type StartRequest struct {
	At       int64  `json:"at"`
	Instance string `json:"instance,omitempty"` // the process whose clock was read; "" = whichever answers
}

// StepRequest sets the rate of a load that searches, from an instant on.
type StepRequest struct {
	At       int64   `json:"at"`   // nanoseconds since the start instant T
	Rate     float64 `json:"rate"` // requests/s over all pods; 0 = the load ends at At
	Instance string  `json:"instance,omitempty"`
}
