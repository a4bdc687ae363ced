package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
)

// clusterFlags are the flags of commands that read from a cluster, as kubectl has them.
type clusterFlags struct {
	kubeconfig, context, namespace string
}

func (f *clusterFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`namespace` (default: that of the context)")
	flags.StringVar(&f.context, "context", "", "`name` of the context in the kubeconfig (default: the current one)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` with the access to the cluster (default: $KUBECONFIG, ~/.kube/config)")
}

// load returns what the kubeconfig says of the access to the cluster, and the namespace.
func (f *clusterFlags) load() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// connect returns a client of the cluster.
func (f *clusterFlags) connect() (*kube.Client, error) {
	config, namespace, err := f.load()
	if err != nil {
		return nil, err
	}
	return kube.New(config, namespace)
}

// Paths of resources below a namespace.
const (
	configMaps  = "/api/v1/namespaces/%s/configmaps"
	experiments = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisexperiments"
	schedules   = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisexperimentschedules"
	loadTests   = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisloadtests"
	faults      = "/apis/redquake.dev/v1alpha1/namespaces/%s/redisfaults"
)

// read reads the run of a load test.
func (f *clusterFlags) read(ctx context.Context, test string) (*archive.Run, error) {
	c, err := f.connect()
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
		return nil, fmt.Errorf("ConfigMap %s of namespace %s contains no record", children.ResultsName(test), namespace)
	}
	return run, nil
}

// readObjects reads a load test, the faults of its namespace, and its record with the results, if that is stored. One of an earlier load test of the same name is
// none of its.
func (f *clusterFlags) readObjects(ctx context.Context, test string) (*archive.Run, error) {
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	all, err := readStatuses(ctx, c, test)
	if err != nil {
		return nil, err
	}
	switch stored, err := c.Raw(ctx, fmt.Sprintf(configMaps, c.Namespace), children.ResultsName(test)); {
	case apierrors.IsNotFound(err): // not stored yet, or deleted
	case err != nil:
		return nil, fmt.Errorf("read the record of RedisLoadTest %s: %w", test, err)
	case isOf(stored, all[0]):
		all = append(all, stored)
	}
	return runOfObjects(all)
}

// readStatusesOnly is readObjects without the record.
func (f *clusterFlags) readStatusesOnly(ctx context.Context, test string) (*archive.Run, error) {
	c, err := f.connect()
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
		return nil, fmt.Errorf("there is no RedisLoadTest %s in namespace %s, and no file of this name", test, namespace)
	case err != nil:
		return nil, fmt.Errorf("read RedisLoadTest %s: %w", test, err)
	}
	list, err := c.Raw(ctx, fmt.Sprintf(faults, namespace))
	if err != nil {
		return nil, fmt.Errorf("list the RedisFaults of namespace %s: %w", namespace, err)
	}
	return [][]byte{object, list}, nil
}

// isOf reports whether a stored object in JSON is controlled by another one, or tells nothing of that.
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

// readExperiment reads an experiment and its record, if it has one.
func (f *clusterFlags) readExperiment(ctx context.Context, name string) (*archive.Experiment, error) {
	saved, err := f.readRecorded(ctx, kube.Experiment, experiments, name, children.ExperimentRecordName(name))
	if err != nil {
		return nil, err
	}
	return saved.Experiment()
}

// readSchedule reads a schedule and its history, if it has one.
func (f *clusterFlags) readSchedule(ctx context.Context, name string) (*archive.Objects, error) {
	return f.readRecorded(ctx, kube.Schedule, schedules, name, children.HistoryName(name))
}

// readRecorded reads an object of a kind, whose path is given, and the ConfigMap with its record, if it has one.
func (f *clusterFlags) readRecorded(ctx context.Context, kind kube.Kind, path, name, record string) (*archive.Objects, error) {
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	namespace := c.Namespace
	var saved archive.Objects
	object, err := c.Raw(ctx, fmt.Sprintf(path, namespace), name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s %s in namespace %s", kind.Name, name, namespace)
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", kind.Name, name, err)
	}
	if err := saved.Add(object); err != nil {
		return nil, err
	}
	switch object, err = c.Raw(ctx, fmt.Sprintf(configMaps, namespace), record); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", record, err)
	default:
		if err := saved.Add(object); err != nil {
			return nil, err
		}
	}
	return &saved, nil
}

// noRecord returns why a load test has no record. object is the test in JSON, or err why it could not be read.
func noRecord(object []byte, err error, namespace, name string) error {
	test := &v1alpha1.RedisLoadTest{}
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no RedisLoadTest %s in namespace %s, and no file of this name", name, namespace)
	case err != nil:
		return fmt.Errorf("read RedisLoadTest %s: %w", name, err)
	}
	if err := json.Unmarshal(object, test); err != nil {
		return fmt.Errorf("decode RedisLoadTest %s: %w", name, err)
	}
	why := "it has not started"
	if complete := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionComplete); complete != nil {
		why = complete.Reason + ": " + complete.Message
	}
	return fmt.Errorf("RedisLoadTest %s of namespace %s has no record (%s)", name, namespace, why)
}
