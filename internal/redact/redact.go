// Package redact removes secrets from the text of others: a server may send back what it was sent,
// a driver may quote how it was configured.
package redact

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Hidden replaces a secret.
const Hidden = "(redacted)"

const (
	// least is the length of a secret, and of its beginning at the end of a text, that is not there by
	// chance.
	least = 4
	// leastPiece is the same of a piece out of the middle.
	leastPiece = 6
)

// Text replaces the secrets in a text, also pieces of them, as text is cut anywhere. Secrets of
// less than four bytes stay: they would be found everywhere.
func Text(text string, secrets ...string) string {
	// one may begin another one
	longest := slices.SortedFunc(slices.Values(secrets), func(a, b string) int {
		return cmp.Compare(len(b), len(a))
	})
	for _, secret := range longest {
		if len(secret) >= least {
			text = one(text, secret)
		}
	}
	return text
}

// Word replaces a name where it stands alone: in user "shop", and not in shop-db.example.com.
func Word(text, name string) string {
	if name == "" {
		return text
	}
	var out strings.Builder
	from := 0
	for {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return out.String() + text[from:]
		}
		at += from
		end := at + len(name)
		out.WriteString(text[from:at])
		after := strings.TrimPrefix(text[end:], ".") // which may end a sentence
		if at > 0 && (text[at-1] == '.' || joins(text[at-1])) || after != "" && joins(after[0]) {
			out.WriteString(name)
		} else {
			out.WriteString(Hidden)
		}
		from = end
	}
}

// joins reports whether a byte beside a name makes it a part of a longer one.
func joins(b byte) bool {
	return b == '-' || b == '_' || b >= 0x80 || unicode.IsLetter(rune(b)) || unicode.IsDigit(rune(b))
}

func one(text, secret string) string {
	text = strings.ReplaceAll(text, secret, Hidden)
	var out strings.Builder
	for len(text) > 0 {
		n := piece(text, secret)
		switch {
		case n >= leastPiece, n == len(text) && n >= least && strings.HasPrefix(secret, text):
			out.WriteString(Hidden)
			text = text[n:]
		default:
			out.WriteByte(text[0])
			text = text[1:]
		}
	}
	return out.String()
}

// piece is the length of the longest beginning of a text that is part of a secret, if it is long
// enough to matter.
func piece(text, secret string) int {
	n := min(least, len(text))
	if n < least || !strings.Contains(secret, text[:n]) {
		return 0
	}
	for n < len(text) && strings.Contains(secret, text[:n+1]) {
		n++
	}
	return n
}
