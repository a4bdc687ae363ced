package redisfault

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/format"
)

// maxSteps is the number of targets that a plan describes.
const maxSteps = 64

// plan is what the fault will do to targets that have passed the preflight.
func (s *scope) plan(targets []v1alpha1.FaultTarget) *v1alpha1.FaultPlan {
	p := &v1alpha1.FaultPlan{
		Trigger: s.triggerInWords(),
		Omitted: int32(max(0, len(targets)-maxSteps)),
	}
	if s.traits.Lasts > 0 {
		p.End = format.Duration(s.traits.Lasts) + " after it is complete on all targets"
		if s.seen.Setting {
			p.End = fmt.Sprintf("when RedisLoadTest %s has ended, at the latest %s", s.seen.LoadName, p.End)
		}
		p.LatestEnd = new(metav1.NewMicroTime(s.seen.Deadline))
	}
	for i := range targets[:min(len(targets), maxSteps)] {
		t := &targets[i]
		d := s.injector.Describe(t)
		p.Steps = append(p.Steps, v1alpha1.PlanStep{
			Pod:                 t.Pod,
			Action:              digest.Truncate(d.Action, 1024),
			LosesData:           t.LosesData,
			Revert:              digest.Truncate(d.Revert, 1024),
			SelfEnding:          digest.Truncate(d.SelfEnding, 512),
			ManualRevertCommand: digest.Truncate(s.injector.ManualRevertCommand(t), 2048),
		})
	}
	return p
}

func (s *scope) triggerInWords() string {
	if s.seen.Setting {
		return fmt.Sprintf("at once, whether RedisLoadTest %s exists yet or not", s.seen.LoadName)
	}
	text := fmt.Sprintf(
		"after %s of steady throughput, or never if that is not within %s from the end of warm-up",
		format.Duration(s.seen.SteadyFor), format.Duration(s.seen.SteadyWithin))
	if s.seen.After != nil {
		text = fmt.Sprintf("%s after the start of the load, but not before the end of warm-up",
			format.Duration(*s.seen.After))
	}
	if s.traits.External {
		text += fmt.Sprintf("; then when something else breaks Redis, within %s",
			format.Duration(s.fault.Spec.MarkWait()))
	}
	return text
}
