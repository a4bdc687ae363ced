package credentials_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// pair is a certificate and its key, PEM.
type pair struct {
	cert, key []byte
	parsed    *x509.Certificate
	private   *ecdsa.PrivateKey
}

// issue makes a certificate for name, signed by ca, or by itself and a CA where ca is nil.
func issue(t *testing.T, name string, ca *pair) *pair {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  ca == nil,
	}
	parent, signer := template, private
	if ca != nil {
		parent, signer = ca.parsed, ca.private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		parsed,
		private,
	}
}

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name}, Data: data}
}

func TestLoginPassword(t *testing.T) {
	w := faulttest.NewWorld(t,
		secret("auth", map[string][]byte{"password": []byte("s3cret \n"), "empty": nil, "windows": []byte("s3cret\r\n")}))
	ref := func(name, key string) *v1alpha1.RedisTarget {
		return &v1alpha1.RedisTarget{
			Auth: &v1alpha1.RedisAuth{Username: "app", PasswordSecretRef: v1alpha1.SecretKeyReference{Name: name, Key: key}},
		}
	}
	for _, tc := range []struct {
		name     string
		target   *v1alpha1.RedisTarget
		password string
		reason   string
		wantText []string
	}{
		{"no auth", &v1alpha1.RedisTarget{}, "", "", nil},
		{"the final newline is removed, a blank is kept", ref("auth", "password"), "s3cret ", "", nil},
		{"a Windows newline is removed", ref("auth", "windows"), "s3cret", "", nil},
		{"an empty password", ref("auth", "empty"), "", "", nil},
		{
			"no such Secret",
			ref("gone", "password"),
			"",
			v1alpha1.ReasonSecretNotFound,
			[]string{"spec.target.auth.passwordSecretRef", `"gone"`, faulttest.Namespace},
		},
		{
			"no such key",
			ref("auth", "pass"),
			"",
			v1alpha1.ReasonSecretNotFound,
			[]string{"spec.target.auth.passwordSecretRef", `"auth"`, `"pass"`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			login, err := target.LoginFor(t.Context(), w.Cluster, faulttest.Namespace, tc.target)
			if tc.reason != "" {
				problem := faulttest.ProblemOf(t, err)
				if problem.Reason != tc.reason || problem.Lasting {
					t.Errorf("%+v", problem)
				}
				for _, text := range tc.wantText {
					if !strings.Contains(problem.Message, text) {
						t.Errorf("got message %q, want one that contains %q", problem.Message, text)
					}
				}
				return
			}
			if err != nil || login.Password != tc.password || login.TLS != nil || login.Timeout != confine.AskTimeout {
				t.Errorf("login %+v, error %v", login, err)
			}
			if tc.target.Auth != nil && login.Username != "app" {
				t.Errorf("user %q", login.Username)
			}
		})
	}
}

func TestLoginTLSProblems(t *testing.T) {
	client := issue(t, "client", nil)
	other := issue(t, "other", nil)
	w := faulttest.NewWorld(t,
		secret("no-pem", map[string][]byte{"ca.crt": []byte("not a certificate")}),
		secret("no-key", map[string][]byte{"tls.crt": client.cert}),
		secret("mismatch", map[string][]byte{"tls.crt": client.cert, "tls.key": other.key}),
	)
	ca := func(name string) *v1alpha1.RedisTLS {
		return &v1alpha1.RedisTLS{CASecretRef: &v1alpha1.SecretReference{Name: name}}
	}
	cert := func(name string) *v1alpha1.RedisTLS {
		return &v1alpha1.RedisTLS{CertSecretRef: &v1alpha1.SecretReference{Name: name}}
	}
	for _, tc := range []struct {
		name, reason, wantText string
		tls                    *v1alpha1.RedisTLS
	}{
		{"no CA Secret", v1alpha1.ReasonSecretNotFound, "spec.target.tls.caSecretRef", ca("gone")},
		{"a CA Secret without ca.crt", v1alpha1.ReasonSecretNotFound, `"ca.crt"`, ca("no-key")},
		{"a CA that is no certificate", v1alpha1.ReasonInvalidSpec, "spec.target.tls.caSecretRef", ca("no-pem")},
		{"no client Secret", v1alpha1.ReasonSecretNotFound, "spec.target.tls.certSecretRef", cert("gone")},
		{"a client certificate without its key", v1alpha1.ReasonSecretNotFound, `"tls.key"`, cert("no-key")},
		{"another's key", v1alpha1.ReasonInvalidSpec, "spec.target.tls.certSecretRef", cert("mismatch")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := target.LoginFor(t.Context(), w.Cluster, faulttest.Namespace, &v1alpha1.RedisTarget{TLS: tc.tls})
			problem := faulttest.ProblemOf(t, err)
			if problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.wantText) || problem.Lasting {
				t.Errorf("%+v, want %s about %s, to be tried again", problem, tc.reason, tc.wantText)
			}
		})
	}
}

