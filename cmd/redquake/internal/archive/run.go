// Package archive reads what is kept of runs, experiments and schedules, by the cluster or in
// files, and makes figures and reports of it.
package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/document"
)

// errNoRun means that a file holds nothing of a run.
var errNoRun = fmt.Errorf(
	"contains no ConfigMap with the key %s in binaryData, and no RedisLoadTest",
	children.ResultsSeriesKey)

// Run is what the cluster keeps of a run.
type Run struct {
	test   string // the load test; "" = unknown
	Series *merged.Series
	kept   result.Run            // what is kept of the run beside the record
	Faults []v1alpha1.RedisFault // of this and of other load tests
	Tests  []v1alpha1.RedisLoadTest
}

// ReadRun reads a run from YAML or JSON documents, of which one is a results ConfigMap, from the
// record alone, or from the result of a load.
func ReadRun(in io.Reader) (*Run, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	run := &Run{}
	if merged.IsEncoded(text) {
		if run.Series, err = merged.Decode(text); err == nil {
			run.kept.Load, err = document.Kept(run.Series)
		}
		return run, err
	}
	if run.kept.Load, err = document.DecodeLoad(text); !errors.Is(err, document.ErrNoLoad) {
		return run, err
	}
	if err := documents.Each(text, run.Add); err != nil {
		return nil, err
	}
	if run.Series == nil && len(run.Tests) == 0 {
		return nil, errNoRun
	}
	return run, nil
}

// Add adds an object in JSON, or the items of a list. Objects of other kinds are ignored.
func (r *Run) Add(object []byte) error {
	return documents.Items(object, r.addObject)
}

func (r *Run) addObject(kind string, object []byte) error {
	switch kind {
	case "ConfigMap":
		var stored corev1.ConfigMap
		if err := json.Unmarshal(object, &stored); err != nil {
			return fmt.Errorf("decode a ConfigMap: %w", err)
		}
		return r.addRecord(&stored)
	case "RedisLoadTest":
		var test v1alpha1.RedisLoadTest
		if err := json.Unmarshal(object, &test); err != nil {
			return fmt.Errorf("decode a RedisLoadTest: %w", err)
		}
		r.Tests = append(r.Tests, test)
	case "RedisFault":
		var fault v1alpha1.RedisFault
		if err := json.Unmarshal(object, &fault); err != nil {
			return fmt.Errorf("decode a RedisFault: %w", err)
		}
		r.Faults = append(r.Faults, fault)
	}
	return nil
}

func (r *Run) addRecord(stored *corev1.ConfigMap) error {
	data, ok := stored.BinaryData[children.ResultsSeriesKey]
	if !ok {
		return nil
	}
	if r.Series != nil {
		return errors.New("contains more than one record: keep one results ConfigMap")
	}
	series, err := merged.Decode(data)
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", stored.Name, err)
	}
	r.Series, r.test = series, stored.Labels[v1alpha1.LabelLoadTest]
	r.kept, err = children.ResultsIn(stored)
	return err
}

// faultsOf are the faults that were injected on a load test, and its settings.
func (r *Run) faultsOf(test string) []v1alpha1.RedisFault {
	return slices.DeleteFunc(slices.Clone(r.Faults), func(f v1alpha1.RedisFault) bool {
		return f.Status.LoadTest != test || f.Status.InjectedAt == nil
	})
}

// during are the faults that were injected within the record of the run, without its settings.
func (r *Run) during() []v1alpha1.RedisFault {
	return slices.DeleteFunc(slices.Clone(r.Faults), func(f v1alpha1.RedisFault) bool {
		if r.Series == nil || f.Status.InjectedAt == nil || f.Spec.Setting ||
			r.test != "" && f.Status.LoadTest != r.test {
			return true
		}
		at := f.Status.InjectedAt.Sub(r.Series.Start)
		return at < 0 || at > r.Series.End() // of another run
	})
}

// faultResults are the results of the faults that were injected during the run, in this order:
// those that were kept beside the record, and by the objects the others.
func (r *Run) faultResults() []result.Fault {
	var all []result.Fault
	for _, f := range r.during() {
		all = append(all, *digest.ResultOf(r.kept.Faults, &f, r.Series.Start))
	}
	for i := range r.kept.Faults { // their objects may have been deleted
		f := &r.kept.Faults[i]
		if result.FaultWith(all, f.UID, f.Name) == nil {
			all = append(all, *f)
		}
	}
	slices.SortStableFunc(all, func(a, b result.Fault) int { return cmp.Compare(a.At, b.At) })
	return all
}

// Marks are the faults that were injected during the run, without its settings.
func (r *Run) Marks() (marks []result.Mark) {
	for _, f := range r.faultResults() {
		marks = append(marks, f.Mark())
	}
	return marks
}
