package workload

import (
	"strconv"

	"github.com/redquake/redquake/internal/redis/resp"
)

// head returns the beginning of an encoded command with the given number of words and first words.
func head(words int, first ...string) []byte {
	encoded := resp.AppendCommand(nil, first...)
	_, rest, _ := cutLine(encoded)
	return append([]byte("*"+strconv.Itoa(words)+"\r\n"), rest...)
}

func cutLine(b []byte) (line, rest []byte, found bool) {
	for i, c := range b {
		if c == '\n' {
			return b[:i], b[i+1:], true
		}
	}
	return b, nil, false
}

// appendNumber appends a word that consists of a text and a non-negative number.
func appendNumber(dst []byte, text string, n int64) []byte {
	digits := 1
	for rest := n; rest >= 10; rest /= 10 {
		digits++
	}
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(text)+digits), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, text...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

// appendText appends a word that consists of two texts.
func appendText(dst []byte, a, b string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(a)+len(b)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, a...)
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}
