package api

import (
	"encoding/json"
	"testing"
)

func TestPodHealth(t *testing.T) {
	for _, c := range []struct {
		name, json, problem string
		healthy             bool
	}{
		{"ready", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, "Running", true},
		{"done", `{"status":{"phase":"Succeeded"}}`, "Succeeded", true},
		{
			"crashing", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}],
			"containerStatuses":[{"name":"redis","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
			"Running redis: CrashLoopBackOff", false,
		},
		{
			"unschedulable",
			`{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/2 nodes"}]}}`,
			"Pending Unschedulable: 0/2 nodes", false,
		},
		{
			"lost", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"}}`,
			"Running Terminating", false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pod Pod
			if err := json.Unmarshal([]byte(c.json), &pod); err != nil {
				t.Fatal(err)
			}
			if pod.Healthy() != c.healthy || pod.Problem() != c.problem {
				t.Errorf("healthy %v, problem %q; want %v, %q", pod.Healthy(), pod.Problem(), c.healthy, c.problem)
			}
		})
	}
}
