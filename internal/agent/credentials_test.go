package agent

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"strings"
	"testing"
	"time"
)

func mustCredentials(t *testing.T, now time.Time) Credentials {
	t.Helper()
	c, err := newCredentials(now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handshake makes a TLS handshake between a server with the credentials and a client, and returns the client's error.
func handshake(t *testing.T, server Credentials, client *tls.Config) error {
	t.Helper()
	pair, err := server.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS13,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if c, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c) // serves until the client disconnects
			c.Close()
		}
	}()
	c, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err == nil {
		c.Close()
	}
	return err
}

func TestClientTrustsOnlyTheCertificateOfItsRun(t *testing.T) {
	own, other := mustCredentials(t, time.Now()), mustCredentials(t, time.Now())
	client := func(c Credentials) *tls.Config {
		config, err := ClientTLS(c.CertificatePEM)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	if err := handshake(t, own, client(own)); err != nil {
		t.Errorf("own certificate: %v", err)
	}
	if err := handshake(t, other, client(own)); err == nil {
		t.Error("another run's certificate of the same name was trusted")
	}
	expired := mustCredentials(t, time.Now().Add(-31*24*time.Hour))
	if err := handshake(t, expired, client(expired)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired certificate: %v", err)
	}
	// A node's clock may be slightly behind.
	ahead := mustCredentials(t, time.Now().Add(30*time.Minute))
	if err := handshake(t, ahead, client(ahead)); err != nil {
		t.Errorf("certificate made half an hour ahead: %v", err)
	}
	if old := client(own); old.MinVersion != tls.VersionTLS13 {
		t.Error("the client accepts a version older than 1.3")
	}
}

func TestClientTLSNeedsACertificate(t *testing.T) {
	own := mustCredentials(t, time.Now())
	for name, data := range map[string][]byte{"nothing": nil, "a key": own.PrivateKeyPEM, "text": []byte("certificate")} {
		if _, err := ClientTLS(data); err == nil {
			t.Errorf("%s was accepted as a certificate", name)
		}
	}
}

func TestTokensAreLongAndDiffer(t *testing.T) {
	a, err := NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	b := mustCredentials(t, time.Now())
	raw, err := base64.RawURLEncoding.DecodeString(a.Token)
	if err != nil || len(raw) != 32 || a.Token == b.Token {
		t.Errorf("token of %d bytes, %v; same as another's: %v", len(raw), err, a.Token == b.Token)
	}
}
