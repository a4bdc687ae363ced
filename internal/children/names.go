// Package children builds the objects that the operator makes for a RedisLoadTest or a RedisFault:
// one pure builder per object, without a client and a clock. Every child is owned by its parent and
// deleted with it.
package children

import (
	"crypto/sha256"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
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
func LoadJobName(test string) string {
	return test + "-load"
}

// What load pods mount is immutable, and has a name that no other object of its kind ever has: a
// kubelet gives an immutable object that it knows to every pod that names it, as long as a pod of
// its node uses that, also when it was deleted and created again. So a load test that is created
// again at once would get the credentials of the former one, and one whose spec has changed its
// former plan.
// See https://kubernetes.io/docs/concepts/configuration/secret/#secret-immutable-create

// planName is the name of the ConfigMap with a plan, which contains the UID of the load test.
func planName(test, plan string) string {
	return fmt.Sprintf("%s-plan-%.4x", test, sha256.Sum256([]byte(plan)))
}

// PlanOf is the name of the ConfigMap with the plan that the pods of a load test's Job mount; "" if
// they mount none.
func PlanOf(job *batchv1.Job) string {
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.Name == planVolume && v.ConfigMap != nil {
			return v.ConfigMap.Name
		}
	}
	return ""
}

// AgentSecretName is the name of the Secret with the credentials of a load test's run.
func AgentSecretName(test *v1alpha1.RedisLoadTest) string {
	first, _, _ := strings.Cut(string(test.UID), "-")
	return test.Name + "-agent-" + first
}

// ResultsName is the name of the ConfigMap with a load test's record.
func ResultsName(test string) string {
	return test + "-results"
}

// ProbeName is the name of the load test of a fault that names none.
func ProbeName(fault string) string {
	return fault + "-probe"
}

// ofLoadTest is the metadata of a load test's child.
func ofLoadTest(test *v1alpha1.RedisLoadTest, name, component string) metav1.ObjectMeta {
	return owned(test, "RedisLoadTest", name, LoadTestLabels(test.Name, component))
}

// owned is the metadata of a child of an object of a kind.
func owned(
	parent metav1.Object, kind, name string, labels map[string]string,
) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: parent.GetNamespace(),
		Labels:    labels,
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(parent, v1alpha1.GroupVersion.WithKind(kind)),
		},
	}
}

// LoadTestLabels select a load test's children. No label or annotation of the test itself is
// copied: GitOps tools track objects by theirs.
func LoadTestLabels(test, component string) map[string]string {
	return labels(v1alpha1.LabelLoadTest, test, component)
}

// labels are those of the children of a parent, of whose kind is the label of.
func labels(of, parent, component string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      nameLabelValue,
		v1alpha1.LabelComponent: component,
		v1alpha1.LabelManagedBy: managedBy,
		of:                      parent,
	}
}

// AgentSecret holds the credentials by which the operator and the load pods of one run authenticate
// each other.
func AgentSecret(test *v1alpha1.RedisLoadTest, credentials agent.Credentials) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: ofLoadTest(test, AgentSecretName(test), ComponentLoad),
		Immutable:  new(true),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			agent.KeyCertificate: credentials.CertificatePEM,
			agent.KeyPrivateKey:  credentials.PrivateKeyPEM,
			agent.KeyToken:       []byte(credentials.Token),
		},
	}
}

// Where the load pods find their files. Whole directories are mounted, never a subPath: a rotated
// Secret does not reach a running pod through a subPath.
const (
	planDir     = "/etc/redquake/plan"
	clientDir   = "/run/redquake" // shared with the sidecar of a client library
	agentDir    = "/etc/redquake/agent"
	passwordDir = "/etc/redquake/password"
	caDir       = "/etc/redquake/ca"
	certDir     = "/etc/redquake/cert"

	sentinelPasswordDir = "/etc/redquake/sentinel-password"
	sentinelCADir       = "/etc/redquake/sentinel-ca"
	sentinelCertDir     = "/etc/redquake/sentinel-cert"
	databaseDir         = "/etc/redquake/database"
)

// Names of the files there, and of the keys that hold them.
const (
	// PlanKey is the key of the plan in its ConfigMap.
	PlanKey = "plan.json"

	passwordFile = "password"
	dsnFile      = "dsn"
	caKey        = "ca.crt"
	certKey      = "tls.crt"
	privateKey   = "tls.key"
)

// value is *p, or the zero value where it is absent.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
