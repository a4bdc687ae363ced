//go:build integration

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// The bytes that arrive at a server are those that redis-cli sends for the same line, and what redis-cli refuses is
// refused.
func TestEscapesAreThoseOfRedisCLI(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	program, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	for i, argument := range []string{
		`plain`, `"quoted text"`, `''`, `"line 1\r\nline 2\t\a\b"`, `"\x00\xff\xFE\x41"`, `"\\ \" \q \' \xg0 \x4"`,
		`'\n \x00 \\ \' "'`, `a\nb\x41`, `mid"dle of\ta word"`, `mid'dle \t'`, `"ü"`, `"a"b`, `'a'b`, `"open`,
		`'open`,
	} {
		t.Run(argument, func(t *testing.T) {
			of := func(who string) string { return fmt.Sprintf("%s-%d", who, i) }
			cli := exec.Command(program, "-p", strconv.Itoa(server.Port))
			cli.Stdin = strings.NewReader("SET " + of("cli") + " " + argument + "\n")
			cli.Env = []string{"PATH=" + os.Getenv("PATH")}
			said, err := cli.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			code, out, stderr := runCommand(t, nil, "load", "--address", server.Address(), "--requests", "2", "--users", "1",
				"--command", "SET "+of("load")+" "+argument)
			if refused := bytes.Contains(said, []byte("Invalid argument")); refused != strings.Contains(stderr, "quote") {
				t.Fatalf("redis-cli says %s, redquake exits with %d: %s%s", said, code, out, stderr)
			} else if refused {
				return
			}
			want, got := fmt.Sprint(server.Do("get", of("cli"))), fmt.Sprint(server.Do("get", of("load")))
			if got != want {
				t.Errorf("the server has %q, and %q of redis-cli\n%s", got, want, stderr)
			}
		})
	}
}
