package resp

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestTemplateAppend(t *testing.T) {
	args := Args{Key: 42, Value: []byte("va\r\nlue"), Int: 7, User: -3, Seq: math.MaxUint64}
	tests := []struct {
		name  string
		words []string
		want  string
	}{
		{"no placeholder", []string{"PING"}, "*1\r\n$4\r\nPING\r\n"},
		{"empty word", []string{"ECHO", ""}, "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"},
		{"key and value", []string{"SET", "{key}", "{value}"}, "*3\r\n$3\r\nSET\r\n$5\r\nrq:42\r\n$7\r\nva\r\nlue\r\n"},
		{
			"same key twice",
			[]string{"MSET", "{key}:a", "1", "{key}:b", "2"},
			"*5\r\n$4\r\nMSET\r\n$7\r\nrq:42:a\r\n$1\r\n1\r\n$7\r\nrq:42:b\r\n$1\r\n2\r\n",
		},
		{"two in one word", []string{"GET", "a{int}b{int}c"}, "*2\r\n$3\r\nGET\r\n$5\r\na7b7c\r\n"},
		{"negative", []string{"GET", "{user}"}, "*2\r\n$3\r\nGET\r\n$2\r\n-3\r\n"},
		{"largest", []string{"GET", "{seq}"}, "*2\r\n$3\r\nGET\r\n$20\r\n18446744073709551615\r\n"},
		{"hash tag stays", []string{"GET", "{tag}{{key}}"}, "*2\r\n$3\r\nGET\r\n$12\r\n{tag}{rq:42}\r\n"},
		{"open brace stays", []string{"GET", "{key"}, "*2\r\n$3\r\nGET\r\n$4\r\n{key\r\n"},
		{
			"fixed after the last place",
			[]string{"SET", "{key}", "x", "PX", "100"},
			"*5\r\n$3\r\nSET\r\n$5\r\nrq:42\r\n$1\r\nx\r\n$2\r\nPX\r\n$3\r\n100\r\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := Compile(tt.words, "rq:")
			if err != nil {
				t.Fatal(err)
			}
			if got := string(tmpl.Append([]byte("before"), &args)); got != "before"+tt.want {
				t.Errorf("got %q, want %q", got, "before"+tt.want)
			}
		})
	}
	if _, err := Compile(nil, ""); err == nil {
		t.Error("a command without words was accepted")
	}
}

func TestTemplateAppendsEveryNumber(t *testing.T) {
	tmpl, err := Compile([]string{"GET", "{key}", "x{int}", "{user}"}, "rq:")
	if err != nil {
		t.Fatal(err)
	}
	numbers := []int64{0, math.MaxInt64, math.MinInt64}
	for power := int64(1); power <= 1e18; power *= 10 {
		numbers = append(numbers, power-1, power, power+1, 5*power+7, -power)
		if power == 1e18 {
			break
		}
	}
	for _, n := range numbers {
		text := strconv.FormatInt(n, 10)
		want := string(AppendCommand(nil, "GET", "rq:"+text, "x"+text, text))
		if got := string(tmpl.Append(nil, &Args{Key: n, Int: n, User: n})); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestTemplateDoesNotChangeBetweenRequests(t *testing.T) {
	tmpl, err := Compile([]string{"SET", "{key}", "{value}"}, "k")
	if err != nil {
		t.Fatal(err)
	}
	first := string(tmpl.Append(nil, &Args{Key: 1, Value: []byte("a")}))
	tmpl.Append(nil, &Args{Key: 123456, Value: []byte(strings.Repeat("b", 1000))})
	if again := string(tmpl.Append(nil, &Args{Key: 1, Value: []byte("a")})); again != first {
		t.Errorf("first %q, then %q", first, again)
	}
}

func TestDigits(t *testing.T) {
	for n, want := range map[uint64]int{0: 1, 9: 1, 10: 2, 99: 2, 100: 3, math.MaxUint64: 20} {
		if got := digits(n); got != want {
			t.Errorf("digits(%d) = %d, want %d", n, got, want)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	tmpl, err := Compile([]string{"SET", "{key}", "{value}"}, "rq:")
	if err != nil {
		b.Fatal(err)
	}
	args := Args{Value: make([]byte, 32)}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		args.Key = (args.Key + 7919) % 100_000
		buf = tmpl.Append(buf[:0], &args)
	}
}
