package workload

import (
	"regexp"
	"strconv"
)

// text is a text split into literals and placeholders with their braces.
type text []string

// textArgs are the values of one request for the placeholders.
type textArgs struct {
	prefix string // of {key}
	key    int64
	number int64 // {int}
	user   int64
	seq    int64
}

var textPlaceholder = regexp.MustCompile(`\{(key|int|user|seq)\}`)

func cutText(s string) text {
	var t text
	from := 0
	for _, at := range textPlaceholder.FindAllStringIndex(s, -1) {
		if at[0] > from {
			t = append(t, s[from:at[0]])
		}
		t = append(t, s[at[0]:at[1]])
		from = at[1]
	}
	if from < len(s) {
		t = append(t, s[from:])
	}
	return t
}

// with returns the text with the placeholders replaced.
func (t text) with(a *textArgs) string {
	if len(t) == 1 && t[0][0] != '{' {
		return t[0]
	}
	var out []byte
	for _, part := range t {
		switch part {
		case "{key}":
			out = strconv.AppendInt(append(out, a.prefix...), a.key, 10)
		case "{int}":
			out = strconv.AppendInt(out, a.number, 10)
		case "{user}":
			out = strconv.AppendInt(out, a.user, 10)
		case "{seq}":
			out = strconv.AppendInt(out, a.seq, 10)
		default:
			out = append(out, part...)
		}
	}
	return string(out)
}
