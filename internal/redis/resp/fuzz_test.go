package resp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// seeds are replies of correct, faulty and malicious servers: the corpus of the fuzz targets, which ordinary test runs
// use as well.
func seeds() []string {
	list := []string{
		"",
		strings.Repeat("*1\r\n", MaxDepth) + ":1\r\n",
		strings.Repeat("*1\r\n", MaxDepth+1),
		strings.Repeat("|1\r\n+a\r\n+b\r\n", MaxDepth+2) + "+OK\r\n",
		strings.Repeat(">1\r\n+a\r\n", 100) + "+OK\r\n",
		strings.Repeat("*1073741824\r\n", MaxDepth),
		"%1073741824\r\n+a\r\n", "|1073741824\r\n", ">1073741824\r\n",
		"*1073741825\r\n", "*99999999999999999999\r\n", "*-2\r\n", "*+1\r\n", "*\r\n",
		"$536870912\r\nshort", "$536870913\r\n", "$16777216\r\nshort", "=0\r\n\r\n", "=3\r\nabc\r\n", "!-1\r\n",
		"*2\r\n$16000000\r\nshort",
		"*3\r\n>1\r\n+a\r\n", ">1\n>0\n#t\n", "*1\r\n|0\r\n", "~-1\r\n", "|-1\r\n+OK\r\n", ">-1\r\n+OK\r\n",
		"*2\r\n|1\r\n+a\r\n-ERR b\r\n:1\r\n:2\r\n",
		"+" + strings.Repeat("x", MaxLine+1), "+" + strings.Repeat("x", MaxLine+1) + "\r\n",
		"-" + strings.Repeat("MOVED ", 20) + "\r\n", "+\r\r\n", "\n", "\r\n", "+OK\n",
		"$0032\r\n" + strings.Repeat("x", 32) + "\n\n:5\n$12\r\n\r\n$3\r\n",
		"$9999\r\n" + strings.Repeat("$", 10001) + "+OK\r\n", "$2\nab\r\n$2\rab\r\n", "$\r\n\r\n", "+\n:\n",
		"*2\r\n+OK\r\n$2\r\nab\r\n+OK\r\n", ">1\r\n+a\r\n$1\r\nx\r\n",
		"+" + strings.Repeat("x", 21) + "\r\n+" + strings.Repeat("x", 22) + "\r\n:1\r\n",
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x01\x00\x02\x02\x46", "\x00",
	}
	for _, tt := range replyTests {
		list = append(list, tt.input)
	}
	return list
}

// follow feeds a scanner with input in pieces: each byte of cuts is the length of a piece, the rest is one piece.
func follow(t *testing.T, input, cuts []byte) (replies []Reply, failed bool) {
	t.Helper()
	return followWith(t, (*Scanner).Next, input, cuts)
}

func followWith(
	t *testing.T, next func(*Scanner, []byte) (int, Reply, bool, error), input, cuts []byte,
) (replies []Reply, failed bool) {
	t.Helper()
	var s Scanner
	for len(input) > 0 {
		size := len(input)
		if len(cuts) > 0 {
			size = min(size, int(cuts[0])+1)
			cuts = cuts[1:]
		}
		p := input[:size]
		input = input[size:]
		for len(p) > 0 {
			n, r, done, err := next(&s, p)
			switch {
			case err != nil && !errors.Is(err, ErrProtocol):
				t.Fatalf("%v does not wrap ErrProtocol", err)
			case err != nil:
				return replies, true
			case n <= 0 || n > len(p):
				t.Fatalf("%d of %d bytes were consumed", n, len(p))
			case !done && n < len(p):
				t.Fatalf("no reply, but %d bytes were left", len(p)-n)
			}
			if done {
				replies = append(replies, r)
			}
			p = p[n:]
		}
	}
	return replies, false
}

// FuzzScanner: for any input, the scanner makes progress, retains no memory of it, and finds the same replies however
// the stream is cut, with and without the shortcut for common replies.
func FuzzScanner(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s), []byte(nil))
		f.Add([]byte(s), []byte{0, 0, 0, 0, 0, 0})
		f.Add([]byte(s), []byte{2, 7, 63})
	}
	f.Fuzz(func(t *testing.T, input, cuts []byte) {
		whole, wholeFailed := follow(t, input, nil)
		pieces, piecesFailed := followWith(t, (*Scanner).next, input, cuts)
		if again, againFailed := follow(t, input, cuts); againFailed != piecesFailed || !slices.Equal(again, pieces) {
			t.Fatalf("in pieces: %v, failed %v; without the shortcut: %v, failed %v", again, againFailed, pieces, piecesFailed)
		}
		if wholeFailed != piecesFailed || len(whole) != len(pieces) {
			t.Fatalf("whole: %d replies, failed %v; in pieces: %d replies, failed %v", len(whole), wholeFailed, len(pieces),
				piecesFailed)
		}
		total := 0
		for i := range whole {
			if whole[i] != pieces[i] {
				t.Fatalf("reply %d: whole %+v, in pieces %+v", i, whole[i], pieces[i])
			}
			if whole[i].Bytes <= 0 {
				t.Fatalf("reply %d has %d bytes", i, whole[i].Bytes)
			}
			total += whole[i].Bytes
		}
		if total > len(input) {
			t.Fatalf("replies of %d bytes in %d", total, len(input))
		}
	})
}

// FuzzReadValue: for any input, a value does not exceed its limit, and if it can be read the scanner finds the same
// reply.
func FuzzReadValue(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		source := bytes.NewReader(input)
		r := bufio.NewReaderSize(source, 4096)
		v, err := ReadValue(r)
		if err != nil {
			if !errors.Is(err, ErrProtocol) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		if size := sizeOf(v); size > maxValue {
			t.Fatalf("a value of %d bytes was kept", size)
		}
		taken := len(input) - source.Len() - r.Buffered()
		replies, failed := follow(t, input[:taken], nil)
		if failed || len(replies) != 1 || replies[0].Bytes != taken {
			t.Fatalf("%q is %+v, but to the scanner %+v, failed %v", input[:taken], v, replies, failed)
		}
		if v.IsError() && replies[0].Kind != Error || v.Type == '_' && replies[0].Kind != Null {
			t.Fatalf("%q is %+v, but to the scanner %+v", input[:taken], v, replies[0])
		}
	})
}

func sizeOf(v Value) int {
	size := len(v.Text) + 48
	for _, item := range v.Items {
		size += sizeOf(item)
	}
	return size
}
