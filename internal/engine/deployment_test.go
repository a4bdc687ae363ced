package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// A password is read when it is needed: a rotated Secret reaches the next dial. The sentinels have their own.
func TestDeploymentReadsPasswordsAnew(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	servers, sentinels := file("servers", "one\n"), file("sentinels", "guard")
	target := plan.Target{Username: "app", PasswordFile: servers, Sentinel: &plan.Sentinel{Addresses: []string{"s:1"}, Username: "watcher", PasswordFile: sentinels}}
	d := deploymentOf(&target, time.Second, nil)
	want := func(password func() (string, error), want string) {
		t.Helper()
		if got, err := password(); err != nil || got != want {
			t.Errorf("the password is %q, %v, not %q", got, err, want)
		}
	}
	want(d.Login.Password, "one")
	want(d.SentinelLogin.Password, "guard")
	if err := os.WriteFile(servers, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(d.Login.Password, "two")
	given := "three"
	d = deploymentOf(&target, time.Second, &given)
	want(d.Login.Password, "three")
	want(d.SentinelLogin.Password, "guard")
	if err := os.Remove(sentinels); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SentinelLogin.Password(); err == nil {
		t.Error("a file that is gone is no error")
	}
}
