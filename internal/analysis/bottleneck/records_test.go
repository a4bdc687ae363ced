package bottleneck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record/merged"
)

// provocation is a run with one component at its limit. testdata/NAME.record is the record of such a run: a real load
// of a real Redis, taken by `make provoke`. testdata/findings.txt contains the findings of all of them.
type provocation struct {
	name     string
	in       Input // facts that are not in the record
	want     Component
	or       Component // also accepted; "" = none
	evidence string    // in the sentence of every such run
}

const recordedFrom = time.Second // end of the warm-up in every record

var provocations = []provocation{
	{"load-generator", Input{}, LoadGenerator, "", " limit of 0.10 cores"},
	{"network", Input{}, Network, "", "of the median latency of "},
	{"cpu-limit", Input{ServerCPULimit: 0.1}, CPULimit, "", "of its container's limit of 0.10 cores"},
	{"redis-main-thread", Input{}, RedisMainThread, "", "the longest EVAL with"},
	{"disk", Input{}, Disk, "", "with appendfsync always"},
	{"memory-evicted", Input{}, Memory, "", "of maxmemory 5.0 MiB, policy allkeys-lru"},
	{"memory-refused", Input{}, Memory, "", "commands with OOM"},
	{"clients", Input{}, Clients, "", "maxclients is 30"},
	// A healthy Redis under a light load: on another machine, the round trip time alone may be 70 % of the latency.
	{"nothing", Input{}, None, Network, "of the median latency of "},
}

// find returns the bottleneck of a record, and whether it is the provoked one.
func (p provocation) find(s *merged.Series) (got Finding, right bool) {
	in := p.in
	in.Series, in.MeasuredFrom = s, recordedFrom
	got = Find(in)
	return got, (got.Component == p.want || got.Component == p.or) && strings.Contains(got.Evidence, p.evidence)
}

// line is the record's line in findings.txt.
func (p provocation) line(got Finding) string {
	return fmt.Sprintf("%s: %s: %s\n", p.name, got.Component, got.Evidence)
}

func TestFindInRecordsOfRealRuns(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "findings.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, p := range provocations {
		t.Run(p.name, func(t *testing.T) {
			s := recorded(t, p.name)
			got, right := p.find(s)
			lines.WriteString(p.line(got))
			if !right {
				t.Errorf("%s: %s\nwant %s: ... %s ...", got.Component, got.Evidence, p.want, p.evidence)
			}
		})
	}
	if got := lines.String(); got != string(golden) {
		t.Errorf("findings are\n%s\nfindings.txt holds\n%s", got, golden)
	}
}

// The readings of a load pod contain its CPU limit, from its cgroup.
func TestRecordContainsTheCPULimit(t *testing.T) {
	agents := recorded(t, "load-generator").Agents()
	if last := agents[len(agents)-1]; last.ThrottledSeconds < 0.5 || last.CPULimit != 0.1 {
		t.Errorf("the last reading is %+v", last)
	}
}

func recorded(t *testing.T, name string) *merged.Series {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".record"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := merged.Decode(data)
	if err != nil {
		t.Fatalf("%v; `make provoke` records them again", err)
	}
	return s
}
