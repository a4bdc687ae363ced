//go:build integration

package load

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	a.cert = a.sign("ca", template, template, a.key, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign writes name.crt and name.key.
func (a *authority) sign(name string, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue makes a certificate for the host names and for 127.0.0.1.
func (a *authority) issue(name string, hosts ...string) {
	a.sign(name, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, newKey(a.t), a.key)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server", "redis.test")
	a.issue("client")
	port := freePort(t)
	server := startRedis(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", a.file("server.crt"), "--tls-key-file", a.file("server.key"),
		"--tls-ca-cert-file", a.file("ca.crt"), "--tls-auth-clients", "yes")
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
	good := plan.TLS{CAFile: a.file("ca.crt"), CertFile: a.file("client.crt"), KeyFile: a.file("client.key"), ServerName: "redis.test"}
	planTo := func(address string, change func(*plan.TLS)) *plan.Plan {
		p := realPlan(address)
		settings := good
		change(&settings)
		p.Target.TLS = &settings
		p.Shape = plan.Shape{Users: 10, Requests: 2000}
		return p
	}
	for _, pipeline := range []int{1, 16} {
		p := planTo(address, func(*plan.TLS) {})
		p.Client.Pipeline = pipeline
		o := runPlan(t, p)
		t.Log(describe(o))
		if o.sum.OK != 2000 || o.sum.Sent != 2000 || o.probe.Fail > 0 {
			t.Errorf("pipeline %d: %s", pipeline, describe(o))
		}
	}
	wantReason(t, planTo(address, func(s *plan.TLS) { s.CAFile = "" }), plan.TLSFailed, "authority that is not trusted")
	wantReason(t, planTo(address, func(s *plan.TLS) { s.ServerName = "other.test" }), plan.TLSFailed, "other.test")
	wantReason(t, planTo(address, func(s *plan.TLS) { s.CAFile += ".missing" }), plan.TLSFailed, "no such file")
	wantReason(t, planTo(address, func(s *plan.TLS) { s.CertFile, s.KeyFile = "", "" }), plan.TLSFailed, "client certificate")
	p := planTo(server.address(), func(*plan.TLS) {}) // the other language is tried once a dial has timed out
	p.Client.DialTimeout = 3 * time.Second
	wantReason(t, p, plan.TLSFailed, "answers without TLS")
	for _, protocol := range []int{2, 3} {
		p := testPlan(address)
		p.Client.Protocol = protocol
		wantReason(t, p, plan.TLSFailed, "speaks TLS")
	}
}
