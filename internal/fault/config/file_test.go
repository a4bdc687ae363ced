package config

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// wantWarning fails the test unless there is one warning, with these words; or none without words.
func wantWarning(t *testing.T, warnings []string, words ...string) {
	t.Helper()
	if len(words) == 0 {
		if len(warnings) > 0 {
			t.Errorf("warnings %q, want none", warnings)
		}
		return
	}
	if len(warnings) != 1 {
		t.Fatalf("warnings %q, want one with %q", warnings, words)
	}
	for _, word := range words {
		if !strings.Contains(warnings[0], word) {
			t.Errorf("the warning is %q, without %q", warnings[0], word)
		}
	}
}

// What is said of a configuration file depends on what the server counts, and on whether it can write the file at all.
func TestConfigFileInDoubt(t *testing.T) {
	const file = "config_file:/etc/redis/redis.conf\r\n"
	const counts, uncounted = "cmdstat_config|get:calls=3\r\n", "cmdstat_config:calls=3\r\n"
	const reset = "cmdstat_config|get:calls=4\r\ncmdstat_config|resetstat:calls=1,usec=9\r\n"
	for name, tc := range map[string]struct {
		before, after string // of INFO
		volume        corev1.VolumeSource
		readOnly      bool
		about         string // of the warning
	}{
		"a count": {before: file + counts, after: file + counts},
		"a reset": {before: file + counts, after: file + reset, about: target.DoubtReset},
		"a reset, on a volume": {
			before: file + counts,
			after:  file + reset,
			volume: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			about:  target.DoubtReset,
		},
		"a reset, on a ConfigMap": {
			before: file + counts,
			after:  file + reset,
			volume: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}},
		},
		"a reset, on a read-only volume": {
			before:   file + counts,
			after:    file + reset,
			volume:   corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			readOnly: true,
		},
		"a reset, no file": {before: counts, after: reset},
		"no count":         {before: file + uncounted, after: file + uncounted, about: target.DoubtUncounted},
		"no count, on a ConfigMap": {
			before: file + uncounted,
			after:  file + uncounted,
			volume: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}},
		},
		"no count, no file":               {before: uncounted, after: uncounted},
		"commandstats are hidden":         {before: file + "x:1\r\n", after: file + "x:1\r\n", about: target.DoubtUncounted},
		"commandstats are hidden by then": {before: file + counts, after: file + "x:1\r\n", about: target.DoubtUncounted},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
				if tc.volume != (corev1.VolumeSource{}) {
					p.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: tc.volume}}
					p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
						{Name: "conf", MountPath: "/etc/redis", ReadOnly: tc.readOnly},
					}
				}
			})
			server := &modifiable{values: map[string]string{"hz": "10"}, info: tc.before}
			spec := &v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:   v1alpha1.FaultConfig,
					Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}},
				},
			}
			c := injected(t, w, server, spec)
			server.info = tc.after
			if err := faulttest.Called(c.Injector.Revert(t.Context(), c.Target)); err != nil {
				t.Fatal(err) // among others of a CONFIG REWRITE, which the server does not expect
			}
			warnings := c.Injector.(contract.Warner).Warnings(c.Target)
			if tc.about == "" {
				wantWarning(t, warnings)
			} else {
				wantWarning(t, warnings, tc.about, "redis-cli -e -p 6379 CONFIG REWRITE", "hz 50")
			}
		})
	}
}
