package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// TestSequenceIsUniqueOverTheRun: {seq} has each number once over all event loops, pods and drivers, the preparation
// included.
func TestSequenceIsUniqueOverTheRun(t *testing.T) {
	const requests = 3000
	for name, change := range map[string]func(*plan.Plan){
		"300 connections": func(p *plan.Plan) { p.Client.Connections, p.Shape.Users = 300, 600 },
		"open loop": func(p *plan.Plan) {
			p.Client.Connections = 300
			p.Shape = plan.Shape{Rate: 5000, Requests: requests}
		},
		"multiplexed and pipelined": func(p *plan.Plan) {
			p.Client.Connections, p.Shape.Users = 80, 640
			p.Client.Pipeline, p.Client.Mode = 10, plan.Multiplexed
		},
		"GoRedis": func(p *plan.Plan) { p.Client.Driver, p.Shape.Users = plan.GoRedisDriver, 20 },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, time.Microsecond, func(t *testing.T, w *world) {
				p := bare()
				p.Pods, p.Shape.Requests, p.Shape.Duration = 2, requests, 0
				p.Workload.Commands = []plan.Command{
					{Name: "set", Weight: 1, Words: []string{"INCR", "id:{seq}"}},
					{Name: "push", Weight: 1, Words: []string{"INCR", "id:{seq}"}},
				}
				change(p)
				for pod := range p.Pods {
					runPod(t, p, pod, w.dialled())
				}
				synctest.Wait()
				prepared := p.Pods * len(p.Workload.Commands)
				if keys := len(w.server.Keys("id:")); keys != requests+prepared {
					t.Errorf("%d different numbers in %d requests and %d before", keys, requests, prepared)
				}
			})
		})
	}
}
