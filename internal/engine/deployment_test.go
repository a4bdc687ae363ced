package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/track"
)

// The password is read for each dial, so that a rotated Secret takes effect. Sentinels have their own password.
func TestDeploymentReadsPasswordsAnew(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	servers, sentinels := file("servers", "one\n"), file("sentinels", "guard")
	target := plan.Target{
		Username:     "app",
		PasswordFile: servers,
		Sentinel:     &plan.Sentinel{Addresses: []string{"s:1"}, Username: "watcher", PasswordFile: sentinels},
	}
	r := dial.Dialer{Target: target}
	d := deploymentOf(&target, time.Second, r.Secret)
	want := func(login track.LoginFunc, username, want string) {
		t.Helper()
		if got, err := login(); err != nil || got.Username != username || got.Password != want {
			t.Errorf("the login is %q with %q, %v, not with %q", got.Username, got.Password, err, want)
		}
	}
	want(d.Login, "app", "one")
	want(d.SentinelLogin, "watcher", "guard")
	if err := os.WriteFile(servers, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(d.Login, "app", "two")
	given := "three"
	r.Password = &given
	want(d.Login, "app", "three")
	want(d.SentinelLogin, "watcher", "guard")
	if err := os.Remove(sentinels); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SentinelLogin(); err == nil {
		t.Error("a missing file is not an error")
	}
}
