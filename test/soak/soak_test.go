//go:build e2e

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// The variables of `make soak`.
const (
	envSeed    = "SOAK_SEED"    // of the plan; without it of the clock
	envMinutes = "SOAK_MINUTES" // how long the plan is
	envOut     = "REDQUAKE_SOAK_OUT"
	envLab     = "REDQUAKE_LAB" // the program hack/lab/lab
)

const (
	system       = "redquake-system"
	leaseName    = "redquake.redquake.dev"
	managerName  = "redquake-controller-manager"
	labelSoak    = "redquake.dev/soak"
	requestLimit = 10 * time.Second // of a request to the API server
)

// soak is a run: the cluster, its worlds, and what was seen so far.
type soak struct {
	*testing.T
	client.Client
	clientset *kubernetes.Clientset
	lab       string
	out       string // the folder with the evidence
	plan      Plan
	worlds    []*world
	pulses    string // the namespace of new objects that are only created to be answered

	mu    sync.Mutex // guards what follows
	facts *Facts
	seen  snapshot
}

func TestSoak(t *testing.T) {
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	redis.SetLogger(silent{}) // servers are often away
	klog.SetLogger(logr.Discard())
	s := &soak{
		T:     t,
		lab:   os.Getenv(envLab),
		facts: &Facts{Marks: map[string]*Sighting{}, Polls: map[string][]time.Time{}, Records: map[string]bool{}},
	}
	seed, minutes := uint64(time.Now().UnixNano()%1_000_000), 20.0
	if text := os.Getenv(envSeed); text != "" {
		seed = number(t, envSeed, text, strconv.ParseUint)
	}
	if text := os.Getenv(envMinutes); text != "" {
		minutes = float64(number(t, envMinutes, text, strconv.ParseUint))
	}
	t.Logf("%s=%d %s=%g", envSeed, seed, envMinutes, minutes)
	s.plan = Draw(seed, time.Duration(minutes*float64(time.Minute)))
	s.out = filepath.Join(os.Getenv(envOut), "soak", strconv.FormatUint(seed, 10))
	s.connect()
	s.save("plan.json", s.plan)

	s.raise()
	began := time.Now()
	s.run()
	broken := Judge(s.facts)
	s.evidence(broken)
	report := NewReport(s.plan, began, s.facts, broken)
	if err := report.Write(filepath.Join(os.Getenv(envOut), "soak.json")); err != nil {
		t.Error(err)
	}
	report.Print(os.Stdout)
	if len(broken) > 0 {
		t.Errorf("%d violations; the objects and logs are in %s", len(broken), s.out)
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func number(t *testing.T, name, text string, parse func(string, int, int) (uint64, error)) uint64 {
	n, err := parse(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (s *soak) connect() {
	s.Helper()
	if s.lab == "" || os.Getenv(envOut) == "" {
		s.Fatalf("%s and %s must be set: run `make soak`", envLab, envOut)
	}
	if err := os.RemoveAll(s.out); err != nil {
		s.Fatal(err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		s.Fatal(err)
	}
	config.QPS, config.Burst, config.Timeout = 200, 400, requestLimit
	client, err1 := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	clientset, err2 := kubernetes.NewForConfig(config)
	if err := errors.Join(err1, err2, v1alpha1.AddToScheme(clientgoscheme.Scheme)); err != nil {
		s.Fatal(err)
	}
	s.Client, s.clientset = client, clientset
}

// save writes a file of evidence.
func (s *soak) save(name string, content any) {
	s.Helper()
	var out []byte
	switch c := content.(type) {
	case string:
		out = []byte(c)
	default:
		var err error
		if out, err = json.MarshalIndent(content, "", "  "); err != nil {
			s.Fatal(err)
		}
	}
	file := filepath.Join(s.out, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, out, 0o644)); err != nil {
		s.Fatal(err)
	}
}

// run carries the plan out, waits for the end of everything, and gathers what there is to judge.
func (s *soak) run() {
	ctx, stop := context.WithCancel(s.Context())
	var watching, acting sync.WaitGroup
	defer watching.Wait()
	defer acting.Wait()
	defer stop()
	s.observe(ctx, &watching)
	s.warmUp()
	s.facts.AtFirst = s.idleManager()
	s.facts.Before = s.settled("before the plan")
	pulsing, stopPulses := context.WithCancel(ctx)
	defer stopPulses()
	watching.Go(func() { s.pulse(pulsing) })

	s.Logf("the plan begins: %d events", len(s.plan.Events))
	began := time.Now()
	for _, e := range s.plan.Events {
		await.PassTo(began.Add(e.At), "the plan")
		acting.Go(func() { s.do(ctx, e) })
	}
	await.PassTo(began.Add(s.plan.Length), "the plan")
	acting.Wait()
	s.Logf("the plan is over after %s", time.Since(began).Round(time.Second))

	s.waitManager()
	s.facts.FirstAnswer = s.firstAnswer()
	stopPulses()
	s.waitEnded()
	s.facts.After = s.settledAs(s.facts.Before)
	s.records()
	s.facts.Running = s.runningForNothing()
	s.lastVersions()
	s.facts.Left = s.deleteAll()
	s.facts.AtLast = s.idleManager()
	stop()
	watching.Wait()
	s.lastWords()
	s.facts.Panics = s.panicsInLogs()
}
