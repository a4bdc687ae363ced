// Package builders creates objects that many tests start from.
package builders

import (
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// Plan is a valid plan of 100 users that set keys, over 2 pods. Its target does not exist.
func Plan() *plan.Plan {
	return &plan.Plan{
		Run: "r", Pods: 2, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{"redis:6379"}},
		Client: plan.Client{
			Connections:    50,
			Pipeline:       1,
			DialTimeout:    time.Second,
			RequestTimeout: time.Second,
			Protocol:       3,
		},
		Shape: plan.Shape{Users: 100, Duration: time.Minute},
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}}},
			Keyspace: plan.Keyspace{Prefix: "rq:", Keys: 10, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"PING"}},
	}
}
