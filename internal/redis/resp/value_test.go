package resp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(input string) (Value, error) { return ReadValue(bufio.NewReader(strings.NewReader(input))) }

func TestReadValue(t *testing.T) {
	tests := []struct {
		input string
		want  Value
	}{
		{"+PONG\r\n", Value{Type: '+', Text: "PONG"}},
		{"-ERR no\r\n", Value{Type: '-', Text: "ERR no"}},
		{"!6\r\nERR no\r\n", Value{Type: '!', Text: "ERR no"}},
		{"$-1\r\n", Value{Type: '_'}},
		{"*-1\r\n", Value{Type: '_'}},
		{"_\r\n", Value{Type: '_'}},
		{"$3\r\na\r\n\r\n", Value{Type: '$', Text: "a\r\n"}},
		{"=8\r\ntxt:info\r\n", Value{Type: '=', Text: "info"}},
		{"%1\r\n+proto\r\n:3\r\n", Value{Type: '%', Items: []Value{{Type: '+', Text: "proto"}, {Type: ':', Text: "3"}}}},
		{
			"*2\r\n,1.5\r\n~1\r\n#t\r\n",
			Value{Type: '*', Items: []Value{{Type: ',', Text: "1.5"}, {Type: '~', Items: []Value{{Type: '#', Text: "t"}}}}},
		},
		{">1\r\n+x\r\n|1\r\n+a\r\n+b\r\n:7\r\n", Value{Type: ':', Text: "7"}},
	}
	for _, tt := range tests {
		got, err := read(tt.input)
		if err != nil {
			t.Errorf("%q: %v", tt.input, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.input, diff)
		}
	}
}

func TestReadValueRefuses(t *testing.T) {
	tests := []struct {
		input string
		want  error
	}{
		{"", io.EOF},
		{"HTTP/1.1 400", ErrProtocol}, // also before the line ends
		{"\x15\x03\x01\x00\x02\x02\x46", ErrProtocol},
		{"+" + strings.Repeat("x", 5000), ErrProtocol},
		{"$100000000\r\n", ErrProtocol},
		{strings.Repeat("*1\r\n", MaxDepth+2) + ":1\r\n", ErrProtocol},
		{strings.Repeat("|0\r\n", MaxDepth+2) + ":1\r\n", ErrProtocol},
		{"*1000000000\r\n" + strings.Repeat("_\r\n", maxValue/valueCost+1), ErrProtocol},
		{"$5\r\nab", io.ErrUnexpectedEOF},
	}
	for _, tt := range tests {
		if _, err := read(tt.input); !errors.Is(err, tt.want) {
			t.Errorf("%.40q: error %v, want %v", tt.input, err, tt.want)
		}
	}
	_, err := read("\x15\x03\x01\x00\x02\x02\x46")
	if u, ok := errors.AsType[*UnknownTypeError](err); !ok || !bytes.HasPrefix(u.Head, []byte{21, 3}) {
		t.Errorf("a TLS alert gives %v, want its head", err)
	}
}

// FuzzReply: for any input, both readers end without a panic, the scanner finds the same replies wherever the input is
// cut, and what ReadValue accepts as a reply the scanner accepts as well, with the same kind.
func FuzzReply(f *testing.F) {
	for _, tt := range replyTests {
		f.Add([]byte(tt.input), 3)
	}
	f.Fuzz(func(t *testing.T, input []byte, size int) {
		if size < 1 {
			size = 1
		}
		whole, _, wholeErr := scan(string(input), max(len(input), 1))
		cut, _, cutErr := scan(string(input), size)
		if diff := cmp.Diff(whole, cut); diff != "" {
			t.Fatalf("cut into %d (-whole +cut):\n%s", size, diff)
		}
		if wholeErr == nil && cutErr != nil {
			t.Fatalf("cut into %d: %v", size, cutErr)
		}
		v, err := ReadValue(bufio.NewReaderSize(bytes.NewReader(input), MaxLine))
		if err == nil && len(whole) > 0 && v.IsError() && whole[0].Kind != Error {
			t.Fatalf("ReadValue has %+v, the scanner %+v", v, whole[0])
		}
	})
}

func BenchmarkReadValue(b *testing.B) {
	input := []byte("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n")
	b.ReportAllocs()
	source := bytes.NewReader(nil)
	r := bufio.NewReader(source)
	for b.Loop() {
		source.Reset(input)
		r.Reset(source)
		if _, err := ReadValue(r); err != nil {
			b.Fatal(err)
		}
	}
}
