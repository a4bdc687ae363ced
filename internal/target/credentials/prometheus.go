package credentials

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/prometheus"
)

// tokenKey is the key of a Secret that holds a bearer token.
const tokenKey = "token"

// Prometheus reads the Secrets that a Prometheus server names. field is its field in the spec. A
// Problem names the field whose Secret or key is missing.
func Prometheus(
	ctx context.Context, secrets client.Reader, namespace, field string,
	spec *v1alpha1.PrometheusServer,
) (prometheus.Server, error) {
	server := prometheus.Server{URL: spec.URL}
	if ref := spec.AuthSecretRef; ref != nil {
		err := authenticate(ctx, secrets, namespace, field+".authSecretRef", ref.Name, &server)
		if err != nil {
			return server, err
		}
	}
	if spec.TLS == nil {
		return server, nil
	}
	var err error
	server.TLS, _, err = tlsConfig(ctx, secrets, namespace, field, spec.TLS)
	return server, err
}

func authenticate(
	ctx context.Context, secrets client.Reader, namespace, field, name string,
	server *prometheus.Server,
) error {
	var secret corev1.Secret
	err := secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return &problem.Problem{
			Reason:  v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf("%s: there is no Secret %q in namespace %s", field, name, namespace),
		}
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", name, err)
	}
	value := func(key string) string { return strings.TrimRight(string(secret.Data[key]), "\r\n") }
	server.Token = value(tokenKey)
	if server.Token == "" {
		server.Username = value(corev1.BasicAuthUsernameKey)
		server.Password = value(corev1.BasicAuthPasswordKey)
	}
	if server.Token == "" && (server.Username == "" || server.Password == "") {
		return &problem.Problem{
			Reason: v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf("%s: Secret %q has neither a key token nor the keys username and password",
				field, name),
		}
	}
	return nil
}
