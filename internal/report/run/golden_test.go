package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/testing/golden"
)

// saved reads the objects and the record of a run, which TestReportOfARun of test/virtual has written.
func saved(t testing.TB, name string) subject.Input {
	t.Helper()
	in := subject.Input{Name: name}
	readFile(t, &in, filepath.Join("testdata", name+".yaml"))
	return in
}

func readFile(t testing.TB, in *subject.Input, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = decode(in, document)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func decode(in *subject.Input, document []byte) error {
	object, err := yaml.YAMLToJSON(document)
	if err != nil {
		return err
	}
	var head metav1.TypeMeta
	if err := json.Unmarshal(object, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "List": // of kubectl get
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(object, &list); err != nil {
			return err
		}
		for _, item := range list.Items {
			if err := decode(in, item); err != nil {
				return err
			}
		}
		return nil
	case "RedisLoadTest":
		in.Test = &v1alpha1.RedisLoadTest{}
		return json.Unmarshal(object, in.Test)
	case "RedisFault":
		var f v1alpha1.RedisFault
		err = json.Unmarshal(object, &f)
		in.Faults = append(in.Faults, f)
		return err
	}
	var stored corev1.ConfigMap
	if err := json.Unmarshal(object, &stored); err != nil {
		return err
	}
	series, ok := stored.BinaryData[children.ResultsSeriesKey]
	if !ok {
		return nil // another ConfigMap of the namespace
	}
	in.Series, err = merged.Decode(series)
	return err
}

// written is a report in a form.
func written(t testing.TB, form string, d *report.Document) string {
	t.Helper()
	write := map[string]func(io.Writer, *report.Document) error{
		"html": page.Write,
		"md":   report.WriteMarkdown,
		"txt":  report.WriteText,
		"json": report.WriteJSON,
		"xml":  report.WriteJUnit,
		"csv":  report.WriteCSV,
	}[form]
	var b strings.Builder
	if err := write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// packed is what another version of Go may compress in another way, and the parts of a page that are files of package
// page.
var packed = regexp.MustCompile(`(?s)(<style>|<script>|id="series">).*?(</style>|</script>)`)

func TestReports(t *testing.T) {
	for _, tc := range []struct {
		run, fault string
		forms      []string
	}{
		{"quiet", "", []string{"md", "txt", "csv", "xml"}},
		{"pass", "", []string{"html", "md"}},
		{"pass", "kill-primary", []string{"html", "md", "txt", "json", "xml", "csv"}},
		{"fail", "kill-primary", []string{"md", "xml"}},
		{"not-recovered", "kill-primary", []string{"md", "xml"}},
		{"inconclusive", "kill-primary", []string{"md", "txt", "xml"}},
		{"several", "", []string{"html", "md", "txt", "json"}},
		{"search", "", []string{"md", "txt"}},
	} {
		in := saved(t, tc.run)
		d, name := LoadTest(in), tc.run
		if tc.fault != "" {
			var err error
			if d, err = Fault(in, tc.fault); err != nil {
				t.Fatal(err)
			}
			name += "-" + tc.fault
		}
		for _, form := range tc.forms {
			file := filepath.Join("testdata", "golden", name+"."+form)
			t.Run(name+"."+form, func(t *testing.T) {
				got := written(t, form, d)
				if form == "html" {
					got = packed.ReplaceAllString(got, "$1…$2")
				}
				golden.Compare(t, file, got)
			})
		}
	}
}
