package collect_test

import (
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

// hostilePod is a load pod whose image is somebody else's: it has the run's certificate, and answers as it likes.
type hostilePod struct {
	began   time.Time
	startAt atomic.Int64
	status  func(w http.ResponseWriter, r *http.Request, honest []byte)
	pull    func(w http.ResponseWriter, after int64)

	memory   *collect.Memory // nil = one of its own
	patience time.Duration   // of the session with it; 0 = a second
}

func (h *hostilePod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case agent.PathStatus:
		st := agent.Status{
			Run:      "run",
			Instance: "i",
			State:    agent.Ready,
			Now:      int64(time.Since(h.began)),
			Wall:     time.Now().UnixNano(),
			LastSeq:  1 << 40,
		}
		if at := h.startAt.Load(); at != 0 {
			st.State, st.StartAt, st.StartedAt = agent.Running, at, at
		} else {
			st.LastSeq = 0
		}
		honest, _ := json.Marshal(st)
		if h.status != nil {
			h.status(w, r, honest)
			return
		}
		_, _ = w.Write(honest)
	case agent.PathStart:
		var request agent.StartRequest
		_ = json.NewDecoder(r.Body).Decode(&request)
		h.startAt.Store(request.At)
		w.WriteHeader(http.StatusNoContent)
	case agent.PathIntervals:
		w.Header().Set(agent.HeaderState, string(agent.Running))
		w.Header().Set(agent.HeaderLastSeq, strconv.Itoa(1<<40))
		w.Header().Set(agent.HeaderLost, "0")
		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
		h.pull(w, after)
	}
}

// open serves the pod, and opens a session for it.
func (h *hostilePod) open(t *testing.T) *collect.Session {
	t.Helper()
	h.began = time.Now().Add(-time.Minute)
	credentials, err := agent.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := credentials.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS13,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	s, err := collect.Open(collect.Config{
		Run:            "run",
		Step:           step,
		Ops:            ops,
		Pods:           1,
		Credentials:    credentials,
		Store:          &memory{},
		PollEvery:      10 * time.Millisecond,
		PullEvery:      15 * time.Millisecond,
		StatusEvery:    50 * time.Millisecond,
		Checkpoints:    collect.Checkpoints{Every: 30 * time.Millisecond},
		RequestTimeout: cmp.Or(h.patience, time.Second),
		Memory:         h.memory,
		Logger:         slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.SetPods([]collect.Pod{{Name: "evil", Address: l.Addr().String()}})
	return s
}

// grown is by how much the heap has grown while something ran.
func grown(run func()) (mib uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return (after.HeapAlloc - min(after.HeapAlloc, before.HeapAlloc)) >> 20
}

// failing waits until the session reports why it cannot read from the pod.
func failing(t *testing.T, s *collect.Session) collect.PodStatus {
	t.Helper()
	var st collect.PodStatus
	await.Until(t, "the pod has a problem", func() error {
		st = s.Status().Pods[0]
		return await.That(st.Err != "" || st.Problem != "", "%+v", st)
	})
	return st
}

// ready waits until the session can begin.
func ready(t *testing.T, s *collect.Session) {
	t.Helper()
	await.Until(t, "the pods are ready", func() error {
		return await.That(s.Status().AllReady, "%+v", s.Status().Pods[0])
	})
}

// Whatever a pod answers instead of its status, the session says what is wrong with it, keeps none of it, and contacts
// nobody else.
func TestHostileStatus(t *testing.T) {
	var elsewhere atomic.Int64
	victim := tcptest.Listen(t, func(c net.Conn) { elsewhere.Add(1); _ = c.Close() })
	text := func(code int, body string) func(http.ResponseWriter, *http.Request, []byte) {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Encoding", "gzip") // is not unpacked
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request, []byte){
		"garbage":       text(http.StatusOK, "\x1f\x8b\xff\x00"),
		"a long error":  text(http.StatusTeapot, strings.Repeat("\x1b[2J\xff", 100000)),
		"another run":   text(http.StatusOK, `{"run":"other"}`),
		"a huge number": text(http.StatusOK, `{"run":"run","now":1e400}`),
		"a redirect": func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, "https://"+victim+"/v1/status", http.StatusTemporaryRedirect)
		},
		"an endless status": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			_, err := io.WriteString(w, `{"message":"`)
			for block := strings.Repeat("x", 64<<10); err == nil; {
				_, err = io.WriteString(w, block)
			}
		},
		"a byte now and then": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			for err := error(nil); err == nil; time.Sleep(20 * time.Millisecond) {
				_, err = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostilePod{status: answer}
			s := h.open(t)
			mib := grown(func() {
				st := failing(t, s)
				if len(st.Err) > 1024 {
					t.Errorf("the error has %d bytes", len(st.Err))
				}
				t.Logf("%.200q %s %s", st.Err, st.Problem, st.ProblemText)
			})
			if mib > 16 {
				t.Errorf("the heap grew by %d MiB", mib)
			}
		})
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("the victim of a redirect got %d connections", n)
	}
}

