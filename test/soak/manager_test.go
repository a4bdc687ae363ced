//go:build e2e

package soak

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/internal/testing/await"
)

// labState is a link to the folder of the lab that is up.
const labState = "/run/redquake-lab"

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// idleManager is what the manager uses once it has nothing to do: the least of some looks, as a garbage collection may
// be due.
func (s *soak) idleManager() (least Process) {
	s.Helper()
	const looks, between = 4, 10 * time.Second
	for range looks {
		await.Pass(between, "the time in which an idle manager settles")
		now, err := s.managerProcess()
		if err != nil {
			s.Logf("the metrics of the manager: %v", err)
			continue
		}
		if least.Pod != now.Pod || now.Age < least.Age {
			least = now
		}
		least.Age = now.Age
		least.Goroutines, least.Memory = min(least.Goroutines, now.Goroutines), min(least.Memory, now.Memory)
	}
	return least
}

// managerProcess reads the manager's metrics as Prometheus does.
func (s *soak) managerProcess() (Process, error) {
	pod, err := s.manager()
	if err != nil {
		return Process{}, err
	}
	token, err := s.clientset.CoreV1().ServiceAccounts(s.pulses).CreateToken(s.Context(), "scraper",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return Process{}, err
	}
	ctx, cancel := context.WithTimeout(s.Context(), requestLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"https://"+net.JoinHostPort(pod.Status.PodIP, "8443")+"/metrics", nil)
	if err != nil {
		return Process{}, err
	}
	request.Header.Set("Authorization", "Bearer "+token.Status.Token)
	// its certificate is self-signed
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return Process{}, err
	}
	defer func() { _ = response.Body.Close() }()
	figures := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok &&
			(name == "go_goroutines" || name == "process_resident_memory_bytes" || name == "process_start_time_seconds") {
			figures[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	if len(figures) < 3 {
		return Process{}, fmt.Errorf("%s: metrics %v", response.Status, figures)
	}
	age := time.Since(time.Unix(int64(figures["process_start_time_seconds"]), 0)).Round(time.Second).Seconds()
	return Process{
		Pod:        pod.Name,
		Age:        age,
		Goroutines: figures["go_goroutines"],
		Memory:     figures["process_resident_memory_bytes"],
	}, nil
}

// keepLogs copies what the managers write from the nodes' folders, as a pod's log is deleted with it.
func (s *soak) keepLogs(ctx context.Context) {
	open := map[string]*os.File{}
	defer func() {
		s.copyLogs(open)
		for _, file := range open {
			_ = file.Close()
		}
	}()
	every(ctx, lookEvery, func(context.Context) { s.copyLogs(open) })
}

func (s *soak) copyLogs(open map[string]*os.File) {
	files, _ := filepath.Glob(filepath.Join(labState, "nodes", "*", "fs", "var", "log", "pods",
		system+"_"+managerName+"-*", "manager", "*.log"))
	for _, file := range files {
		if open[file] == nil {
			if f, err := os.Open(file); err == nil {
				open[file] = f
			}
		}
	}
	for file, from := range open {
		pod := strings.SplitN(filepath.Base(filepath.Dir(filepath.Dir(file))), "_", 3)[1]
		to, err := os.OpenFile(filepath.Join(s.out, "manager-"+pod+"-"+filepath.Base(file)),
			os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			s.Error(err)
			return
		}
		if _, err := io.Copy(to, from); err != nil {
			s.Error(err)
		}
		_ = to.Close()
	}
}

// panicsInLogs are the lines of the managers' logs that tell of a panic.
func (s *soak) panicsInLogs() (found []string) {
	files, _ := filepath.Glob(filepath.Join(s.out, "manager-*.log"))
	if len(files) == 0 {
		s.Error("no manager has written a log")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "panic: ") || strings.Contains(line, "Observed a panic") ||
				strings.Contains(line, "fatal error: ") || strings.Contains(line, "[recovered") {
				found = append(found, filepath.Base(file)+": "+strings.TrimSpace(line))
			}
		}
	}
	return found
}

// lastWords finds in the managers' logs with which error each has ended itself.
func (s *soak) lastWords() {
	for i := range s.facts.Restarts {
		r := &s.facts.Restarts[i]
		text, err := os.ReadFile(filepath.Join(s.out, fmt.Sprintf("manager-%s-%d.log", r.Pod, r.Number)))
		if err != nil {
			s.Logf("the log of a manager that has ended: %v", err)
			continue
		}
		if _, words, ok := strings.Cut(string(text), "manager exited"); ok {
			r.Said, _, _ = strings.Cut(words, "stacktrace")
			r.Said = strings.Trim(r.Said, `",: `)
		}
	}
}

// lookAtCPU adds up for how long the threads of managers ran, and for how long they waited for a CPU: beside other work
// on the machine everything takes longer by the latter.
func (s *soak) lookAtCPU(context.Context) {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		if command, err := os.ReadFile(file); err != nil ||
			!strings.HasPrefix(string(command), "/manager\x00--leader-elect") {
			continue
		}
		threads, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "task", "*", "schedstat"))
		for _, thread := range threads {
			var ran, waited, slices int64 // nanoseconds
			text, err := os.ReadFile(thread)
			if err != nil {
				continue
			}
			if _, err := fmt.Sscan(string(text), &ran, &waited, &slices); err != nil {
				s.Errorf("%s: %v", thread, err)
				continue
			}
			s.locked(func() {
				s.facts.CPU.Ran += time.Duration(ran) - s.seen.threads[thread].Ran
				s.facts.CPU.Waited += time.Duration(waited) - s.seen.threads[thread].Waited
				s.seen.threads[thread] = CPU{time.Duration(ran), time.Duration(waited)}
			})
		}
	}
}
