package merged

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

var update = flag.Bool("update", false, "write the record of the current version, and what it contains")

// facts are what a stored record tells of a run.
type facts struct {
	Run                  string
	Start                time.Time
	PodStep, Step        time.Duration
	LatencyStep          time.Duration
	Pods, Lost, Len      int
	Ops                  map[string]opFacts
	Tallies, Notes       []string
	Result               string
	TallySums            []uint64
	Shards               []record.ShardCounts
	Requests             uint64
	Gaps, ProbeGaps      []record.Gap
	ReadGaps, WriteGaps  []record.Gap
	OpGaps, ShardGaps    [][]record.Gap
	ProbeShardGaps       [][]record.Gap
	Stalls               [][]record.Stall // of each pod
	Stalled              []int64          // by pod
	Holes                []Hole
	Ahead                []time.Duration
	ClockUncertainty     time.Duration
	ClockSpread          time.Duration
	Servers              []record.Server
	Unobserved           []record.Unobserved
	LostWrites           []uint64
	LedgerChecks         []record.LedgerCheck // of each pod
	Agents               []record.AgentUse
	PodUses              []record.PodUse
	MaxLag, LastInstants int64
}

type opFacts struct {
	record.Counts
	P50, P99, Max, MaxService, MaxWaited time.Duration
}

func factsOf(s *Series) facts {
	f := facts{
		Run:              s.Run,
		Start:            s.Start,
		PodStep:          s.PodStep,
		Step:             s.Step,
		LatencyStep:      s.LatencyStep,
		Result:           string(s.Result),
		Pods:             s.Pods,
		Lost:             s.Lost(),
		Len:              s.Len(),
		Ops:              map[string]opFacts{},
		Tallies:          s.Tallies,
		Notes:            s.Notes,
		TallySums:        make([]uint64, len(s.Tallies)),
		Shards:           make([]record.ShardCounts, s.Shards()),
		Requests:         s.Requests(),
		Gaps:             s.Gaps(),
		ProbeGaps:        s.ProbeGaps(),
		ReadGaps:         s.ReadGaps(),
		WriteGaps:        s.WriteGaps(),
		Holes:            s.Holes(),
		ClockUncertainty: s.ClockUncertainty,
		ClockSpread:      s.ClockSpread,
		Servers:          s.Servers(),
		Unobserved:       s.Unobserved(),
		Agents:           s.Agents(),
		PodUses:          s.PodUses(),
	}
	for k, name := range s.Ops {
		var o opFacts
		var latency, service, waited histogram.Distribution
		for i := range s.Len() {
			op := &s.At(i).Ops[k]
			o.Add(&op.Counts)
			latency.Add(op.Latency)
			service.Add(op.Service)
			waited.Add(op.Waited)
		}
		o.P50 = latency.Quantile(0.5)
		o.P99 = latency.Quantile(0.99)
		o.Max = latency.Max()
		o.MaxService = service.Max()
		o.MaxWaited = waited.Max()
		f.Ops[name] = o
		f.OpGaps = append(f.OpGaps, s.OpGaps(k))
	}
	for shard := range s.ProbeShards() {
		f.ProbeShardGaps = append(f.ProbeShardGaps, s.ProbeShardGaps(shard))
	}
	for pod := range s.Pods {
		f.Stalls, f.Ahead = append(f.Stalls, s.Stalls(pod)), append(f.Ahead, s.Ahead(pod))
		if check := s.LedgerCheck(pod); check != (record.LedgerCheck{}) {
			f.LedgerChecks = append(f.LedgerChecks, check)
		}
	}
	f.Stalled = make([]int64, s.Pods)
	for i := range s.Len() {
		iv := s.At(i)
		for pod, n := range iv.Stalled {
			f.Stalled[pod] += n
		}
		for k, n := range iv.Tallies {
			f.TallySums[k] += n
		}
		for k, n := range iv.Lost {
			if k == len(f.LostWrites) {
				f.LostWrites = append(f.LostWrites, 0)
			}
			f.LostWrites[k] += n
		}
		for k, n := range iv.Shards {
			f.Shards[k].OK += n.OK
			f.Shards[k].Errors += n.Errors
		}
		f.MaxLag, f.LastInstants = max(f.MaxLag, iv.MaxLag), max(f.LastInstants, iv.LastOK, iv.LastError)
	}
	for shard := range s.Shards() {
		f.ShardGaps = append(f.ShardGaps, s.ShardGaps(shard))
	}
	return f
}

