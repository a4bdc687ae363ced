// Package written reads the objects that users write in files, in the order in which they are
// created.
package written

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/cmd/redquake/kube"
)

// Object is an object in a file. One of redquake.dev is without its status.
type Object struct {
	File    string
	Content *unstructured.Unstructured
	Kind    kube.Kind // the zero value: it is of another group
}

// Ours reports whether an object is of redquake.dev.
func (w *Object) Ours() bool {
	return w.Kind.Name != ""
}

// Ref is the object in messages, such as statefulset/redis.
func (w *Object) Ref() string {
	name := w.Content.GetName()
	if name == "" {
		name = w.Content.GetGenerateName() + "*"
	}
	kind := w.Kind
	if !w.Ours() {
		kind.Name = w.Content.GetKind()
	}
	return kind.Singular() + "/" + name
}

// maxObjects is how large a file with objects may be.
const maxObjects = 16 << 20

// Read reads the objects of files, - = in, and of folders with a kustomization, in the order in
// which they are created: what is not of redquake.dev as it stands there, then settings, load
// tests, other faults, experiments, schedules. A setting is to be in force before its load begins.
func Read(files []string, in io.Reader) ([]*Object, error) {
	var all []*Object
	for _, file := range files {
		some, err := writtenIn(file, in)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if !slices.ContainsFunc(all, (*Object).Ours) {
		return nil, errors.New(
			"--file: contains no RedisLoadTest, RedisFault, RedisExperiment or RedisExperimentSchedule")
	}
	slices.SortStableFunc(all, func(a, b *Object) int { return a.Rank() - b.Rank() })
	return all, nil
}

// Rank orders objects by when they are created: the lowest first.
func (w *Object) Rank() int {
	if w.Kind == kube.Fault {
		setting, _, _ := unstructured.NestedBool(w.Content.Object, "spec", "setting")
		if setting {
			return 1
		}
	}
	return []int{0, 2, 3, 4, 5}[1+slices.Index(kube.AllKinds, w.Kind)]
}

func writtenIn(file string, in io.Reader) ([]*Object, error) {
	text, err := contentOf(file, in)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	if file == "-" {
		file = "standard input"
	}
	var all []*Object
	err = documents.Each(text, func(document []byte) error {
		if string(document) == "null" {
			return nil
		}
		return documents.Items(document, func(_ string, object []byte) error {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(object); err != nil {
				return fmt.Errorf("is not an object: %w", err)
			}
			w := &Object{File: file, Content: u}
			kind, ok := kube.KindOf(u.GetKind())
			if ok && u.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
				w.Kind = kind
				unstructured.RemoveNestedField(u.Object, "status")
			}
			if u.GetName() == "" && u.GetGenerateName() == "" {
				return fmt.Errorf("a %s has no metadata.name", u.GetKind())
			}
			all = append(all, w)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("--file: %s: %w", file, err)
	}
	return all, nil
}

func contentOf(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		return documents.ReadBounded(in, "standard input", maxObjects)
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return kustomized(file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return documents.ReadBounded(f, file, maxObjects)
}

// kustomizations are the names that a folder's kustomization may have.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomized builds the kustomization in a folder, as kubectl apply -k does.
func kustomized(folder string) ([]byte, error) {
	if !slices.ContainsFunc(kustomizations, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}) {
		return nil, fmt.Errorf("%s is a folder without a kustomization.yaml: name the files in it",
			folder)
	}
	out, err := exec.Command("kubectl", "kustomize", folder).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("kubectl kustomize %s: %s", folder,
			strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s is a kustomization, which kubectl builds: %w", folder, err)
	}
	return out, nil
}
