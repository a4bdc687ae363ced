package object

import (
	"strings"
	"testing"

	cmv1 "github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
	"sigs.k8s.io/yaml"
)

// The statuses that Chaos Mesh's controller writes, and their meaning.
func TestRead(t *testing.T) {
	tests := []struct {
		name, status string
		want         State // without its texts
		wantText     string
	}{
		{"just created", `{}`, State{}, "nothing is selected yet"},
		{"first pass: the conditions come before the records", `
conditions: [{type: Selected, status: "False"}, {type: AllInjected, status: "False"}, {type: AllRecovered, status: "True"}]
experiment: {desiredPhase: Run}`, State{}, "nothing is selected yet"},
		{
			"selected: AllRecovered is True of what was never injected", `
conditions: [{type: Selected, status: "True"}, {type: AllInjected, status: "False"}, {type: AllRecovered, status: "True"}]
experiment: {desiredPhase: Run, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Not Injected,
  injectedCount: 0, recoveredCount: 0}]}`,
			State{Selected: true},
			"shop/redis-0 is Not Injected",
		},
		{
			"on its way", `
experiment: {desiredPhase: Run, containerRecords: [{id: shop/redis-0, phase: Not Injected/Wait, injectedCount: 0}]}`,
			State{Selected: true},
			"shop/redis-0 is Not Injected/Wait",
		},
		{
			"one of two", `
experiment: {desiredPhase: Run, containerRecords: [
  {id: shop/redis-0, selectorKey: ., phase: Injected, injectedCount: 1}, {id: shop/redis-1, selectorKey: .Target,
    phase: Not Injected/Wait, injectedCount: 0}]}`,
			State{Selected: true, Ever: true},
			"shop/redis-1 is Not Injected/Wait",
		},
		{
			"injected; the condition is one pass late", `
conditions: [{type: AllInjected, status: "False"}]
experiment: {desiredPhase: Run, containerRecords: [{id: shop/redis-0/redis, phase: Injected, injectedCount: 1}]}`,
			State{Selected: true, Injected: true, Ever: true},
			"shop/redis-0/redis is Injected",
		},
		{
			"a phase without a count is not believed", `
experiment: {desiredPhase: Run, containerRecords: [{id: shop/redis-0, phase: Injected, injectedCount: 0}]}`,
			State{Selected: true},
			"",
		},
		{
			"refused by the agent", `
experiment: {desiredPhase: Run, containerRecords: [{id: shop/redis-0, phase: Not Injected, injectedCount: 0, events: [
  {type: Failed, operation: Apply, message: "no agent on node-b", timestamp: "2026-11-21T10:00:00Z"}]}]}`,
			State{Selected: true},
			"Apply failed: no agent on node-b",
		},
		{
			"refused first, then not", `
experiment: {desiredPhase: Run, containerRecords: [{id: shop/redis-0, phase: Injected, injectedCount: 1, events: [
  {type: Failed, operation: Apply, message: "no agent on node-b"}, {type: Succeeded, operation: Apply}]}]}`,
			State{Selected: true, Injected: true, Ever: true},
			"shop/redis-0 is Injected",
		},
		{
			"reverted", `
experiment: {desiredPhase: Stop, containerRecords: [{id: shop/redis-0, phase: Not Injected, injectedCount: 1, recoveredCount: 1}]}`,
			State{Selected: true, Ever: true, Stopped: true, Healed: true},
			"reverted",
		},
		{
			"its time passed before it took effect", `
conditions: [{type: AllRecovered, status: "True"}]
experiment: {desiredPhase: Stop, containerRecords: [{id: shop/redis-0, phase: Not Injected, injectedCount: 0}]}`,
			State{Selected: true, Stopped: true},
			"stopped before it took effect",
		},
		{
			"nothing was selected until its time passed",
			`experiment: {desiredPhase: Stop}`,
			State{Stopped: true},
			"stopped before anything was selected",
		},
		{
			"being reverted", `
experiment: {desiredPhase: Stop, containerRecords: [{id: shop/redis-0, phase: Injected/Wait, injectedCount: 1}]}`,
			State{Selected: true, Ever: true, Stopped: true},
			"Injected/Wait",
		},
		{
			"cannot be reverted", `
experiment: {desiredPhase: Stop, containerRecords: [{id: shop/redis-0, phase: Injected, injectedCount: 1, events: [
  {type: Succeeded, operation: Apply}, {type: Failed, operation: Recover, message: "container is dead"}]}]}`,
			State{Selected: true, Injected: true, Ever: true, Stopped: true},
			"Recover failed: container is dead",
		},
		{
			"a kill stays injected", `
experiment: {desiredPhase: Run, containerRecords: [{id: shop/redis-0, phase: Injected, injectedCount: 1, recoveredCount: 0}]}`,
			State{Selected: true, Injected: true, Ever: true},
			"shop/redis-0 is Injected",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			child := &cmv1.PodChaos{}
			if err := yaml.UnmarshalStrict([]byte(test.status), child.GetStatus()); err != nil {
				t.Fatal(err)
			}
			got := Read(child)
			if text := got.String(); !strings.Contains(text, test.wantText) {
				t.Errorf("got text %q, want %q", text, test.wantText)
			}
			got.Where, got.Failure = "", ""
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