func versionFiles(version int) (series, contents string) {
	name := filepath.Join("testdata", fmt.Sprintf("series-v%d", version))
	return name + ".bin", name + ".json"
}

// Records of this version, and of every version that was released, can be read. A change of the encoding fails here for
// the current version: if the version was released, increase seriesVersion and let Decode read the one before as well;
// run the test with -update, which writes the files.
func TestSeriesVersions(t *testing.T) {
	if *update {
		writeVersion(t)
	}
	files, err := filepath.Glob("testdata/series-v*.bin")
	if current, _ := versionFiles(seriesVersion); err != nil || !slices.Contains(files, current) {
		t.Fatalf("the files are %v, %v; want one of version %d", files, err, seriesVersion)
	}
	for _, file := range files {
		contents := strings.TrimSuffix(file, ".bin") + ".json"
		packed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if own, _ := versionFiles(int(packed[0])); own != file || !IsEncoded(packed) {
			t.Errorf("%s is of version %d", file, packed[0])
		}
		s, err := Decode(packed)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		text, err := os.ReadFile(contents)
		if err != nil {
			t.Fatal(err)
		}
		var want facts
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, factsOf(reencode(t, s)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-written +read):\n%s", file, diff)
		}
	}
}

func writeVersion(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(seriesVersion, 5))
	w := world(r, 2, 60)
	for _, iv := range slices.Concat(w...) {
		for i := range iv.Gaps {
			iv.Gaps[i].MaybeBefore, iv.Gaps[i].MaybeSooner, iv.Gaps[i].UnprovenHead, iv.Gaps[i].UnprovenTail = 4000, 3000, 2000,
				1000
		}
		for i := range iv.Agents {
			iv.Agents[i].CPUSeconds, iv.Agents[i].ThrottledSeconds = 0.05*float64(iv.Index), 0.001*float64(iv.Index)
			iv.Agents[i].WaitedSeconds, iv.Agents[i].StolenSeconds = 0.02*float64(iv.Index), 0.003*float64(iv.Index)
		}
		for i := range iv.Servers {
			iv.Servers[i].CPUSeconds, iv.Servers[i].CPUMainThreadSeconds, iv.Servers[i].CommandsProcessed = 0.05*
				float64(iv.Index), 0.04*float64(iv.Index), iv.Index
			one := &iv.Servers[i]
			for k, n := range []*int64{
				&one.EvictedClients, &one.BufferedClients, &one.AOFSize, &one.AOFFlushMicros, &one.MisconfErrors,
				&one.QueryingClients,
				&one.FullSyncs, &one.PartialSyncs, &one.Replicas, &one.SyncedReplicas, &one.PrimaryLink,
			} {
				*n = int64(k+2) * iv.Index
			}
		}
	}
	s := newTestSeries(len(w))
	s.Notes, s.Result = []string{"a note"}, []byte(`{"version":1}`)
	s.SetReadOnly([]bool{true, false})
	s.Align(1, time.Millisecond, 20*time.Microsecond)
	deliver(r, s, w, nil)
	s.AddPodUses([]record.PodUse{
		{
			At: -1e9, Window: 15e9, Name: "app", Pod: "app-0", Container: "main", CPU: 0.25, MaxCPU: 0.5, CPULimit: 1,
			Memory: 1 << 30,
		},
		{
			At: 14e9, Window: 15e9, Name: "database", Pod: "db-0", Container: "postgres", CPU: 0.125, MaxCPU: 0.125,
			Memory: 1 << 28,
		},
	})
	s.observed.servers.AddUnobserved([]record.Unobserved{{Address: "c:1", Reason: "INFO: NOPERM"}})
	s.AddHole(0, 3, 5)
	s.Finish(0)
	s.Lose(1)
	packed, err := s.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(factsOf(s), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	file, contents := versionFiles(seriesVersion)
	for name, data := range map[string][]byte{file: packed, contents: append(text, '\n')} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// No text begins as a record does.
func TestIsEncoded(t *testing.T) {
	for _, text := range []string{
		"", "a", "apiVersion: v1\n", "{\"kind\":\"List\"}", "\x1f\x8b\x08\x00",
		"\x00\x1f\x8b\x08",
	} {
		if IsEncoded([]byte(text)) {
			t.Errorf("%q is a record", text)
		}
	}
}