// A pod is queried by its address, which no certificate contains: the chain is verified nevertheless, and the server
// name if one is configured.
func TestLoginVerifiesTheChain(t *testing.T) {
	ca, foreign := issue(t, "ca", nil), issue(t, "foreign", nil)
	server := issue(t, "redis.shop.svc", ca)
	impostor := issue(t, "redis.shop.svc", foreign)
	mine := issue(t, "client", ca)
	w := faulttest.NewWorld(t,
		secret("ca", map[string][]byte{"ca.crt": ca.cert}),
		secret("mine", map[string][]byte{"tls.crt": mine.cert, "tls.key": mine.key}),
	)
	withCA := &v1alpha1.SecretReference{Name: "ca"}
	for _, tc := range []struct {
		name   string
		tls    v1alpha1.RedisTLS
		server *pair
		ok     bool
	}{
		{"trusted, no name configured", v1alpha1.RedisTLS{CASecretRef: withCA}, server, true},
		{"not trusted, no name configured", v1alpha1.RedisTLS{CASecretRef: withCA}, impostor, false},
		{"not signed by the system's roots", v1alpha1.RedisTLS{}, server, false},
		{"trusted, its name", v1alpha1.RedisTLS{CASecretRef: withCA, ServerName: "redis.shop.svc"}, server, true},
		{"trusted, another name", v1alpha1.RedisTLS{CASecretRef: withCA, ServerName: "cache.shop.svc"}, server, false},
		{"not trusted, its name", v1alpha1.RedisTLS{CASecretRef: withCA, ServerName: "redis.shop.svc"}, impostor, false},
		{"no verification", v1alpha1.RedisTLS{InsecureSkipVerify: true}, impostor, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := tc.tls
			spec.CertSecretRef = &v1alpha1.SecretReference{Name: "mine"}
			login, err := target.LoginFor(t.Context(), w.Cluster, faulttest.Namespace, &v1alpha1.RedisTarget{TLS: &spec})
			if err != nil {
				t.Fatal(err)
			}
			presented, got := handshake(t, tc.server, login.TLS)
			if (got == nil) != tc.ok {
				t.Errorf("handshake: %v, want success %v", got, tc.ok)
			}
			if tc.ok && presented != "client" {
				t.Errorf("the server was shown the certificate of %q", presented)
			}
		})
	}
}

// handshake dials a TLS server on loopback, and returns the client's error and the name in its certificate.
func handshake(t *testing.T, server *pair, config *tls.Config) (presented string, err error) {
	t.Helper()
	own, err := tls.X509KeyPair(server.cert, server.key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	subject := make(chan string, 1)
	go func() {
		defer close(subject)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		secure := tls.Server(conn, &tls.Config{
			Certificates: []tls.Certificate{own},
			ClientAuth:   tls.RequireAnyClientCert,
			MinVersion:   tls.VersionTLS12,
		})
		if secure.Handshake() == nil {
			subject <- secure.ConnectionState().PeerCertificates[0].Subject.CommonName
		}
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", listener.Addr().String(), config)
	if err == nil {
		conn.Close()
	}
	listener.Close()
	return <-subject, err
}

// An error of the API server is no Problem of the spec.
func TestLoginPassesErrorsOn(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Hooks.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewForbidden(corev1.Resource("secrets"), "auth", errors.New("no"))
	}
	_, err := target.LoginFor(t.Context(), w.Cluster, faulttest.Namespace, &v1alpha1.RedisTarget{
		Auth: &v1alpha1.RedisAuth{PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "auth", Key: "p"}},
	})
	if !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want the API server's own", err)
	}
}

// A rotated certificate or changed trust is a different login: connections of the old one are not reused.
func TestLoginDependsOnTrust(t *testing.T) {
	ca, other := issue(t, "ca", nil), issue(t, "other", nil)
	mine, rotated := issue(t, "client", ca), issue(t, "client", ca)
	w := faulttest.NewWorld(t, secret("ca", map[string][]byte{"ca.crt": ca.cert}),
		secret("other", map[string][]byte{"ca.crt": other.cert}),
		secret("mine", map[string][]byte{"tls.crt": mine.cert, "tls.key": mine.key}),
		secret("rotated", map[string][]byte{"tls.crt": rotated.cert, "tls.key": rotated.key}))
	ref := func(name string) *v1alpha1.SecretReference { return &v1alpha1.SecretReference{Name: name} }
	trust := func(tls v1alpha1.RedisTLS) string {
		login, err := target.LoginFor(t.Context(), w.Cluster, faulttest.Namespace, &v1alpha1.RedisTarget{TLS: &tls})
		if err != nil {
			t.Fatal(err)
		}
		return login.Trust
	}
	first := v1alpha1.RedisTLS{CASecretRef: ref("ca"), CertSecretRef: ref("mine")}
	if again := first; trust(first) != trust(again) {
		t.Error("got a different login for the same settings")
	}
	for name, tls := range map[string]v1alpha1.RedisTLS{
		"another authority":   {CASecretRef: ref("other"), CertSecretRef: ref("mine")},
		"another certificate": {CASecretRef: ref("ca"), CertSecretRef: ref("rotated")},
		"another name":        {CASecretRef: ref("ca"), CertSecretRef: ref("mine"), ServerName: "redis"},
		"no check":            {CASecretRef: ref("ca"), CertSecretRef: ref("mine"), InsecureSkipVerify: true},
	} {
		if trust(tls) == trust(first) {
			t.Errorf("%s: got the same login, want a different one", name)
		}
	}
}
