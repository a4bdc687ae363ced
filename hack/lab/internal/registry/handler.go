package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Handler serves the store, read-only. As a mirror of other registries, it gets the host of an
// image's name as the query parameter ns; without that, the path begins with the host.
func (s Store) Handler() http.Handler {
	blobs := registry.NewDiskBlobHandler(filepath.Join(s.Dir, "blobs"))
	images := registry.New(registry.WithBlobHandler(blobs), registry.Logger(log.Default()))
	return &server{store: s, images: images}
}

// server adds to the library's registry, which keeps manifests in memory, those that the store has.
type server struct {
	store  Store
	images http.Handler

	mu        sync.Mutex
	published []byte // the index of the store of which images has the manifests
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "this registry is read-only; load images: hack/lab/lab load FILE",
			http.StatusMethodNotAllowed)
		return
	}
	if err := s.publish(); err != nil {
		log.Print(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if host := r.URL.Query().Get("ns"); host != "" && r.URL.Path != "/v2/" {
		r = r.Clone(r.Context())
		r.URL.Path = "/v2/" + host + strings.TrimPrefix(r.URL.Path, "/v2")
	}
	s.images.ServeHTTP(w, r)
}

// publish puts the manifests of the store into the library's registry if a command has changed the
// store. What was replaced stays there by its digest, for those who pull it.
func (s *server) publish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, raw, err := s.store.index()
	if err != nil || bytes.Equal(raw, s.published) {
		return err
	}
	for _, image := range index.Manifests {
		tag := image.Annotations[annotationTag]
		repository := strings.TrimSuffix(image.Annotations[annotationName], ":"+tag)
		err := s.store.walk(image, func(d v1.Descriptor, manifest []byte) error {
			if d.Digest == image.Digest {
				return s.put(repository, tag, d, manifest)
			}
			return s.put(repository, d.Digest.String(), d, manifest)
		})
		if errors.Is(err, fs.ErrNotExist) { // replaced by now
			continue
		}
		if err != nil {
			return err
		}
	}
	s.published = raw
	return nil
}

// put stores a manifest under a tag or its digest.
func (s *server) put(repository, reference string, d v1.Descriptor, manifest []byte) error {
	path := "/v2/" + repository + "/manifests/" + reference
	r, err := http.NewRequest(http.MethodPut, path, bytes.NewReader(manifest))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", string(d.MediaType))
	answer := httptest.NewRecorder()
	s.images.ServeHTTP(answer, r)
	if answer.Code != http.StatusCreated {
		return fmt.Errorf("publishing %s:%s: %s", repository, reference, answer.Body)
	}
	return nil
}
