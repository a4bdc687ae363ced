package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/manifest"
)

// savedExperiment is what the cluster keeps of an experiment.
type savedExperiment struct {
	object *v1alpha1.RedisExperiment
	plan   *experiment.Plan
	record *experiment.Record // without runs if none has ended

	objects *savedObjects
}

// savedObjects are the experiment in a file, the ConfigMaps that may be its record, and what is there of its runs.
type savedObjects struct {
	object     *v1alpha1.RedisExperiment
	configMaps []*corev1.ConfigMap
	tests      map[string]*v1alpha1.RedisLoadTest
	faults     []v1alpha1.RedisFault
	results    map[string]*corev1.ConfigMap // those of children.ResultsConfigMap, by load test
}

// add adds an object in JSON, or the items of a list. Objects of other kinds are ignored.
func (s *savedObjects) add(object []byte) error { return items(object, s.addObject) }

func (s *savedObjects) addObject(kind string, object []byte) error {
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
		if s.tests == nil {
			s.tests = map[string]*v1alpha1.RedisLoadTest{}
		}
		s.tests[test.Name] = &test
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
		if s.object != nil {
			return fmt.Errorf("contains more than one RedisExperiment (%s and %s): keep one a file", s.object.Name, found.Name)
		}
		s.object = found
	}
	return nil
}

func (s *savedObjects) addConfigMap(stored *corev1.ConfigMap) {
	_, runs := stored.BinaryData[children.ExperimentRecordKey]
	_, history := stored.BinaryData[children.ExperimentHistoryKey]
	if runs || history {
		s.configMaps = append(s.configMaps, stored)
	}
	if _, ok := stored.BinaryData[children.ResultsSeriesKey]; ok {
		if s.results == nil {
			s.results = map[string]*corev1.ConfigMap{}
		}
		s.results[stored.Labels[v1alpha1.LabelLoadTest]] = stored
	}
}

// decodeExperiment reads an experiment as the API server would accept it: of a file that was never applied, too. The status may have fields of a newer version.
func decodeExperiment(object []byte) (*v1alpha1.RedisExperiment, error) {
	var status struct {
		Status v1alpha1.RedisExperimentStatus `json:"status"`
	}
	if err := json.Unmarshal(object, &status); err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	delete(members, "status")
	document, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	e := &v1alpha1.RedisExperiment{}
	if err := manifest.Decode(document, e); err != nil {
		return nil, err
	}
	e.Status = status.Status
	return e, nil
}

// experiment is the experiment with its record.
func (s *savedObjects) experiment() (*savedExperiment, error) {
	e := s.object
	switch {
	case e == nil && len(s.configMaps) > 0:
		name := strings.TrimSuffix(s.configMaps[0].Name, children.ExperimentRecordName(""))
		return nil, fmt.Errorf("contains a record, but not its RedisExperiment, which says what is compared: %s", saveBoth(name))
	case e == nil:
		return nil, errors.New("contains no RedisExperiment; of runs, the arguments are NAME=RUNS")
	case e.Spec.Schedule != "" && len(e.Status.Conditions) > 0: // in a file that was not applied it is as each of its runs will be
		return nil, fmt.Errorf("RedisExperiment %s is a schedule: name one of its runs, which are RedisExperiments, too%s", e.Name, lastOf(e))
	}
	plan, err := experiment.NewPlan(&e.Spec)
	if err != nil {
		return nil, fmt.Errorf("RedisExperiment %s: %w", e.Name, err)
	}
	record, err := s.recordOf(e, plan)
	if err != nil {
		return nil, err
	}
	return &savedExperiment{e, plan, record, s}, nil
}

// recordOf is the record of an experiment.
func (s *savedObjects) recordOf(e *v1alpha1.RedisExperiment, plan *experiment.Plan) (*experiment.Record, error) {
	name := children.ExperimentRecordName(e.Name)
	for _, stored := range s.configMaps {
		of := metav1.GetControllerOf(stored)
		if _, runs := stored.BinaryData[children.ExperimentRecordKey]; !runs || stored.Name != name || of != nil && e.UID != "" && of.UID != e.UID {
			continue // of another experiment, or of one of this name that was deleted
		}
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
		return nil, fmt.Errorf("the record of RedisExperiment %s, ConfigMap %s, is missing: %s", e.Name, name, saveBoth(e.Name))
	}
	return &experiment.Record{Version: experiment.RecordVersion, Cells: plan.Names()}, nil
}

// saveBoth is how to save all that a comparison needs.
func saveBoth(name string) string {
	return fmt.Sprintf("kubectl get redisexperiment/%s configmap/%s -o yaml saves both", name, children.ExperimentRecordName(name))
}

// lastOf names the last run of a schedule.
func lastOf(e *v1alpha1.RedisExperiment) string {
	if s := e.Status.Schedule; s != nil && len(s.History) > 0 {
		return ", such as redisexperiment/" + s.History[len(s.History)-1].Name
	}
	return ""
}
