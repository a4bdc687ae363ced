package callers

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

// Java reads private keys in PKCS #8 only; what is no key is left as it is.
func TestKeysAreInPKCS8(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	prime, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		kind string
		der  []byte
		want crypto.PublicKey
	}{
		{"EC PRIVATE KEY", sec1, curve.Public()},
		{"RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(prime), prime.Public()},
		{"PRIVATE KEY", pkcs8, curve.Public()},
	} {
		got := inPKCS8(string(pem.EncodeToMemory(&pem.Block{Type: row.kind, Bytes: row.der})))
		block, _ := pem.Decode([]byte(got))
		if block == nil || block.Type != "PRIVATE KEY" {
			t.Fatalf("%s: %s", row.kind, got)
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		public := key.(crypto.Signer).Public().(interface{ Equal(crypto.PublicKey) bool })
		if !public.Equal(row.want) {
			t.Errorf("%s: another key", row.kind)
		}
	}
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 0}})
	both := string(parameters) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}))
	if block, _ := pem.Decode([]byte(inPKCS8(both))); block == nil || block.Type != "PRIVATE KEY" {
		t.Errorf("a key after its parameters is not converted")
	}
	for _, text := range []string{"", "no PEM", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"} {
		if got := inPKCS8(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
