package config

import (
	"testing"
)

func TestOpenSecret(t *testing.T) {
	for _, tc := range []struct {
		arguments []string
		want      string
	}{
		{nil, ""},
		{[]string{"--appendonly", "yes"}, ""},
		{[]string{"--requirepass", "s3cret"}, "--requirepass"},
		{[]string{"--appendonly", "yes", "--MASTERAUTH", "s3cret"}, "--MASTERAUTH"},
		{[]string{"--requirepass", "$(REDIS_PASSWORD)"}, ""},
		{[]string{"--requirepass"}, ""},
		{[]string{"--requirepass s3cret"}, "--requirepass"}, // Redis splits it
		{[]string{"--appendonly yes", "--Requirepass\t\"s3cret\""}, "--Requirepass"},
		{[]string{"--requirepass $(REDIS_PASSWORD)"}, ""},
		{[]string{"--user", "app on >s3cret ~* +@all"}, "--user"},
	} {
		if got := plainTextSecret(tc.arguments); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.arguments, got, tc.want)
		}
	}
}
