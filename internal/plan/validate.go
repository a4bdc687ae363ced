package plan

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Limits of a plan.
const (
	minInterval   = 10 * time.Millisecond
	maxIntervals  = 10_000_000
	maxConnection = 100_000 // per pod
	maxPipeline   = 10_000
)

// Validate says what is wrong with the plan: an *Error with reason PlanInvalid whose message begins with the field's JSON path, or nil.
func (p *Plan) Validate() error {
	checks := []func() string{p.checkRun, p.checkTarget, p.checkClient, p.checkEngine, p.checkStages, p.checkShape, p.checkWorkload, p.checkProbe, p.checkVerify}
	for _, check := range checks {
		if problem := check(); problem != "" {
			return &Error{Reason: PlanInvalid, Message: problem}
		}
	}
	return nil
}

func (p *Plan) checkRun() string {
	switch {
	case p.Pods < 1:
		return fmt.Sprintf("pods: is %d, must be at least 1", p.Pods)
	case p.Interval < minInterval:
		return fmt.Sprintf("interval: is %s, must be at least %s", p.Interval, minInterval)
	case p.Shape.Length()/p.Interval > maxIntervals:
		return fmt.Sprintf("interval: %s over %s are more than %d intervals", p.Interval, p.Shape.Length(), maxIntervals)
	case p.Info < 0:
		return "info: is negative"
	}
	return ""
}

func (p *Plan) checkShape() string {
	s := p.Shape
	switch {
	case s.Users < 0:
		return "shape.users: is negative"
	case !(s.Rate >= 0) || s.Rate > 1e9:
		return "shape.rate: must be 0 to 1e9"
	case s.ThinkTime < 0 || s.RampUp < 0 || s.WarmUp < 0 || s.Duration < 0:
		return "shape: thinkTime, rampUp, warmUp and duration must not be negative"
	case s.Users == 0 && s.Rate == 0 && len(s.Stages) == 0:
		return "shape: one of users, rate and stages must say how much"
	case s.Search != nil && (s.Search.From < 1 || s.Search.To < s.Search.From || s.Search.To > 1e9):
		return "shape.search: from must be at least 1, and to between it and 1e9"
	case s.Search != nil && (!(s.Search.Precision > 0) || s.Search.Settle < 0 || s.Search.Trial <= 0 || !(s.Search.Requests >= 0)):
		return "shape.search: precision and trial must be above 0, settle and requests not below"
	case s.Search != nil && (s.Rate != s.Search.From || len(s.Stages) > 0 || s.Requests > 0 || s.Duration <= 0):
		return "shape.search: begins at rate, has a duration as its bound, and no stages or requests"
	case s.Rate > 0 && len(s.Stages) > 0:
		return "shape: rate and stages exclude each other"
	case s.OpenLoop() && s.ThinkTime > 0:
		return "shape.thinkTime: belongs to users, not to a rate"
	case s.Requests > 0 && !s.OpenLoop() && len(s.Stages) == 0 && s.Users < p.Pods:
		return fmt.Sprintf("shape.users: %d users cannot share the requests of %d pods", s.Users, p.Pods)
	case s.Length() == 0 && s.Requests == 0:
		return "shape: one of duration, stages and requests must say how long"
	}
	return ""
}

func (p *Plan) checkStages() string {
	s := p.Shape
	if len(s.Stages) == 0 {
		return ""
	}
	var sum time.Duration
	users, rates := false, false
	for i, st := range s.Stages {
		if st.Duration <= 0 || st.Users < 0 || !(st.Rate >= 0) || st.Rate > 1e9 {
			return fmt.Sprintf("shape.stages[%d]: the duration must be over 0, users and rate not negative", i)
		}
		sum += st.Duration
		users, rates = users || st.Users > 0, rates || st.Rate > 0
	}
	switch {
	case users && rates:
		return "shape.stages: users and rate exclude each other"
	case !users && !rates:
		return "shape.stages: no stage has users or a rate"
	case users && s.Users > 0:
		return "shape: users and stages with users exclude each other"
	case s.RampUp > 0 || s.WarmUp > 0:
		return "shape: stages bring their own ramp, rampUp and warmUp must be 0"
	case s.Duration > 0 && s.Duration != sum:
		return fmt.Sprintf("shape.duration: is %s, the stages last %s", s.Duration, sum)
	}
	return ""
}

func (p *Plan) checkWorkload() string {
	if problem := p.Workload.Problem(); problem != "" {
		return "workload." + problem
	}
	return ""
}

func checkWords(words []string) string {
	if len(words) == 0 || words[0] == "" {
		return "is empty"
	}
	if _, err := resp.Compile(words, ""); err != nil {
		return err.Error()
	}
	return ""
}

func (p *Plan) checkProbe() string {
	if !(p.Probe.Rate >= 0) || p.Probe.Rate > 10_000 {
		return "probe.rate: must be 0 to 10000"
	}
	if p.Probe.Rate > 0 {
		if problem := checkWords(p.Probe.Words); problem != "" {
			return "probe.words: " + problem
		}
	}
	return ""
}

func (p *Plan) checkVerify() string {
	if v := p.Verify; v != nil && !(v.Share > 0 && v.Share <= 1) {
		return fmt.Sprintf("verify.share: is %g, must be above 0, at most 1", v.Share)
	}
	return ""
}
