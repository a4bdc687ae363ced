package loadflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
)

func TestReadLoadTest(t *testing.T) {
	other := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n"
	for name, text := range map[string]string{
		"alone":        clitest.LoadTestYAML,
		"among others": other + clitest.LoadTestYAML + "---\n" + other,
		"json": `{"apiVersion":"redquake.dev/v1alpha1","kind":"RedisLoadTest","metadata":{"name":"checkout"},
			"spec":{"target":{"addresses":["a:1"]},
			"load":{"users":10,"duration":"30s"},"workload":{"commands":[{"name":"get","command":["GET","a"]}]}}}`,
	} {
		test, err := readLoadTest("-", strings.NewReader(text), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if test.Name != "checkout" || *test.Spec.Load.Users != 10 || test.Spec.Load.Duration.Duration != 30*time.Second {
			t.Errorf("%s: read %+v", name, test)
		}
	}
}

// A message names the file and the field.
func TestReadLoadTestRefuses(t *testing.T) {
	replaced := func(old, with string) string { return strings.Replace(clitest.LoadTestYAML, old, with, 1) }
	tests := []struct{ name, text, want string }{
		{"unknown field", replaced("users: 10", "userz: 10"), `FILE: unknown field "spec.load.userz"`},
		{
			"value out of range", replaced("users: 10", "users: 0"),
			"FILE: the RedisLoadTest \"checkout\" is invalid:\n* spec.load.users: Invalid value: 0: ",
		},
		{"no yaml", "a: [", "FILE: is not an object in YAML: "},
		{"none", "kind: ConfigMap\n", `FILE: contains no RedisLoadTest of redquake.dev/v1alpha1`},
		{"empty", "", `FILE: contains no RedisLoadTest`},
		{
			"two", clitest.LoadTestYAML + "---" + clitest.LoadTestYAML,
			`FILE: contains more than one RedisLoadTest (checkout and checkout)`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "test.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := readLoadTest(file, nil, nil)
			if want := strings.Replace(tt.want, "FILE", file, 1); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("the error is\n%v\nwant it to begin with\n%s", err, want)
			}
		})
	}
}
