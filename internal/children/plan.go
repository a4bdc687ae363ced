package children

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/plan"
)

// Plan turns a load test into the plan of its pods. addresses are the host:port pairs that the
// target resolved to. The test must be defaulted and admitted by the API server or package
// manifest. An error is a *plan.Error that names the field.
func Plan(test *v1alpha1.RedisLoadTest, addresses []string) (*plan.Plan, error) {
	spec := &test.Spec
	plan := &plan.Plan{
		Run:      string(test.UID),
		Pods:     int(spec.Pods.Count),
		Interval: spec.Observe.Interval.Duration,
		Target:   planTarget(test.Namespace, &spec.Target, addresses),
		Client:   planClient(spec),
		Shape:    Shape(spec),
		Workload: planWorkload(spec),
		Probe:    planProbe(spec),
		Info:     planInfo(spec),
		Verify:   planVerify(spec.Verify),
	}
	plan.Workload.Seed = seedOf(test)
	if err := plan.Validate(); err != nil { // the pods would refuse it too, but only once they run
		return nil, err
	}
	return plan, nil
}

// Planned returns how the load of a test changes over the measured time.
func Planned(spec *v1alpha1.RedisLoadTestSpec) plan.Planned {
	p := plan.Plan{Shape: Shape(spec), Workload: planWorkload(spec)}
	return p.Planned()
}

// Shape returns the amount of load of a test over its time.
func Shape(spec *v1alpha1.RedisLoadTestSpec) plan.Shape {
	load := &spec.Load
	shape := plan.Shape{
		Users:     int(value(load.Users)),
		Rate:      load.PerSecond(value(load.Rate)),
		ThinkTime: value(load.ThinkTime).Duration,
		RampUp:    value(load.RampUp).Duration,
		WarmUp:    value(load.WarmUp).Duration,
		// the operator ends it before
		Duration: value(load.Duration).Duration + value(load.UntilFaultsSettle).Duration,
		Requests: uint64(value(load.Requests)),
	}
	if load.Arrivals == v1alpha1.ArrivalsPoisson {
		shape.Arrivals = plan.Poisson
	}
	if load.Search != nil {
		shape.Search = planSearch(spec)
		shape.Rate = shape.Search.From
	}
	for _, stage := range load.Stages {
		shape.Stages = append(shape.Stages, plan.Stage{
			Duration: stage.Duration.Duration,
			Users:    int(value(stage.Users)),
			Rate:     load.PerSecond(value(stage.Rate)),
		})
	}
	return shape
}

func planSearch(spec *v1alpha1.RedisLoadTestSpec) *plan.Search {
	s, client := spec.Load.Search, planClient(spec)
	return &plan.Search{
		From:      float64(s.From),
		To:        float64(s.To),
		Precision: v1alpha1.Percentage(s.Precision).Share(),
		// Requests in flight at the end of a missed trial end within one timeout, and requests queued
		// behind them within another.
		Settle:   max(s.Settle.Duration, 2*max(client.RequestTimeout, client.RemoteTimeout)),
		Trial:    s.Trial.Duration,
		Requests: verdict.Significant(spec.Objectives),
	}
}

// planProbe is a write: a Redis that only serves reads is unavailable to most applications. Its key
// expires a minute after the run. A load that only reads must be able to run without the right to
// write, and without a trace: its probe reads, too.
func planProbe(spec *v1alpha1.RedisLoadTestSpec) plan.Probe {
	rate := value(spec.Probe.Rate)
	if rate == 0 || !spec.Target.IsSet() {
		return plan.Probe{}
	}
	key := spec.Workload.Keyspace.Prefix + "probe:{user}"
	probe := plan.Probe{Rate: float64(rate), Words: []string{"SET", key, "{seq}", "EX", "60"}}
	workload := planWorkload(spec)
	if spec.Probe.Operation == v1alpha1.ProbeRead ||
		spec.Probe.Operation != v1alpha1.ProbeWrite && spec.Verify == nil && workload.OnlyReads() {
		probe.Words = []string{"GET", key}
	}
	return probe
}

func planInfo(spec *v1alpha1.RedisLoadTestSpec) time.Duration {
	if !spec.Target.IsSet() {
		return 0
	}
	return value(spec.Observe.RedisInfo).Duration
}

func planVerify(verify *v1alpha1.LoadVerify) *plan.Verify {
	if verify == nil || !verify.AcknowledgedWrites {
		return nil
	}
	return &plan.Verify{
		Share:       v1alpha1.Percentage(verify.Share).Share(),
		StaleReads:  verify.StaleReads,
		DualPrimary: verify.DualPrimary,
	}
}

// PlanConfigMap holds the plan under PlanKey, for the load pods. It is immutable: pods of one run
// never see two plans.
func PlanConfigMap(test *v1alpha1.RedisLoadTest, plan *plan.Plan) (*corev1.ConfigMap, error) {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	return &corev1.ConfigMap{
		TypeMeta:   configMapType,
		ObjectMeta: ofLoadTest(test, planName(test.Name, string(text)), ComponentLoad),
		Immutable:  new(true),
		Data:       map[string]string{PlanKey: string(text) + "\n"},
	}, nil
}
