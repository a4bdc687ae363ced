package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// errNoRun means that a file holds nothing of a run.
var errNoRun = fmt.Errorf("contains no ConfigMap with the key %s in binaryData, and no RedisLoadTest", children.ResultsSeriesKey)

// savedRun is what the cluster keeps of a run.
type savedRun struct {
	test   string // the load test; "" = unknown
	series *record.Series
	kept   result.Run            // what is kept of the run beside the record
	faults []v1alpha1.RedisFault // of this and of other load tests
	tests  []v1alpha1.RedisLoadTest
}

// readSaved reads a run from YAML or JSON documents, of which one is a results ConfigMap, from the record alone, or from the result of a load.
func readSaved(in io.Reader) (*savedRun, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	run := &savedRun{}
	if record.IsSeries(text) {
		if run.series, err = record.DecodeSeries(text); err == nil {
			run.kept.Load, err = result.Kept(run.series)
		}
		return run, err
	}
	if run.kept.Load, err = result.DecodeLoad(text); !errors.Is(err, result.ErrNoLoad) {
		return run, err
	}
	if err := documents(text, run.add); err != nil {
		return nil, err
	}
	if run.series == nil && len(run.tests) == 0 {
		return nil, errNoRun
	}
	return run, nil
}

// documents calls add with each of the YAML or JSON documents, in JSON.
func documents(text []byte, add func(object []byte) error) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read YAML: %w", err)
		}
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("is neither a record nor YAML: %w", err)
		}
		if err := add(object); err != nil {
			return err
		}
	}
}

// items calls add with an object in JSON, or with the items of a list.
func items(object []byte, add func(kind string, object []byte) error) error {
	var head metav1.TypeMeta
	if err := json.Unmarshal(object, &head); err != nil {
		return fmt.Errorf("is not an object: %w", err)
	}
	switch head.Kind {
	case "List", "ConfigMapList", "RedisExperimentList", "RedisExperimentScheduleList", "RedisFaultList", "RedisLoadTestList":
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(object, &list); err != nil {
			return fmt.Errorf("decode the %s: %w", head.Kind, err)
		}
		for _, item := range list.Items {
			if err := items(item, add); err != nil {
				return err
			}
		}
		return nil
	}
	return add(head.Kind, object)
}

// add adds an object in JSON, or the items of a list. Objects of other kinds are ignored.
func (r *savedRun) add(object []byte) error { return items(object, r.addObject) }

func (r *savedRun) addObject(kind string, object []byte) error {
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
		r.tests = append(r.tests, test)
	case "RedisFault":
		var fault v1alpha1.RedisFault
		if err := json.Unmarshal(object, &fault); err != nil {
			return fmt.Errorf("decode a RedisFault: %w", err)
		}
		r.faults = append(r.faults, fault)
	}
	return nil
}

func (r *savedRun) addRecord(stored *corev1.ConfigMap) error {
	data, ok := stored.BinaryData[children.ResultsSeriesKey]
	if !ok {
		return nil
	}
	if r.series != nil {
		return errors.New("contains more than one record: keep one results ConfigMap")
	}
	series, err := record.DecodeSeries(data)
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", stored.Name, err)
	}
	r.series, r.test = series, stored.Labels[v1alpha1.LabelLoadTest]
	r.kept, err = children.ResultsIn(stored)
	return err
}

// faultsOf are the faults that were injected on a load test, and its settings.
func (r *savedRun) faultsOf(test string) []v1alpha1.RedisFault {
	return slices.DeleteFunc(slices.Clone(r.faults), func(f v1alpha1.RedisFault) bool { return f.Status.LoadTest != test || f.Status.InjectedAt == nil })
}

// during are the faults that were injected within the record of the run, without its settings.
func (r *savedRun) during() []v1alpha1.RedisFault {
	return slices.DeleteFunc(slices.Clone(r.faults), func(f v1alpha1.RedisFault) bool {
		if r.series == nil || f.Status.InjectedAt == nil || f.Spec.Setting || r.test != "" && f.Status.LoadTest != r.test {
			return true
		}
		at := f.Status.InjectedAt.Sub(r.series.Start)
		return at < 0 || at > r.series.End() // of another run
	})
}

// faultResults are the results of the faults that were injected during the run, in this order: those that were kept beside the record, and by the objects the others.
func (r *savedRun) faultResults() []result.Fault {
	var all []result.Fault
	for _, f := range r.during() {
		all = append(all, *digest.ResultOf(r.kept.Faults, &f, r.series.Start))
	}
	for i := range r.kept.Faults { // their objects may have been deleted
		if f := &r.kept.Faults[i]; result.FaultWith(all, f.UID, f.Name) == nil {
			all = append(all, *f)
		}
	}
	slices.SortStableFunc(all, func(a, b result.Fault) int { return cmp.Compare(a.At, b.At) })
	return all
}

// marks are the faults that were injected during the run, without its settings.
func (r *savedRun) marks() (marks []result.Mark) {
	for _, f := range r.faultResults() {
		marks = append(marks, f.Mark())
	}
	return marks
}
