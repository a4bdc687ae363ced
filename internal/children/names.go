// Package children builds the objects that the operator makes for a RedisLoadTest or a RedisFault: one pure builder per object,
// without a client and a clock. Every child is owned by its parent and deleted with it.
package children

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Values of the labels of every child.
const (
	nameLabelValue = "redquake"
	managedBy      = "redquake"
)

// Values of the label app.kubernetes.io/component.
const (
	ComponentLoad    = "load"    // the load pods and what they mount
	ComponentResults = "results" // the record of a finished test
	ComponentProbe   = "probe"   // a fault's own load test
)

// LoadJobName is the name of a load test's Job.
func LoadJobName(test string) string { return test + "-load" }

// PlanName is the name of the ConfigMap with a load test's plan.
func PlanName(test *v1alpha1.RedisLoadTest) string { return test.Name + "-plan-" + unique(test) }

// AgentSecretName is the name of the Secret with the credentials of a load test's run.
func AgentSecretName(test *v1alpha1.RedisLoadTest) string {
	return test.Name + "-agent-" + unique(test)
}

// unique distinguishes what the pods of a load test mount from that of another one of its name. A kubelet gives an immutable object that it knows to every pod that
// names it, as long as a pod of its node uses that: a load test that is deleted and created again at once would get the plan and the credentials of the former one.
// See https://kubernetes.io/docs/concepts/configuration/secret/#secret-immutable-create
func unique(test *v1alpha1.RedisLoadTest) string {
	first, _, _ := strings.Cut(string(test.UID), "-")
	return first
}

// ResultsName is the name of the ConfigMap with a load test's record.
func ResultsName(test string) string { return test + "-results" }

// ProbeName is the name of the load test of a fault that names none.
func ProbeName(fault string) string { return fault + "-probe" }

// ofLoadTest is the metadata of a load test's child.
func ofLoadTest(test *v1alpha1.RedisLoadTest, name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: test.Namespace,
		Labels:    LoadTestLabels(test.Name, component),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(test, v1alpha1.GroupVersion.WithKind("RedisLoadTest")),
		},
	}
}

// LoadTestLabels select a load test's children. No label or annotation of the test itself is copied: GitOps tools track objects by theirs.
func LoadTestLabels(test, component string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      nameLabelValue,
		v1alpha1.LabelComponent: component,
		v1alpha1.LabelManagedBy: managedBy,
		v1alpha1.LabelLoadTest:  test,
	}
}
