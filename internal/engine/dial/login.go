package dial

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
)

// Login reads the password and certificate files. It is called for every dial, so that rotated
// secrets and certificates are picked up.
func Login(
	username string, secret func() (string, error), t *plan.TLS,
) (redis.Login, *redis.DialError) {
	l := redis.Login{Username: username}
	var err error
	if t != nil {
		if l.TLS, err = TLSConfig(t); err != nil {
			return l, &redis.DialError{Stage: redis.StageTLS, Err: err}
		}
	}
	if l.Password, err = secret(); err != nil {
		return l, &redis.DialError{Stage: redis.StageSetup, Err: err}
	}
	return l, nil
}

// ReadPassword reads a password file; "" = no password.
func ReadPassword(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	return strings.TrimRight(string(b), "\r\n"), err
}

// TLSConfig reads the files of t. Without ServerName, the dialer sets the name.
func TLSConfig(t *plan.TLS) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // explicitly requested by the user
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
