package main

import (
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What Chaos Mesh's agent passes, and what this program cannot do.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		line    string
		spaces  []space
		command string
		wrong   string
	}{
		{
			line:    "-n /proc/7/ns/net -- ip -j addr show",
			spaces:  []space{{unix.CLONE_NEWNET, "/proc/7/ns/net"}},
			command: "ip -j addr show",
		},
		{
			line:    "-p /proc/7/ns/pid -i /proc/7/ns/ipc -- stress-ng --cpu 1 -- x",
			spaces:  []space{{unix.CLONE_NEWPID, "/proc/7/ns/pid"}, {unix.CLONE_NEWIPC, "/proc/7/ns/ipc"}},
			command: "stress-ng --cpu 1 -- x",
		},
		{line: "-- true", command: "true"},
		{line: "-l -p /proc/7/ns/pid -m /proc/7/ns/mnt -- toda", wrong: "no other flag is supported"},
		{line: "-m /proc/7/ns/mnt -- toda", wrong: "no other flag is supported"},
		{line: "-n", wrong: "usage"},
		{line: "-n /proc/7/ns/net", wrong: "a command"},
		{line: "-n /proc/7/ns/net --", wrong: "a command"},
	} {
		spaces, command, err := parse(strings.Fields(test.line))
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: error %v, want %q", test.line, err, test.wrong)
			}
			continue
		}
		if got := strings.Join(command, " "); err != nil || got != test.command || !reflect.DeepEqual(spaces, test.spaces) {
			t.Errorf("%s: %v %q (%v)", test.line, spaces, got, err)
		}
	}
}
