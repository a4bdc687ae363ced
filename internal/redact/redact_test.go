package redact

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	for text, want := range map[string]string{
		"":                               "",
		"nothing":                        "nothing",
		"it is " + secret + "!":          "it is (redacted)!",
		secret + secret:                  "(redacted)(redacted)",
		"cut off: correct-ho":            "cut off: (redacted)",
		"cut off: corr":                  "cut off: (redacted)",
		"cut off: cor":                   "cut off: cor",
		"...|horse-battery|...":          "...|(redacted)|...",
		"...|rrect-horse-batt|...":       "...|(redacted)|...",
		"a horse, and its rect":          "a horse, and its rect",
		"...|tery|...":                   "...|tery|...",
		"correct-horse- correct-horse-b": "(redacted) (redacted)",
	} {
		if got := Text(text, secret); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := Text("user app, password app-secret, pin 123", "app-secret", "app", "123",
		""); got != "user app, password (redacted), pin 123" {
		t.Errorf("several secrets: %q", got)
	}
}

// A text of a server may be as long as it likes, and repeat what is almost a secret.
func TestTextOfALongText(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("a", 2000) + "b"
	if got := Text(strings.Repeat("a", 4096), secret); strings.Contains(got, "aaaaaa") {
		t.Errorf("%.60q", got)
	}
}

func TestWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`role "shop" at shop-db.shop.svc`: `role "(redacted)" at shop-db.shop.svc`,
		"'shop'@'10.0.0.1'":               "'(redacted)'@'10.0.0.1'", "shop": "(redacted)",
		"user=shop database=shops": "user=(redacted) database=shops", "workshop": "workshop",
		"no such user: shop.": "no such user: (redacted).", "shopshop shop": "shopshop (redacted)",
	} {
		if got := Word(text, "shop"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
