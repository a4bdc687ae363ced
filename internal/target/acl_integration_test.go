//go:build integration

package target_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestMayRun(t *testing.T) { redistest.Each(t, testMayRun) }

func testMayRun(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, nil, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{
		Users: []string{
			"asks on >pw ~* +info +acl|dryrun +client|pause", "asksnot on >pw ~* +info +command",
			"mute on >pw ~* +info",
		},
		Config: []string{`rename-command BGSAVE ""`},
	})
	s.Host("redis-0", server, nil)
	for _, tc := range []struct {
		user, command string
		wantText      string // "" = may
	}{
		{"", "CLIENT PAUSE 1 ALL", ""},
		{"", "BGSAVE", "rename-command"},
		{"asks", "CLIENT PAUSE 1 ALL", ""},
		{"asks", "CLIENT UNPAUSE", "Give user asks the ACL rule +client|unpause"},
		{"asks", "DEBUG SLEEP 0", "+debug"},
		{"asks", "BGSAVE", "has no command BGSAVE"},
		{"asksnot", "CLIENT UNPAUSE", ""}, // it cannot be determined
		{"asksnot", "BGSAVE", "has no command BGSAVE"},
		{"mute", "BGSAVE", ""},
	} {
		deps := s.Deps()
		if tc.user != "" {
			deps.Login.Username, deps.Login.Password = tc.user, "pw"
		}
		err := deps.MayRun(t.Context(), server.Address(), strings.Fields(tc.command)...)
		if tc.wantText == "" {
			if err != nil {
				t.Errorf("%q %s: %v", tc.user, tc.command, err)
			}
			continue
		}
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported || !p.Lasting ||
			!strings.Contains(p.Message, tc.wantText) || !strings.Contains(p.Message, server.Address()) {
			t.Errorf("%q %s: %+v, want %q", tc.user, tc.command, p, tc.wantText)
		}
	}
	if err := s.Deps().MayRun(t.Context(), "127.0.0.1:1", "PING"); err == nil {
		t.Error("no error for a server that does not answer")
	}
}

func TestRefused(t *testing.T) { redistest.Each(t, testRefused) }

func testRefused(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, nil, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{
		Users:  []string{"app on >pw ~* +info +bgsave +get"},
		Config: []string{`rename-command BGSAVE ""`},
	})
	deps := s.Deps()
	deps.Login = redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient}
	for command, wantText := range map[string]string{
		"CLIENT UNPAUSE": "Give user app the ACL rule +client|unpause",
		"BGSAVE":         "rename-command",
	} {
		words := strings.Fields(command)
		sent := make([]any, len(words))
		for i, w := range words {
			sent[i] = w
		}
		_, err := s.Real.Do(t.Context(), server.Address(), deps.Login, sent...)
		if p := faulttest.ProblemOf(t,
			deps.Refusal(err, server.Address(), words...)); p.Reason != v1alpha1.ReasonNotSupported ||
			!strings.Contains(p.Message, wantText) {
			t.Errorf("%s: %+v, want %q", command, p, wantText)
		}
	}
	_, err := s.Real.Do(t.Context(), server.Address(), deps.Login, "GET")
	if got := deps.Refusal(err, server.Address(), "GET"); err == nil || !errors.Is(got, err) {
		t.Errorf("%v became %v", err, got)
	}
}
