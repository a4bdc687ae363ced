package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/target/paging"
)

// budget is a PodDisruptionBudget.
type budget struct {
	name    string
	rule    string // of how many pods it lets go, such as "minAvailable 1"
	selects labels.Selector
	allows  int  // evictions now
	counted bool // by the disruption controller, as it is now
}

// budgetsOf are the budgets of a fault's namespace.
func budgetsOf(ctx context.Context, deps contract.Deps) ([]budget, error) {
	var page policyv1.PodDisruptionBudgetList
	var found []budget
	err := paging.Each(ctx, deps.Live, &page, func() bool {
		for i := range page.Items {
			b := &page.Items[i]
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err != nil { // the API server refuses these; a budget that selects no pod protects none
				continue
			}
			found = append(found, budget{
				name:    b.Name,
				rule:    ruleOf(&b.Spec),
				selects: selector,
				allows:  int(b.Status.DisruptionsAllowed),
				counted: b.Status.ObservedGeneration >= b.Generation,
			})
		}
		page.Items = nil
		return true
	}, client.InNamespace(deps.Namespace))
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	return found, nil
}

func ruleOf(spec *policyv1.PodDisruptionBudgetSpec) string {
	switch {
	case spec.MinAvailable != nil:
		return "minAvailable " + spec.MinAvailable.String()
	case spec.MaxUnavailable != nil:
		return "maxUnavailable " + spec.MaxUnavailable.String()
	}
	return "minAvailable 1" // the default of the API
}

// over are the budgets that select a pod.
func over(all []budget, pod *corev1.Pod) []budget {
	return slices.DeleteFunc(slices.Clone(all), func(b budget) bool {
		return !b.selects.Matches(labels.Set(pod.Labels))
	})
}

func names(all []budget) string {
	text := make([]string, len(all))
	for i := range all {
		text[i] = all[i].name
	}
	return strings.Join(text, ", ")
}

// Advise says of which data every copy would be evicted without a budget that keeps one, and which
// budgets let no target go now.
func (d drain) Advise(ctx context.Context, targets []v1alpha1.FaultTarget) []string {
	all, err := budgetsOf(ctx, d.Deps)
	if err != nil {
		return []string{fmt.Sprintf("it is not known which PodDisruptionBudgets apply: %v", err)}
	}
	evicted := map[string]*corev1.Pod{}
	var said []string
	for i := range targets {
		pod, err := d.Pod(ctx, targets[i].Pod)
		if err != nil { // it is replaced just now
			continue
		}
		evicted[pod.Name] = pod
		for _, b := range over(all, pod) {
			if b.allows == 0 {
				said = append(said, fmt.Sprintf("PodDisruptionBudget %s (%s) allows no eviction now: that of pod %s "+
					"would be tried for %s", b.name, b.rule, pod.Name, d.patience))
			}
		}
	}
	for _, copies := range guard.Wholly(targets) {
		if why := unprotected(all, copies, evicted); why != "" {
			said = append(said, why)
		}
	}
	return said
}

// unprotected is why no budget keeps one of several pods from being evicted at the same time; "" if
// one does. A budget does where it selects more of them than it lets go.
func unprotected(all []budget, copies []string, pods map[string]*corev1.Pod) string {
	var lenient []string
	for i := range all {
		b, selected := &all[i], 0
		for _, name := range copies {
			if pod := pods[name]; pod != nil && b.selects.Matches(labels.Set(pod.Labels)) {
				selected++
			}
		}
		switch {
		case selected > b.allows:
			return ""
		case selected > 0:
			lenient = append(lenient, fmt.Sprintf("%s (%s) selects %d of them and lets %d go", b.name, b.rule,
				selected, b.allows))
		}
	}
	what := strings.Join(copies, ", ") + " are all copies of their data"
	if len(copies) == 1 {
		what = copies[0] + " is the only copy of its data"
	}
	if len(lenient) == 0 {
		return what + ", and no PodDisruptionBudget selects any of them"
	}
	return what + ", and no PodDisruptionBudget keeps one: " + strings.Join(lenient, "; ")
}
