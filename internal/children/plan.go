package children

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/plan"
)

// Plan turns a load test into what its pods are told. addresses are the host:port pairs that the target resolved to.
// Defaults are applied first. An error is a field.ErrorList's aggregate, each entry led by its field, as "spec.load.users: ...".
func Plan(test *v1alpha1.RedisLoadTest, addresses []string) (*plan.Plan, error) {
	spec := Defaulted(&test.Spec)
	if err := validate(test, spec, addresses); err != nil {
		return nil, err
	}
	plan := &plan.Plan{
		Run:      string(test.UID),
		Pods:     int(spec.Pods.Count),
		Interval: spec.Observe.Interval.Duration,
		Target:   planTarget(test.Namespace, &spec.Target, addresses),
		Client:   planClient(&spec.Client),
		Shape:    planShape(spec),
		Workload: planWorkload(&spec.Workload),
		Probe:    planProbe(spec),
		Info:     spec.Observe.RedisInfo.Duration,
		Verify:   planVerify(spec.Verify),
	}
	// The pods would refuse it too, but only once they run.
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return plan, nil
}

func planShape(spec *v1alpha1.RedisLoadTestSpec) plan.Shape {
	shape := &spec.Load
	s := plan.Shape{
		Users:     int(value(shape.Users)),
		Rate:      float64(value(shape.Rate)),
		ThinkTime: length(shape.ThinkTime),
		RampUp:    length(shape.RampUp),
		WarmUp:    length(shape.WarmUp),
		Duration:  length(shape.Duration) + length(shape.UntilFaultsSettle), // the operator ends it before
		Requests:  uint64(value(shape.Requests)),
	}
	if l := shape.Search; l != nil {
		precision, _ := percentage(l.Precision) // was checked before
		s.Search = &search.Spec{
			From: float64(l.From), To: float64(l.To), Precision: precision,
			// What a missed trial left in flight ends within one timeout, and what waited behind that within another.
			Settle: max(l.Settle.Duration, 2*spec.Client.RequestTimeout.Duration),
			Trial:  l.Trial.Duration, Requests: verdict.Significant(spec.Objectives),
		}
		s.Rate = s.Search.From
	}
	for _, stage := range shape.Stages {
		s.Stages = append(s.Stages, plan.Stage{
			Duration: stage.Duration.Duration,
			Users:    int(value(stage.Users)),
			Rate:     float64(value(stage.Rate)),
		})
	}
	return s
}

// planProbe is a write, as a Redis that only reads is down to most applications. Its key goes by itself a minute after the run.
func planProbe(spec *v1alpha1.RedisLoadTestSpec) plan.Probe {
	rate := *spec.Probe.Rate
	if rate == 0 {
		return plan.Probe{}
	}
	return plan.Probe{
		Rate:  float64(rate),
		Words: []string{"SET", spec.Workload.Keyspace.Prefix + "probe:{user}", "{seq}", "EX", "60"},
	}
}

func planVerify(verify *v1alpha1.LoadVerify) *plan.Verify {
	if verify == nil || !verify.AcknowledgedWrites {
		return nil
	}
	share, _ := percentage(verify.Share) // was checked before
	return &plan.Verify{Share: share, StaleReads: verify.StaleReads, DualPrimary: verify.DualPrimary}
}

// percentage reads text such as "1%": 0.01.
func percentage(text string) (float64, error) {
	number, found := strings.CutSuffix(text, "%")
	if !found {
		return 0, errors.New("must end in %")
	}
	n, err := strconv.ParseFloat(number, 64)
	return n / 100, err
}

// value is *p, or 0 where it is absent.
func value[T int32 | int64](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}

// length is *d, or 0 where it is absent.
func length(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}
