package image

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Prometheus is an image of this machine's Prometheus under the official image's name. As there,
// user nobody runs it, and a pod mounts its configuration.
func Prometheus() (Spec, error) {
	const server = "/usr/bin/prometheus"
	version, err := versionOf(server, `version (\d+\.\d+\.\d+)`)
	if err != nil {
		return Spec{}, fmt.Errorf("%w; install it: apt-get install prometheus", err)
	}
	program, err := withLibraries(server)
	if err != nil {
		return Spec{}, err
	}
	tools, err := busybox()
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		Tags: []string{settings.PrometheusImage + ":v" + version},
		Files: merge(base("prometheus", 65534), tools, program, Files{
			"/bin/prometheus": {Link: server},
			"/prometheus":     {Dir: true, Mode: 0o777, Owner: 65534},
		}),
		Config: v1.Config{
			User:         "65534:65534",
			WorkingDir:   "/prometheus",
			Env:          []string{searchPath},
			ExposedPorts: map[string]struct{}{"9090/tcp": {}},
			Entrypoint:   []string{"/bin/prometheus"},
			Cmd: []string{
				"--config.file=/etc/prometheus/prometheus.yml",
				"--storage.tsdb.path=/prometheus",
			},
		},
	}, nil
}
