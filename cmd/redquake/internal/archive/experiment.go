package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/manifest"
)

// Experiment is what the cluster keeps of an experiment.
type Experiment struct {
	Object *v1alpha1.RedisExperiment
	Plan   *experiment.Plan
	Record *experiment.Record // without runs if none has ended

	objects *Objects
}

// Objects are the experiment or the schedule in a file, the ConfigMaps that may be its record or
// its history, and what is there of the experiment's runs.
type Objects struct {
	Experiments []*v1alpha1.RedisExperiment
	Schedule    *v1alpha1.RedisExperimentSchedule
	records     []*corev1.ConfigMap
	Histories   []*corev1.ConfigMap
	Tests       map[string]*v1alpha1.RedisLoadTest
	faults      []v1alpha1.RedisFault
	results     map[string]*corev1.ConfigMap // those of children.ResultsConfigMap, by load test
}

// Add adds an object in JSON, or the items of a list. Objects of other kinds are ignored.
func (s *Objects) Add(object []byte) error {
	return documents.Items(object, s.addObject)
}

func (s *Objects) addObject(kind string, object []byte) error {
	switch kind {
	case "ConfigMap":
		var stored corev1.ConfigMap
		if err := json.Unmarshal(object, &stored); err != nil {
			return fmt.Errorf("decode a ConfigMap: %w", err)
		}
		s.addConfigMap(&stored)
	case "RedisLoadTest":
		var test v1alpha1.RedisLoadTest
		if err := json.Unmarshal(object, &test); err != nil {
			return fmt.Errorf("decode a RedisLoadTest: %w", err)
		}
		if s.Tests == nil {
			s.Tests = map[string]*v1alpha1.RedisLoadTest{}
		}
		s.Tests[test.Name] = &test
	case "RedisFault":
		var fault v1alpha1.RedisFault
		if err := json.Unmarshal(object, &fault); err != nil {
			return fmt.Errorf("decode a RedisFault: %w", err)
		}
		s.faults = append(s.faults, fault)
	case "RedisExperiment":
		found, err := decodeExperiment(object)
		if err != nil {
			return fmt.Errorf("decode a RedisExperiment: %w", err)
		}
		s.Experiments = append(s.Experiments, found)
	case "RedisExperimentSchedule":
		found, err := decodeSchedule(object)
		if err != nil {
			return fmt.Errorf("decode a RedisExperimentSchedule: %w", err)
		}
		if s.Schedule != nil {
			return fmt.Errorf("contains more than one RedisExperimentSchedule (%s and %s): keep one a file",
				s.Schedule.Name, found.Name)
		}
		s.Schedule = found
	}
	return nil
}

func (s *Objects) addConfigMap(stored *corev1.ConfigMap) {
	_, ok := stored.BinaryData[children.ExperimentRecordKey]
	if ok {
		s.records = append(s.records, stored)
	}
	if _, ok := stored.BinaryData[children.HistoryKey]; ok {
		s.Histories = append(s.Histories, stored)
	}
	_, ok = stored.BinaryData[children.ResultsSeriesKey]
	if ok {
		if s.results == nil {
			s.results = map[string]*corev1.ConfigMap{}
		}
		s.results[stored.Labels[v1alpha1.LabelLoadTest]] = stored
	}
}

func decodeExperiment(object []byte) (*v1alpha1.RedisExperiment, error) {
	var status struct {
		Status v1alpha1.RedisExperimentStatus `json:"status"`
	}
	e := &v1alpha1.RedisExperiment{}
	err := decodeSaved(object, e, &status)
	e.Status = status.Status
	return e, err
}

func decodeSchedule(object []byte) (*v1alpha1.RedisExperimentSchedule, error) {
	var status struct {
		Status v1alpha1.RedisExperimentScheduleStatus `json:"status"`
	}
	s := &v1alpha1.RedisExperimentSchedule{}
	err := decodeSaved(object, s, &status)
	s.Status = status.Status
	return s, err
}

// decodeSaved reads an object as the API server would accept it: of a file that was never applied,
// too. The status, which is read by itself, may have fields of a newer version.
func decodeSaved(object []byte, into manifest.Object, status any) error {
	if err := json.Unmarshal(object, status); err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &members); err != nil {
		return err
	}
	delete(members, "status")
	document, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return manifest.Decode(document, into)
}

