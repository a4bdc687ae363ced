package children

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/verdict"
)

// Limits of the CRD.
const (
	maxUsers    = 1_000_000
	maxRate     = 100_000_000
	maxRequests = 1_000_000_000_000
	maxStages   = 64
)

// shape checks how much load there is, and how long.
func (p *problems) shape(path *field.Path, shape *v1alpha1.LoadShape) {
	staged := len(shape.Stages) > 0
	switch {
	case staged && (shape.Users != nil || shape.Rate != nil):
		p.conflict(path.Child("stages"), "stages say users or rate themselves: set stages, or users and rate")
	case !staged && shape.Users == nil && shape.Rate == nil && shape.Search == nil:
		p.missing(path, "set users (closed loop), rate (open loop), stages or search: without one of them there is no load")
	}
	switch {
	case staged && (shape.Duration != nil || shape.Requests != nil):
		p.conflict(path.Child("stages"), "with stages the length is their sum: duration and requests must be absent")
	case !staged && shape.Duration == nil && shape.Requests == nil:
		p.missing(path, "set duration or requests: the load must end")
	}
	if staged && (length(shape.RampUp) != 0 || length(shape.WarmUp) != 0) {
		p.conflict(path.Child("stages"), "stages bring their own ramp: rampUp and warmUp must be absent")
	}
	if shape.Rate != nil && length(shape.ThinkTime) != 0 {
		p.add(path.Child("thinkTime"), shape.ThinkTime.Duration.String(), "belongs to users (closed loop); with rate the arrival times are fixed")
	}
	if shape.Users != nil {
		between(p, path.Child("users"), *shape.Users, 1, maxUsers)
	}
	if shape.Rate != nil {
		between(p, path.Child("rate"), *shape.Rate, 1, maxRate)
	}
	if shape.Requests != nil {
		between(p, path.Child("requests"), *shape.Requests, 1, maxRequests)
	}
	if shape.Duration != nil {
		between(p, path.Child("duration"), shape.Duration.Duration, time.Second, maxLoadDuration)
	}
	for name, d := range map[string]*metav1.Duration{"thinkTime": shape.ThinkTime, "rampUp": shape.RampUp, "warmUp": shape.WarmUp} {
		between(p, path.Child(name), length(d), 0, time.Hour)
	}
	p.stages(path.Child("stages"), shape.Stages, length(shape.ThinkTime) != 0)
	if shape.Search != nil {
		p.search(path.Child("search"), shape)
	}
}

// search checks what a search looks through, and that nothing else decides the rate.
func (p *problems) search(path *field.Path, shape *v1alpha1.LoadShape) {
	s := shape.Search
	if shape.Rate != nil || len(shape.Stages) > 0 || shape.Requests != nil {
		p.conflict(path, "search decides the rates itself: rate, stages and requests must be absent")
	}
	if length(shape.ThinkTime) != 0 {
		p.conflict(path, "thinkTime belongs to users (closed loop); search is an open loop")
	}
	between(p, path.Child("from"), s.From, 1, maxRate)
	between(p, path.Child("to"), s.To, 1, maxRate)
	if s.From > s.To {
		p.add(path.Child("from"), s.From, fmt.Sprintf("is above to, %d", s.To))
	}
	if precision, err := percentage(s.Precision); err != nil || !(precision >= 0.01 && precision <= 0.51) {
		p.add(path.Child("precision"), s.Precision, "must be a share from 1% to 50%")
	}
	between(p, path.Child("trial"), s.Trial.Duration, time.Second, time.Hour)
	between(p, path.Child("settle"), s.Settle.Duration, 0, 10*time.Minute)
}

// searched checks what a search needs of the rest of the spec.
func (p *problems) searched(path *field.Path, spec *v1alpha1.RedisLoadTestSpec) {
	if spec.Load.Search == nil {
		return
	}
	at := path.Child("load", "search")
	if verdict.OfRate(spec.Objectives) == nil {
		p.missing(at, "needs one of objectives.maxLatencyP50, maxLatencyP99, maxLatencyP999 and maxErrorRate: it looks for the highest rate that meets them")
	}
	if shape := planShape(spec); shape.Duration > 0 {
		if _, end := shape.Search.Window(search.Trial{Rate: shape.Search.From, At: shape.MeasuredFrom()}); end > shape.Length() {
			p.add(path.Child("load", "duration"), shape.Duration.String(),
				fmt.Sprintf("the first trial alone takes %s: more duration, or a higher search.from", end-shape.MeasuredFrom()))
		}
	}
	if spec.Pods.Lost == v1alpha1.LostPodContinue {
		p.conflict(at, "needs pods.lost: Fail: the load of a lost pod would be missing from every rate")
	}
}

func (p *problems) stages(path *field.Path, stages []v1alpha1.LoadStage, hasThinkTime bool) {
	between(p, path, len(stages), 0, maxStages)
	byUsers, byRate, some := 0, 0, false
	for i, stage := range stages {
		at := path.Index(i)
		between(p, at.Child("duration"), stage.Duration.Duration, time.Second, 24*time.Hour)
		if (stage.Users != nil) == (stage.Rate != nil) {
			p.conflict(at, "set users or rate")
		}
		if stage.Users != nil {
			byUsers++
			between(p, at.Child("users"), *stage.Users, 0, maxUsers)
		}
		if stage.Rate != nil {
			byRate++
			between(p, at.Child("rate"), *stage.Rate, 0, maxRate)
		}
		some = some || value(stage.Users) > 0 || value(stage.Rate) > 0
	}
	if byUsers > 0 && byRate > 0 {
		p.conflict(path, "all stages must set users, or all must set rate")
	}
	if byRate > 0 && hasThinkTime {
		p.conflict(path, "thinkTime belongs to users (closed loop); with rate the arrival times are fixed")
	}
	if len(stages) > 0 && !some {
		p.conflict(path, "no stage has any users or rate: there is no load")
	}
}

// shares checks that every pod has something to do: a pod without a user would be a pod that reports nothing.
func (p *problems) shares(path *field.Path, shape *v1alpha1.LoadShape, pods int32) {
	if users := shape.Users; users != nil && *users > 0 && *users < pods {
		p.add(path.Child("users"), *users, fmt.Sprintf("is fewer than the %d pods of spec.pods.count", pods))
	}
	if requests := shape.Requests; requests != nil && *requests > 0 && *requests < int64(pods) {
		p.add(path.Child("requests"), *requests, fmt.Sprintf("is fewer than the %d pods of spec.pods.count", pods))
	}
}
