package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var requests = []Request{
	{
		Name:       "apiserver",
		CommonName: "kube-apiserver",
		DNSNames:   []string{"kubernetes.default.svc"},
		IPs:        []string{"198.18.0.1"},
	},
	{Name: "admin", CommonName: "admin", Organization: "system:masters", Client: true},
}

func TestCertificatesVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := Create(dir, requests); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	ca, _ := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("ca.crt holds no certificate")
	}
	for _, c := range []struct {
		name, host string
		usage      x509.ExtKeyUsage
	}{
		{"apiserver", "kubernetes.default.svc", x509.ExtKeyUsageServerAuth},
		{"apiserver", "198.18.0.1", x509.ExtKeyUsageServerAuth},
		{"admin", "", x509.ExtKeyUsageClientAuth},
	} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, c.name+".crt"), filepath.Join(dir, c.name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		leaf, _ := x509.ParseCertificate(pair.Certificate[0])
		options := x509.VerifyOptions{Roots: roots, DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage}}
		if _, err := leaf.Verify(options); err != nil {
			t.Errorf("%s for %q: %v", c.name, c.host, err)
		}
	}
}

func TestCreateIsCompleteOrNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	os.MkdirAll(dir+".new", 0o700) // a run that was killed half-way
	os.WriteFile(filepath.Join(dir+".new", "ca.crt"), []byte("half"), 0o600)
	if err := Create(dir, requests); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err := Create(dir, requests); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "ca.crt")); string(after) != string(before) || string(after) == "half" {
		t.Error("a complete folder was not left alone, or a half one was taken for complete")
	}
}

func TestKubeconfigStandsAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := Create(dir, requests); err != nil {
		t.Fatal(err)
	}
	if err := WriteKubeconfig(dir, "admin", "https://198.18.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(filepath.Join(dir, "admin.kubeconfig"))
	for _, want := range []string{"server: https://198.18.0.1:6443", "client-key-data: ", "certificate-authority-data: "} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %q in the kubeconfig", want)
		}
	}
	if strings.Contains(string(data), dir) {
		t.Error("the kubeconfig names a path of this machine")
	}
	if err := WriteKubeconfig(dir, "nobody", "https://198.18.0.1:6443"); err == nil {
		t.Error("no error for a user without a certificate")
	}
}
