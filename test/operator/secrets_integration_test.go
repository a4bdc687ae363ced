//go:build integration

package operator

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// Load tests, and faults of all types, run with passwords that are then looked for in every object, event and line of
// the log: also of runs that could not log in, of servers that reply with what they were sent, and of databases that
// cannot be reached.
// Other tests do not run at the same time: the load pods write to the log of the whole process.
func TestPasswordsAreFoundNowhere(t *testing.T) {
	logs := &scanner{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	t.Run("group", func(t *testing.T) {
		for _, s := range secretScenes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				p := operatortest.PlaceOn(t, s.on)
				p.Logger = funcr.New(func(prefix, args string) {
					_, _ = logs.Write([]byte(prefix + args))
				}, funcr.Options{Verbosity: 5})
				operatortest.StartKubelet(p, nil)
				plant(p, "auth", map[string]string{
					"password": stage.Planted + "-right",
					"sentinel": stage.Planted + "-sentinel",
					"wrong":    stage.Planted + "-wrong",
				})
				operatortest.StartOperator(p, operatortest.Spy{})
				s.run(p, s.kinds)
				holdsNo(p, stage.Planted)
			})
		}
	})
	if found := logs.found(); len(found) > 0 {
		t.Errorf("the logs hold a password:\n%s", strings.Join(found, "\n"))
	}
	if logs.lines() == 0 {
		t.Error("nothing was logged")
	}
}

// holdsNo looks for a secret in all objects of the place but the Secret itself, in the records also after decoding
// them.
func holdsNo(p *operatortest.Place, secret string) {
	p.T.Helper()
	seen := map[string]int{}
	lists := []client.ObjectList{
		&v1alpha1.RedisLoadTestList{},
		&v1alpha1.RedisFaultList{},
		&v1alpha1.RedisExperimentList{},
		&eventsv1.EventList{},
		&corev1.ConfigMapList{},
		&corev1.SecretList{},
		&corev1.PodList{},
		&batchv1.JobList{},
		&appsv1.StatefulSetList{},
		&corev1.NodeList{},
	}
	if p.StopMesh != nil {
		for _, kind := range meshplace.Kinds() {
			lists = append(lists, object.NewList(kind))
		}
	}
	for _, list := range lists {
		p.MustChange(p.Client.List(context.Background(), list, client.InNamespace(p.Namespace)))
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			if o.GetLabels()[stage.PlantedLabel] != "" {
				return nil
			}
			seen[fmt.Sprintf("%T", o)]++
			for _, text := range textsOf(p, o) {
				if at := strings.Index(text, secret); at >= 0 {
					p.T.Errorf("%T %s holds a password: %q", o, o.GetName(), text[max(0, at-200):min(len(text), at+100)])
				}
			}
			return nil
		})
	}
	p.T.Logf("looked through %v", seen)
}

// textsOf is an object as JSON, and its binary data as it is and decoded.
func textsOf(p *operatortest.Place, o client.Object) []string {
	p.T.Helper()
	if f, is := o.(*v1alpha1.RedisFault); is && f.Spec.Action.PodTemplate != nil { // there its user has written it
		f = f.DeepCopy()
		f.Spec.Action.PodTemplate = nil
		o = f
	}
	raw, err := json.Marshal(o)
	p.MustChange(err)
	texts := []string{string(raw)}
	binary := map[string][]byte{}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		binary = o.BinaryData
	case *corev1.Secret:
		binary = o.Data
	}
	for key, data := range binary {
		texts = append(texts, string(data))
		if decoded, err := base64.StdEncoding.DecodeString(string(data)); err == nil {
			texts = append(texts, string(decoded))
		}
		switch key {
		case children.ResultsSeriesKey:
			_, err := merged.Decode(data)
			p.MustChange(err)
			texts = append(texts, unpacked(p, data[1:])) // a byte with the version comes before
		case children.ExperimentRecordKey, children.HistoryKey:
			texts = append(texts, unpacked(p, data))
		}
	}
	return texts
}

func unpacked(p *operatortest.Place, data []byte) string {
	p.T.Helper()
	of, err := gzip.NewReader(bytes.NewReader(data))
	p.MustChange(err)
	text, err := io.ReadAll(of)
	p.MustChange(err)
	return string(text)
}

// scanner is a log that keeps the lines with a password.
type scanner struct {
	mu    sync.Mutex
	count int
	leaks []string
}

func (s *scanner) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if bytes.Contains(line, []byte(stage.Planted)) {
		s.leaks = append(s.leaks, string(line))
	}
	return len(line), nil
}

func (s *scanner) found() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks
}

func (s *scanner) lines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
