// Package credentials reads what Secrets hold for connections: logins and certificates, tokens,
// URLs of webhooks. Its errors name fields and Secrets, never what is in them.
package credentials

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
)

// Login reads the password, the CA and the client certificate that a spec names, either of which
// may be nil. field is their field in the spec: a Problem names the field whose Secret or key is
// missing. Server names are not checked unless secure.ServerName is set. The login has no timeout.
func Login(
	ctx context.Context, secrets client.Reader, namespace, field string, auth *v1alpha1.RedisAuth,
	secure *v1alpha1.RedisTLS,
) (redis.Login, error) {
	var login redis.Login
	if auth != nil {
		password, err := secretKey(ctx, secrets, namespace, field+".auth.passwordSecretRef",
			auth.PasswordSecretRef.Name, auth.PasswordSecretRef.Key)
		if err != nil {
			return login, err
		}
		login.Username = auth.Username
		login.Password = strings.TrimRight(string(password), "\r\n")
	}
	if secure == nil {
		return login, nil
	}
	return tlsFor(ctx, secrets, namespace, field, secure, login)
}

// tlsFor adds TLS to a login. Trust is a hash of the configuration and the certificates, so that
// connections are not reused after a rotation.
func tlsFor(
	ctx context.Context, secrets client.Reader, namespace, field string, secure *v1alpha1.RedisTLS,
	login redis.Login,
) (redis.Login, error) {
	config, trust, err := tlsConfig(ctx, secrets, namespace, field, secure)
	if err != nil {
		return login, err
	}
	if config.ServerName == "" && !config.InsecureSkipVerify {
		config.InsecureSkipVerify = true // only the name: verifyChain checks the rest
		config.VerifyConnection = func(state tls.ConnectionState) error {
			return verifyChain(state, config.RootCAs)
		}
	}
	login.TLS, login.Trust = config, trust
	return login, nil
}

// tlsConfig reads the certificates of a TLS configuration, and hashes it.
func tlsConfig(
	ctx context.Context, secrets client.Reader, namespace, field string, secure *v1alpha1.RedisTLS,
) (config *tls.Config, hash string, err error) {
	trust := sha256.New()
	fmt.Fprintf(trust, "%q %v", secure.ServerName, secure.InsecureSkipVerify)
	config = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         secure.ServerName,
		InsecureSkipVerify: secure.InsecureSkipVerify, //nolint:gosec // explicitly requested in the spec
	}
	if ref := secure.CASecretRef; ref != nil {
		pem, err := secretKey(ctx, secrets, namespace, field+".tls.caSecretRef", ref.Name, "ca.crt")
		if err != nil {
			return nil, "", err
		}
		trust.Write(pem)
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "", &problem.Problem{
				Reason: v1alpha1.ReasonInvalidSpec,
				Message: fmt.Sprintf("%s.tls.caSecretRef: key ca.crt of Secret %q holds no certificate", field,
					ref.Name),
			}
		}
	}
	if ref := secure.CertSecretRef; ref != nil {
		pair, cert, err := clientCertificate(ctx, secrets, namespace, field+".tls.certSecretRef",
			ref.Name)
		if err != nil {
			return nil, "", err
		}
		trust.Write(cert)
		config.Certificates = []tls.Certificate{pair}
	}
	return config, string(trust.Sum(nil)), nil
}

// clientCertificate reads a certificate with its key; cert is the certificate as the Secret has it.
func clientCertificate(
	ctx context.Context, secrets client.Reader, namespace, field, name string,
) (pair tls.Certificate, cert []byte, err error) {
	cert, err = secretKey(ctx, secrets, namespace, field, name, corev1.TLSCertKey)
	if err != nil {
		return pair, nil, err
	}
	key, err := secretKey(ctx, secrets, namespace, field, name, corev1.TLSPrivateKeyKey)
	if err != nil {
		return pair, nil, err
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		return pair, nil, &problem.Problem{
			Reason:  v1alpha1.ReasonInvalidSpec,
			Message: fmt.Sprintf("%s: Secret %q: %v", field, name, err),
		}
	}
	return pair, cert, nil
}

// verifyChain checks a server's certificate but for the name in it.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, cert := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(options)
	return err
}

func secretKey(
	ctx context.Context, secrets client.Reader, namespace, field, name, key string,
) ([]byte, error) {
	var secret corev1.Secret
	err := secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf("%s: there is no Secret %q in namespace %s", field, name, namespace),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	value, ok := secret.Data[key]
	if !ok {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf("%s: Secret %q has no key %q", field, name, key),
		}
	}
	return value, nil
}
