package pki

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redquake/redquake/hack/lab/internal/files"
)

// WriteKubeconfig writes NAME.kubeconfig beside NAME.crt in dir. It holds the certificates
// themselves, so it can be copied away.
func WriteKubeconfig(dir, name, server string) error {
	var encoded [3]string
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: redquake-lab
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: redquake-lab
  context:
    cluster: redquake-lab
    user: %s
current-context: redquake-lab
`, server, encoded[0], name, encoded[1], encoded[2], name)
	return files.WriteAtomic(filepath.Join(dir, name+".kubeconfig"), []byte(text), 0o600)
}
