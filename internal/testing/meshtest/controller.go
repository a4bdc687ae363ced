//go:build integration || e2e || chaosmesh

package meshtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// ControllerVariable names the environment variable that holds the path of chaos-controller-manager; `make chaosmesh`
// builds it.
const ControllerVariable = "REDQUAKE_CHAOS_CONTROLLER"

// StartController runs Chaos Mesh's controller manager against the API server of a kubeconfig, until the test ends or
// stop is called. The CRDs must be installed. namespace is its own namespace.
func StartController(t testing.TB, kubeconfig, namespace string) (stop func()) {
	t.Helper()
	program := os.Getenv(ControllerVariable)
	if program == "" {
		t.Fatalf("%s is not set: run make chaosmesh, or make e2e-chaosmesh", ControllerVariable)
	}
	folder := t.TempDir()
	selfSigned(t, folder)
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "CERTS_DIR="+folder, "NAMESPACE="+namespace,
		"ENABLE_LEADER_ELECTION=false",
		"WEBHOOK_HOST=127.0.0.1", "WEBHOOK_PORT="+strconv.Itoa(redistest.FreePort(t)),
		"METRICS_HOST=127.0.0.1", "METRICS_PORT="+strconv.Itoa(redistest.FreePort(t)), "CHAOSD_SECURITY_MODE=false", "TZ=UTC")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
		_ = log.Close()
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("log of Chaos Mesh's controller: %s", text[max(0, len(text)-8000):])
		}
	})
	return stop
}

// selfSigned writes the certificate of its webhook, which is not called in tests.
func selfSigned(t testing.TB, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     []string{"localhost"},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
