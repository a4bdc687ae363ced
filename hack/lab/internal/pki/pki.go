// Package pki makes the lab's certificates: one authority, and for every component the client or
// serving certificate that the real one would have, so that nothing in the lab has to skip
// verification.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/files"
)

// validity is long because the lab has nothing to renew certificates with.
const validity = 10 * 365 * 24 * time.Hour

// Request describes one certificate.
type Request struct {
	Name         string // of the files: NAME.crt, NAME.key
	CommonName   string // the user, to the API server
	Organization string // the group, to the API server; may be empty
	Client       bool   // for authenticating to a server
	DNSNames     []string
	IPs          []string // with DNSNames or IPs it also serves
}

// Create fills the folder dir with an authority (ca), a key for service account tokens (sa.key,
// sa.pub) and the requested certificates. The folder appears complete or not at all; an existing
// one is not changed.
func Create(dir string, requests []Request) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	tmp := dir + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return err
	}
	authority, err := newAuthority(tmp)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if err := authority.issue(tmp, r); err != nil {
			return err
		}
	}
	if err := serviceAccountKey(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "redquake-lab-ca"},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign |
			x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, write(dir, "ca", der, key)
}

func (a *authority) issue(dir string, r Request) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: r.CommonName},
		KeyUsage: x509.KeyUsageDigitalSignature,
		DNSNames: r.DNSNames,
	}
	if r.Organization != "" {
		template.Subject.Organization = []string{r.Organization}
	}
	if r.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if len(r.DNSNames)+len(r.IPs) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, ip := range r.IPs {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	der, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return err
	}
	return write(dir, r.Name, der, key)
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // clocks of virtual machines jump
	template.NotAfter = time.Now().Add(validity)
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
}

// write stores NAME.crt and NAME.key.
func write(dir, name string, der []byte, key *ecdsa.PrivateKey) error {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der, 0o644); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", keyDER, 0o600)
}

func serviceAccountKey(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "sa.key"), "EC PRIVATE KEY", private, 0o600); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, "sa.pub"), "PUBLIC KEY", public, 0o644)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return files.WriteAtomic(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
