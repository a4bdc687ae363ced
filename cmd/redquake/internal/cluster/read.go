package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
)

// Paths of resources below a namespace.
const (
	configMaps  = "/api/v1/namespaces/%s/configmaps"
	experiments = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisexperiments"
	schedules   = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisexperimentschedules"
	loadTests   = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisloadtests"
	faults      = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisfaults"
)

// ReadRecord reads the record of a load test with what was kept beside it, and the faults of its
// namespace. Without a record it is an error that says why there is none.
func (f *Flags) ReadRecord(ctx context.Context, test string) (*archive.Run, error) {
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	namespace := c.Namespace
	get := func(path, name string) ([]byte, error) {
		return c.Raw(ctx, fmt.Sprintf(path, namespace), name)
	}
	run := &archive.Run{}
	stored, err := get(configMaps, children.ResultsName(test))
	switch {
	case apierrors.IsNotFound(err):
		object, err := get(loadTests, test)
		return nil, noRecord(object, err, namespace, test)
	case err != nil:
		return nil, fmt.Errorf("read the record of RedisLoadTest %s: %w", test, err)
	}
	list, err := get(faults, "")
	if err != nil {
		return nil, fmt.Errorf("list the RedisFaults of namespace %s: %w", namespace, err)
	}
	for _, object := range [][]byte{stored, list} {
		if err := run.Add(object); err != nil {
			return nil, err
		}
	}
	if run.Series == nil {
		return nil, fmt.Errorf("ConfigMap %s of namespace %s contains no record",
			children.ResultsName(test), namespace)
	}
	return run, nil
}

// ReadRun reads a load test, the faults of its namespace, and its record with the results, if that
// is stored. One of an earlier load test of the same name is none of its.
func (f *Flags) ReadRun(ctx context.Context, test string) (*archive.Run, error) {
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	all, err := readStatuses(ctx, c, test)
	if err != nil {
		return nil, err
	}
	switch stored, err := c.Raw(ctx, fmt.Sprintf(configMaps, c.Namespace),
		children.ResultsName(test)); {
	case apierrors.IsNotFound(err): // not stored yet, or deleted
	case err != nil:
		return nil, fmt.Errorf("read the record of RedisLoadTest %s: %w", test, err)
	case isOf(stored, all[0]):
		all = append(all, stored)
	}
	return runOfObjects(all)
}

// ReadRunStatuses is ReadRun without the record.
func (f *Flags) ReadRunStatuses(ctx context.Context, test string) (*archive.Run, error) {
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	all, err := readStatuses(ctx, c, test)
	if err != nil {
		return nil, err
	}
	return runOfObjects(all)
}

// readStatuses reads a load test and the faults of its namespace, in JSON.
func readStatuses(ctx context.Context, c *kube.Client, test string) ([][]byte, error) {
	namespace := c.Namespace
	object, err := c.Raw(ctx, fmt.Sprintf(loadTests, namespace), test)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no RedisLoadTest %s in namespace %s, and no file of this name",
			test, namespace)
	case err != nil:
		return nil, fmt.Errorf("read RedisLoadTest %s: %w", test, err)
	}
	list, err := c.Raw(ctx, fmt.Sprintf(faults, namespace))
	if err != nil {
		return nil, fmt.Errorf("list the RedisFaults of namespace %s: %w", namespace, err)
	}
	return [][]byte{object, list}, nil
}

// isOf reports whether a stored object in JSON is controlled by another one, or tells nothing of
// that.
func isOf(stored, owner []byte) bool {
	var child, of metav1.PartialObjectMetadata
	if json.Unmarshal(stored, &child) != nil || json.Unmarshal(owner, &of) != nil {
		return true // whoever decodes it says why
	}
	return metav1.GetControllerOf(&child) == nil || metav1.IsControlledBy(&child, &of)
}

// runOfObjects is the run that objects in JSON are of.
func runOfObjects(objects [][]byte) (*archive.Run, error) {
	run := &archive.Run{}
	for _, data := range objects {
		if err := run.Add(data); err != nil {
			return nil, err
		}
	}
	return run, nil
}

// noRecord returns why a load test has no record. object is the test in JSON, or err why it could
// not be read.
func noRecord(object []byte, err error, namespace, name string) error {
	test := &v1alpha1.RedisLoadTest{}
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no RedisLoadTest %s in namespace %s, and no file of this name", name,
			namespace)
	case err != nil:
		return fmt.Errorf("read RedisLoadTest %s: %w", name, err)
	}
	if err := json.Unmarshal(object, test); err != nil {
		return fmt.Errorf("decode RedisLoadTest %s: %w", name, err)
	}
	why := "it has not started"
	complete := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionComplete)
	if complete != nil {
		why = complete.Reason + ": " + complete.Message
	}
	return fmt.Errorf("RedisLoadTest %s of namespace %s has no record (%s)", name, namespace, why)
}

// LoadTestOf is the name of the load test that measured a fault, or an error if there is none yet.
func (f *Flags) LoadTestOf(ctx context.Context, fault string) (string, error) {
	c, err := f.Connect()
	if err != nil {
		return "", err
	}
	object, err := c.Raw(ctx, fmt.Sprintf(faults, c.Namespace), fault)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("there is no RedisFault %s in namespace %s", fault, c.Namespace)
	case err != nil:
		return "", fmt.Errorf("read RedisFault %s: %w", fault, err)
	}
	var found v1alpha1.RedisFault
	if err := json.Unmarshal(object, &found); err != nil {
		return "", fmt.Errorf("decode RedisFault %s: %w", fault, err)
	}
	if found.Status.LoadTest == "" {
		return "", fmt.Errorf("RedisFault %s of namespace %s has no load test yet", fault, c.Namespace)
	}
	return found.Status.LoadTest, nil
}
