package children

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/redquake/redquake/api/v1alpha1"
)

// validate says what keeps a defaulted spec from being run: the rules of the CRD, which an object from a file has not met yet, and
// what only the whole shows. All problems are named, not only the first.
func validate(test *v1alpha1.RedisLoadTest, spec *v1alpha1.RedisLoadTestSpec, addresses []string) error {
	var p problems
	for _, message := range validation.IsDNS1123Label(LoadJobName(test.Name)) {
		p.add(field.NewPath("metadata", "name"), test.Name, "the load pods' host names are made from it: "+message)
	}
	root := field.NewPath("spec")
	p.target(root.Child("target"), &spec.Target, addresses)
	p.client(root.Child("client"), &spec.Client)
	p.shape(root.Child("load"), &spec.Load)
	p.workload(root.Child("workload"), &spec.Workload)
	p.pods(root.Child("pods"), &spec.Pods)
	p.shares(root.Child("load"), &spec.Load, spec.Pods.Count)
	p.searched(root, spec)
	between(&p, root.Child("probe", "rate"), *spec.Probe.Rate, 0, 1000)
	p.observe(root.Child("observe"), &spec.Observe)
	p.verify(root.Child("verify"), spec.Verify)
	if o := spec.Objectives; o != nil && o.MaxLostWrites != nil && (spec.Verify == nil || !spec.Verify.AcknowledgedWrites) {
		p.conflict(root.Child("objectives", "maxLostWrites"), "needs verify.acknowledgedWrites: without it no lost write is found")
	}
	return p.list.ToAggregate()
}

// problems collects what is wrong.
type problems struct{ list field.ErrorList }

func (p *problems) add(path *field.Path, value any, detail string) {
	p.list = append(p.list, field.Invalid(path, value, detail))
}

// conflict is about members that exclude each other.
func (p *problems) conflict(path *field.Path, detail string) {
	p.list = append(p.list, field.Forbidden(path, detail))
}

func (p *problems) missing(path *field.Path, detail string) {
	p.list = append(p.list, field.Required(path, detail))
}

// between wants lo <= value <= hi.
func between[T cmp.Ordered](p *problems, path *field.Path, value, lo, hi T) {
	if value < lo || value > hi {
		var shown any = value
		if d, ok := shown.(time.Duration); ok {
			shown = d.String() // else it would be shown as a number of nanoseconds
		}
		p.add(path, shown, fmt.Sprintf("must be between %v and %v", lo, hi))
	}
}

// oneOf wants one of the values.
func oneOf[T ~string](p *problems, path *field.Path, value T, values ...T) {
	if !slices.Contains(values, value) {
		p.list = append(p.list, field.NotSupported(path, value, values))
	}
}

func (p *problems) pods(path *field.Path, pods *v1alpha1.LoadPods) {
	between(p, path.Child("count"), pods.Count, 1, 1000)
	oneOf(p, path.Child("lost"), pods.Lost, v1alpha1.LostPodFail, v1alpha1.LostPodContinue)
	between(p, path.Child("startDeadline"), pods.StartDeadline.Duration, 5*time.Second, 24*time.Hour)
}

func (p *problems) observe(path *field.Path, observe *v1alpha1.LoadObserve) {
	switch observe.Interval.Duration {
	case 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second:
	default:
		p.add(path.Child("interval"), observe.Interval.Duration.String(), "must be 50ms, 100ms, 200ms, 500ms or 1s")
	}
	if info := observe.RedisInfo.Duration; info != 0 {
		between(p, path.Child("redisInfo"), info, 100*time.Millisecond, time.Hour)
	}
}

func (p *problems) verify(path *field.Path, verify *v1alpha1.LoadVerify) {
	if verify == nil {
		return
	}
	if share, err := percentage(verify.Share); err != nil || !(share > 0 && share <= 1) {
		p.add(path.Child("share"), verify.Share, "must be above 0%, at most 100%")
	}
	if !verify.AcknowledgedWrites && (verify.StaleReads || verify.DualPrimary) {
		p.conflict(path, "staleReads and dualPrimary go with acknowledgedWrites")
	}
}