// Whatever a pod answers instead of its record, the record grows no further than the time that has passed.
func TestHostileIntervals(t *testing.T) {
	frames := func(w io.Writer, first, n int64) error {
		var all []byte
		for i := range n {
			iv := record.Interval{
				Index: first + i, Pods: 1, Ops: make([]record.Op, len(ops)), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
			}
			body := record.AppendInterval(nil, &iv)
			all = append(binary.AppendUvarint(all, uint64(len(body))), body...)
		}
		_, err := w.Write(all)
		return err
	}
	for name, answer := range map[string]func(w http.ResponseWriter, after int64){
		"the future, one after the other": func(w http.ResponseWriter, after int64) { _ = frames(w, after, 5000) },
		"the far future":                  func(w http.ResponseWriter, _ int64) { _ = frames(w, 1<<39, 1) },
		"garbage": func(w http.ResponseWriter, _ int64) {
			_, _ = io.WriteString(w, strings.Repeat("\x05\xff\x00\x1b", 1000))
		},
		"impossible counts": func(w http.ResponseWriter, after int64) {
			iv := record.Interval{
				Index: after, Pods: 1, Ops: make([]record.Op, len(ops)), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
			}
			iv.Ops[0].OK = 1 << 63
			body := record.AppendInterval(nil, &iv)
			_, _ = w.Write(append(binary.AppendUvarint(nil, uint64(len(body))), body...))
		},
		"a frame without an end": func(w http.ResponseWriter, _ int64) { _, _ = w.Write(binary.AppendUvarint(nil, 1<<62)) },
		"an endless answer": func(w http.ResponseWriter, after int64) {
			for frames(w, after, 1000) == nil {
				after += 1000
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostilePod{pull: answer}
			s := h.open(t)
			ready(t, s)
			start := time.Now().Add(500 * time.Millisecond)
			if err := s.Start(t.Context(), start); err != nil {
				t.Fatal(err)
			}
			mib := grown(func() {
				t.Log(failing(t, s).Err)
				time.Sleep(time.Second)
			})
			longest := int64((time.Since(start) + time.Minute + time.Second) / step)
			s.Read(func(series *merged.Series) {
				if n := int64(series.Len()); n > longest {
					t.Errorf("%d intervals, and only %d have passed", n, longest)
				}
			})
			if mib > 64 { // what all records may take
				t.Errorf("the heap grew by %d MiB", mib)
			}
		})
	}
}

// A pod that tells its state, and whose record cannot be pulled, is not reachable: its status alone would keep the run
// waiting for ever.
func TestPodWithoutARecord(t *testing.T) {
	h := &hostilePod{pull: func(w http.ResponseWriter, _ int64) { w.WriteHeader(http.StatusInternalServerError) }}
	s := h.open(t)
	ready(t, s)
	if err := s.Start(t.Context(), time.Now().Add(500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	first := failing(t, s)
	// it goes on answering
	for seen := first.LastContact; seen.Sub(first.LastContact) < time.Second; time.Sleep(5 * time.Millisecond) {
		st := s.Status().Pods[0]
		if seen = st.LastContact; st.Reachable || !st.UnreachableSince.Equal(first.UnreachableSince) || st.Err == "" {
			t.Fatalf("%+v", st)
		}
	}
}

// The sessions of hostile pods do not disturb that of an honest one in the same process: its record is exact, it ends
// in time, and memory is bounded.
func TestHonestPodBesideHostileOnes(t *testing.T) {
	const hostile, intervals = 24, 600
	block, empty := strings.Repeat("x", 64<<10), strings.Repeat("\x00", 8<<20)
	stream := func(w io.Writer) {
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, block)
		}
	}
	answers := []func(*hostilePod){
		func(h *hostilePod) { h.pull = func(w http.ResponseWriter, _ int64) { stream(w) } },
		func(h *hostilePod) {
			h.pull = func(w http.ResponseWriter, _ int64) { _, _ = w.Write(binary.AppendUvarint(nil, 1<<62)) }
		},
		func(h *hostilePod) {
			h.pull = func(w http.ResponseWriter, _ int64) { _, _ = io.WriteString(w, empty) } // frames without a byte
		},
		func(h *hostilePod) {
			h.status = func(w http.ResponseWriter, _ *http.Request, _ []byte) { stream(w) }
		},
	}
	w := newWorld(t, 1, intervals, nil)
	var most atomic.Uint64
	over := make(chan struct{})
	mib := grown(func() {
		for i := range hostile {
			h := &hostilePod{}
			answers[i%len(answers)](h)
			go func(s *collect.Session) {
				for !s.Status().AllReady && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				_ = s.Start(t.Context(), time.Now().Add(500*time.Millisecond))
			}(h.open(t))
		}
		go watchHeap(over, &most)
		s := w.open()
		at := w.start(s)
		st := w.until(s, "finished", finished)
		close(over)
		if took := time.Since(at); took > intervals*step+time.Minute || st.Pods[0].Err != "" || st.Pods[0].Filled > 0 {
			t.Errorf("it took %s: %+v", took, st.Pods[0])
		}
		w.expect(s, intervals)
	})
	t.Logf("the heap had at most %d MiB, and %d more when it was over", most.Load()>>20, mib)
	if most.Load() > hostile*16<<20 { // 8 MiB for a pull of each, in a buffer that doubles
		t.Errorf("the heap had %d MiB", most.Load()>>20)
	}
}

// watchHeap keeps the largest heap until over.
func watchHeap(over <-chan struct{}, most *atomic.Uint64) {
	for {
		select {
		case <-over:
			return
		case <-time.After(100 * time.Millisecond):
			runtime.GC() // what lives, not what is garbage
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), now.HeapAlloc))
		}
	}
}
