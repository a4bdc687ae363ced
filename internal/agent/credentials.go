package agent

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Keys of the Secret that holds a run's credentials.
const (
	KeyCertificate = "tls.crt"
	KeyPrivateKey  = "tls.key"
	KeyToken       = "token"
)

// Validity of a run's certificate. It begins an hour early, as the clocks of nodes may differ.
const (
	validFor    = 30 * 24 * time.Hour
	validBefore = time.Hour
)

// Credentials authenticate the operator and the pods of one run to each other.
type Credentials struct {
	CertificatePEM []byte // self-signed, for ServerName
	PrivateKeyPEM  []byte // its key, PKCS #8
	Token          string // 32 random bytes, base64 without padding
}

// NewCredentials makes the credentials of one run: a self-signed ECDSA P-256 certificate for
// ServerName, valid for 30 days, and a token.
func NewCredentials() (Credentials, error) {
	return newCredentials(time.Now())
}

func newCredentials(now time.Time) (Credentials, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Credentials{}, fmt.Errorf("generate the run's key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Credentials{}, fmt.Errorf("generate a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: ServerName},
		DNSNames:     []string{ServerName},
		NotBefore:    now.Add(-validBefore),
		NotAfter:     now.Add(validFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		BasicConstraintsValid: true, // and no CA: nothing it signs is trusted
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return Credentials{}, fmt.Errorf("sign the run's certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Credentials{}, fmt.Errorf("encode the run's key: %w", err)
	}
	var token [32]byte
	if _, err := rand.Read(token[:]); err != nil {
		return Credentials{}, fmt.Errorf("generate the run's token: %w", err)
	}
	return Credentials{
		CertificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		PrivateKeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		Token:          base64.RawURLEncoding.EncodeToString(token[:]),
	}, nil
}

// Certificate returns the key pair for a server.
func (c Credentials) Certificate() (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(c.CertificatePEM, c.PrivateKeyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("parse the run's certificate: %w", err)
	}
	return pair, nil
}

// ClientTLS returns a client's configuration that trusts exactly the one certificate in certPEM,
// under ServerName, with TLS 1.3.
// It fails if certPEM contains no certificate.
func ClientTLS(certPEM []byte) (*tls.Config, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("parse the run's certificate: no PEM block CERTIFICATE")
	}
	pinned, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the run's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(pinned)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: ServerName,
		RootCAs:    roots,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) != 1 || !bytes.Equal(state.PeerCertificates[0].Raw, pinned.Raw) {
				return errors.New("not the run's certificate")
			}
			return nil
		},
	}, nil
}
