// Command statistics simulates experiments of which the truth is known, and counts how often
// internal/analysis/compare says something else: the tables of docs/statistics.md. Seeds are fixed,
// so that it prints the same each time.
//
//	go run ./hack/statistics build/statistics.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// result is one line of the output. Shares are in percent.
type result struct {
	Case   string  `json:"case"`
	Wanted string  `json:"wanted"`
	Got    float64 `json:"got"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr,
			"usage: statistics FILE: the file to write the results to, such as build/statistics.json")
		os.Exit(2)
	}
	wrong, err := simulate(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "statistics:", err)
		os.Exit(1)
	}
	if wrong > 0 {
		fmt.Fprintf(os.Stderr, "statistics: %d figures are not as wanted\n", wrong)
		os.Exit(1)
	}
}

// simulate runs all cases and writes the file. It returns how many figures are not as wanted.
func simulate(file string) (wrong int, err error) {
	cases := allCases()
	found := make([][]measured, len(cases))
	var next, done sync.Mutex
	at, finished := 0, 0
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for {
				next.Lock()
				i := at
				at++
				next.Unlock()
				if i >= len(cases) {
					return
				}
				found[i] = cases[i].run(uint64(i) + 1)
				done.Lock()
				finished++
				fmt.Fprintf(os.Stderr, "\r%d of %d cases", finished, len(cases))
				done.Unlock()
			}
		})
	}
	workers.Wait()
	fmt.Fprintln(os.Stderr)

	var results []result
	for i, c := range cases {
		for _, m := range found[i] {
			verdict := ""
			if m.got < m.least || m.got > m.most {
				verdict, wrong = "  WRONG", wrong+1
			}
			results = append(results, result{c.name + ": " + m.what, m.wanted(), m.got})
			fmt.Printf("%-86s %-12s %7.2f%s\n", c.name+": "+m.what, m.wanted(), m.got, verdict)
		}
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return wrong, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return wrong, err
	}
	return wrong, os.WriteFile(file, append(data, '\n'), 0o644)
}