// Experiment is the experiment with its record, as its spec plans it. Without an experiment, or
// with more than one, it is an error that says what to do.
func (s *Objects) Experiment() (*Experiment, error) {
	e, err := s.Own()
	switch {
	case err != nil:
		return nil, err
	// in a file that was not applied: as each of its runs will be
	case e == nil && s.Schedule != nil &&
		len(s.Schedule.Status.Conditions)+len(s.Schedule.Status.History) == 0:
		e = &v1alpha1.RedisExperiment{
			ObjectMeta: s.Schedule.ObjectMeta,
			Spec:       s.Schedule.Spec.Template.Spec,
		}
	case e == nil && s.Schedule != nil:
		return nil, fmt.Errorf(
			"RedisExperimentSchedule %s is compared by its runs, which are RedisExperiments: name one of "+
				"them%s", s.Schedule.Name, kube.SuchAs(kube.LastRun(s.Schedule)))
	case e == nil && len(s.records) > 0:
		name := strings.TrimSuffix(s.records[0].Name, children.ExperimentRecordName(""))
		return nil, fmt.Errorf(
			"contains a record, but not its RedisExperiment, which says what is compared: %s",
			saveBoth(kube.Experiment, name, s.records[0].Name))
	case e == nil:
		return nil, errors.New("contains no RedisExperiment; of runs, the arguments are NAME=RUNS")
	}
	plan, err := experiment.NewPlan(&e.Spec)
	if err != nil {
		return nil, fmt.Errorf("RedisExperiment %s: %w", e.Name, err)
	}
	record, err := s.recordOf(e, plan)
	if err != nil {
		return nil, err
	}
	return &Experiment{e, plan, record, s}, nil
}

// Own is the experiment; nil = there is none. The runs of a schedule in the same file are the
// schedule's.
func (s *Objects) Own() (*v1alpha1.RedisExperiment, error) {
	var found *v1alpha1.RedisExperiment
	for _, e := range s.Experiments {
		switch {
		case s.Schedule != nil && children.ScheduleOf(e) != nil:
		case found != nil:
			return nil, fmt.Errorf("contains more than one RedisExperiment (%s and %s): keep one a file",
				found.Name, e.Name)
		default:
			found = e
		}
	}
	if found != nil && s.Schedule != nil {
		return nil, fmt.Errorf(
			"contains RedisExperiment %s and RedisExperimentSchedule %s: keep one a file", found.Name,
			s.Schedule.Name)
	}
	return found, nil
}

// recordOf is the record of an experiment.
func (s *Objects) recordOf(
	e *v1alpha1.RedisExperiment, plan *experiment.Plan,
) (*experiment.Record, error) {
	name := children.ExperimentRecordName(e.Name)
	if stored := storedFor(e, s.records, name); stored != nil {
		record, err := experiment.DecodeRecord(stored.BinaryData[children.ExperimentRecordKey])
		if err == nil {
			err = plan.Check(record)
		}
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
		}
		return record, nil
	}
	if e.Status.Results != "" {
		return nil, fmt.Errorf("the record of RedisExperiment %s, ConfigMap %s, is missing: %s", e.Name,
			name, saveBoth(kube.Experiment, e.Name, name))
	}
	return &experiment.Record{Version: experiment.RecordVersion, Cells: plan.Names()}, nil
}

// storedFor is the ConfigMap of a name that is an object's: not that of one of the same name that
// was deleted.
func storedFor(object metav1.Object, among []*corev1.ConfigMap, name string) *corev1.ConfigMap {
	for _, stored := range among {
		of := metav1.GetControllerOf(stored)
		if stored.Name == name && (of == nil || object.GetUID() == "" || of.UID == object.GetUID()) {
			return stored
		}
	}
	return nil
}

// saveBoth is how to save an object with the ConfigMap of its record.
func saveBoth(kind kube.Kind, name, record string) string {
	return fmt.Sprintf("kubectl get %s/%s configmap/%s -o yaml saves both", kind.Singular(), name,
		record)
}
