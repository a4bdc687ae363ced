// Package podmetrics reads what pods use from the metrics API.
package podmetrics

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/target/paging"
)

// +kubebuilder:rbac:groups=metrics.k8s.io,resources=pods,verbs=list

const (
	// Every is how often the metrics API is read. It has a new reading about every 15 s; reading it
	// more often misses none.
	Every = 10 * time.Second
	// podMetricsLate is how much later than its window a new reading may be, before the status says
	// that there are none: the API is 15 s to 30 s late.
	podMetricsLate = time.Minute
	// maxObservedPods is the number of pods that are observed of one name.
	maxObservedPods = 64
)

// podMetricsKind is read without its Go types, which would be another module.
var podMetricsKind = schema.GroupVersionKind{
	Group:   "metrics.k8s.io",
	Version: "v1beta1",
	Kind:    "PodMetricsList",
}

// podMetrics is a PodMetrics of the metrics API.
type podMetrics struct {
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Timestamp  metav1.Time       `json:"timestamp"` // end of the window
	Window     metav1.Duration   `json:"window"`    // over which the usage of CPU is the mean
	Containers []struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// Reader reads the use of pods.
type Reader struct {
	APIReader client.Reader // not cached
	Clock     clock.PassiveClock
}

// metricsMessage explains an error of the metrics API for people.
func metricsMessage(err error) string {
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return "the metrics API is not available: install metrics-server"
	case apierrors.IsForbidden(err):
		return "the operator may not read the metrics API: its role needs list of pods in metrics.k8s.io"
	}
	return "the metrics API cannot be read: " + err.Error()
}

// Uses reads the metrics of the pods of a namespace that an entry of spec.observe.pods selects,
// from the start of a load on. The limits are those of their containers. If there are no readings,
// the message tells people why.
func (r Reader) Uses(
	ctx context.Context, namespace string, observed *v1alpha1.ObservedPods, start time.Time,
) (uses []record.PodUse, message string) {
	selector, err := metav1.LabelSelectorAsSelector(&observed.Selector)
	if err != nil {
		return nil, fmt.Sprintf("selector: %v", err)
	}
	limits, err := r.cpuLimits(ctx, namespace, selector)
	if err != nil {
		return nil, err.Error()
	}
	if len(limits) == 0 {
		return nil, "selector: it matches no pod in namespace " + namespace
	}
	pods, err := r.readMetrics(ctx, namespace, selector, limits)
	if err != nil {
		return nil, metricsMessage(err)
	}
	newest := staleness{now: r.Clock.Now()}
	for _, pod := range pods {
		newest.see(pod)
		for _, c := range pod.Containers {
			cpu := c.Usage.Cpu().AsApproximateFloat64()
			uses = append(uses, record.PodUse{
				At:        int64(pod.Timestamp.Sub(start)),
				Window:    int64(pod.Window.Duration),
				Name:      observed.Name,
				Pod:       pod.Metadata.Name,
				Container: c.Name,
				CPU:       cpu,
				MaxCPU:    cpu,
				CPULimit:  limits[pod.Metadata.Name][c.Name],
				Memory:    c.Usage.Memory().Value(),
			})
		}
	}
	if len(uses) == 0 {
		return nil,
			"the metrics API has no readings of the pods yet: it has those of a new pod after 15 s to 30 s"
	}
	return uses, newest.message()
}

// readMetrics reads the metrics of the observed ones among the selected pods. metrics-server has no
// pages, and returns all at once; others may have.
func (r Reader) readMetrics(
	ctx context.Context, namespace string, selector labels.Selector,
	observed map[string]map[string]float64,
) (pods []*podMetrics, err error) {
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(podMetricsKind)
	var broken error
	err = paging.Each(ctx, r.APIReader, page, func() bool {
		for i := range page.Items {
			if observed[page.Items[i].GetName()] == nil {
				continue
			}
			pod, err := decodeMetrics(&page.Items[i])
			if err != nil {
				broken = err
				return false
			}
			if !pod.Timestamp.IsZero() {
				pods = append(pods, pod)
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	return pods, cmp.Or(err, broken)
}

// staleness finds the newest reading of an entry's pods.
type staleness struct {
	now, newest time.Time
	window      time.Duration // of the newest one
}

func (s *staleness) see(pod *podMetrics) {
	if pod.Timestamp.After(s.newest) {
		s.newest, s.window = pod.Timestamp.Time, pod.Window.Duration
	}
}

// message is empty if the newest reading is as new as it can be expected to be.
func (s *staleness) message() string {
	age := s.now.Sub(s.newest)
	if age > s.window+podMetricsLate {
		return fmt.Sprintf("the metrics API has no new readings of the pods: the newest ended %s ago",
			age.Round(time.Second))
	}
	return ""
}

func decodeMetrics(object *unstructured.Unstructured) (*podMetrics, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("read the metrics of pod %s: %w", object.GetName(), err)
	}
	pod := &podMetrics{}
	if err := json.Unmarshal(text, pod); err != nil {
		return nil, fmt.Errorf("read the metrics of pod %s: %w", object.GetName(), err)
	}
	return pod, nil
}

// cpuLimits returns the CPU limits of the containers in the selected pods, in cores, by the names
// of pod and container; 0 = none.
func (r Reader) cpuLimits(
	ctx context.Context, namespace string, selector labels.Selector,
) (map[string]map[string]float64, error) {
	var pods corev1.PodList // the API server lists by name
	err := r.APIReader.List(ctx, &pods, client.InNamespace(namespace),
		client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxObservedPods))
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	limits := map[string]map[string]float64{}
	for i := range pods.Items[:min(len(pods.Items), maxObservedPods)] {
		pod := &pods.Items[i]
		limits[pod.Name] = map[string]float64{}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			limits[pod.Name][c.Name] = c.Resources.Limits.Cpu().AsApproximateFloat64()
		}
	}
	return limits, nil
}
