//go:build integration

package clients

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/adapter/wire"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// executions counts what a server executes, by MONITOR.
type executions struct {
	mu     sync.Mutex
	counts map[string]int // by the words of a ledger write
	end    string         // the words of the last command that was seen
}

// watch counts the ledger writes that a server executes from now on.
func watch(t *testing.T, server *redistest.Server) *executions {
	t.Helper()
	e := &executions{counts: map[string]int{}}
	conn, err := net.Dial("tcp", server.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %s", lines.Text())
	}
	quoted := regexp.MustCompile(`"([^"]*)"`)
	go func() {
		for lines.Scan() {
			var words []string
			for _, m := range quoted.FindAllStringSubmatch(lines.Text(), -1) {
				words = append(words, m[1])
			}
			e.mu.Lock()
			e.end = strings.Join(words, " ")
			if strings.EqualFold(words[0], "BITFIELD") && words[len(words)-1] == "1" {
				e.counts["BITFIELD "+strings.Join(words[1:], " ")]++ // ioredis writes it in lower case
			}
			e.mu.Unlock()
		}
	}()
	return e
}

// all waits until the server has shown everything that it has executed, and returns the counts.
func (e *executions) all(t *testing.T, server *redistest.Server) map[string]int {
	t.Helper()
	server.Do("ECHO", "the end")
	await.Until(t, "MONITOR to show the last command", func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		return await.That(strings.EqualFold(e.end, "ECHO the end"), "it was %s", e.end)
	})
	return e.counts
}

// What the ledger says of a library's writes is what the library told of each, and how often the server executed each:
// both are counted apart, while a proxy cuts connections after requests were executed, and the server stands still for
// longer than some libraries wait.
func TestExecutions(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Start(t)
		proxy := newCutter(t, server.Address())
		agent := filepath.Join(t.TempDir(), "agent.sock")
		socket, h := between(t, agent)
		p := planFor(d, proxy.address, agent, 6*time.Second)
		p.Verify = &plan.Verify{Share: 0.5}
		p.Client.Connections = 50
		r, err := engine.New(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		run(t, d, socket)
		if err := r.Prepare(t.Context(), func(s string) { t.Log(s) }); err != nil {
			t.Fatal(err)
		}
		seen := watch(t, server)
		start := time.Now().Add(10 * time.Millisecond)
		planted := make(chan struct{})
		go func() {
			defer close(planted)
			await.PassTo(start.Add(time.Second), "there is a load before the first cut")
			proxy.cut(300 * time.Millisecond)
			await.PassTo(start.Add(2500*time.Millisecond), "libraries reconnect")
			proxy.cut(300 * time.Millisecond)
			await.PassTo(start.Add(3500*time.Millisecond), "libraries reconnect")
			server.Stop()
			await.Pass(700*time.Millisecond, "the planted outage")
			server.Cont()
		}()
		if err := r.Run(t.Context(), start, func(*record.Interval) {}); err != nil {
			t.Fatal(err)
		}
		<-planted
		counts := seen.all(t, server)
		got, err := r.Verify(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := h.account(counts)
		t.Logf("%d acknowledged, %d failed, %d unknown; %d failed but executed, %d executed twice", got.Acked, got.Failed,
			got.Unknown, got.UnknownPresent+got.FailedPresent, *got.ExecutedTwice)
		if want.Acked == 0 {
			t.Error("nothing was acknowledged")
		}
		figures := record.Ledger{
			Acked:          got.Acked,
			Failed:         got.Failed,
			Unknown:        got.Unknown,
			UnknownPresent: got.UnknownPresent,
			FailedPresent:  got.FailedPresent,
			ExecutedTwice:  got.ExecutedTwice,
			Lost:           got.Lost,
		}
		if diff := cmp.Diff(want, figures); diff != "" {
			t.Error(diff)
		}
		if keys := server.Do("KEYS", "kledger*"); fmt.Sprint(keys) != "[]" {
			t.Errorf("left behind: %v", keys)
		}
	})
}

// account is the ledger of what an adapter told of its ledger writes, with how often the server executed each.
func (h *heard) account(counts map[string]int) record.Ledger {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := record.Ledger{}
	sum.CountExecuted(0)
	for id, words := range h.asked {
		if !strings.HasPrefix(words, "BITFIELD ") {
			continue
		}
		executed := counts[words]
		class, told := h.classes[id]
		switch {
		case told && class.Succeeded():
			sum.Acked++
			if executed == 0 {
				sum.Lost++
			}
		case class == wire.ClassReply, class == wire.ClassRefused:
			sum.Failed++
			if executed > 0 {
				sum.FailedPresent++
			}
		default:
			sum.Unknown++
			if executed > 0 {
				sum.UnknownPresent++
			}
		}
		if executed > 1 {
			sum.CountExecuted(1)
		}
	}
	return sum
}
