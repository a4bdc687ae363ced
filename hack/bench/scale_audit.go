package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// managerUser is the user of the manager at the API server.
const managerUser = "redquake-manager"

// auditPolicy logs what the manager requests, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [` + managerUser + `]}
- {level: None}
`

// audit is the API server's log of the manager's requests.
type audit struct{ policy, log string }

func newAudit(folder string) (*audit, error) {
	a := &audit{
		policy: filepath.Join(folder, "audit-policy.yaml"),
		log:    filepath.Join(folder, "audit.log"),
	}
	return a, os.WriteFile(a.policy, []byte(auditPolicy), 0o600)
}

func (a *audit) flags() map[string]string {
	return map[string]string{
		"audit-policy-file": a.policy,
		"audit-log-path":    a.log,
		"audit-log-mode":    "blocking",
	}
}

// requests are the numbers of requests, by verb and resource.
type requests map[string]int

// count counts the requests that began between two instants. A watch counts once, when it begins.
func (a *audit) count(from, to time.Time) (requests, error) {
	file, err := os.Open(a.log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found, seen := requests{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			AuditID, Verb, RequestURI string
			RequestReceivedTimestamp  time.Time
			ObjectRef                 struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read %s: %w", a.log, err)
		}
		if seen[e.AuditID] || e.RequestReceivedTimestamp.Before(from) ||
			!e.RequestReceivedTimestamp.Before(to) {
			continue
		}
		seen[e.AuditID] = true
		what := e.Verb + " " + cmp.Or(e.ObjectRef.Resource, e.RequestURI)
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		found[what]++
	}
	return found, lines.Err()
}

func (r requests) total() (n int) {
	for _, one := range r {
		n += one
	}
	return n
}

// print prints the most frequent ones first.
func (r requests) print(title string) {
	fmt.Printf("%s: %d\n", title, r.total())
	for _, what := range slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(r[b]-r[a], cmp.Compare(a, b))
	}) {
		fmt.Printf("  %6d %s\n", r[what], what)
	}
}
