package children

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
)

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
