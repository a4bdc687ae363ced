package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"
	"regexp"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Handler serves the store by the part of the OCI distribution specification with which images are
// pulled. Each request reads the store anew. As a mirror of other registries, it gets the host of
// an image's name as the query parameter ns; without that, the path begins with the host.
func (s Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{path...}", func(w http.ResponseWriter, r *http.Request) {
		if err := s.serve(w, r); err != nil {
			refuse(w, r, err)
		}
	})
	return mux
}

var resource = regexp.MustCompile(`^(.+)/(manifests|blobs)/([^/]+)$`)

// failure is an error of the specification.
type failure struct {
	status        int
	code, message string
}

func (f failure) Error() string {
	return f.message
}

func (s Store) serve(w http.ResponseWriter, r *http.Request) error {
	path := r.PathValue("path")
	if path == "" {
		// this is how clients ask whether it is a registry
		w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
		return nil
	}
	parts := resource.FindStringSubmatch(path)
	if parts == nil {
		return failure{
			http.StatusNotFound, "UNSUPPORTED",
			"this registry serves manifests and blobs only",
		}
	}
	repository, kind, reference := parts[1], parts[2], parts[3]
	if ns := r.URL.Query().Get("ns"); ns != "" {
		repository = ns + "/" + repository
	}
	if kind == "blobs" {
		return s.serveBlob(w, r, reference)
	}
	return s.serveManifest(w, r, repository, reference)
}

func (s Store) serveManifest(
	w http.ResponseWriter, r *http.Request, repository, reference string,
) error {
	digest, err := v1.NewHash(reference)
	if err != nil { // a tag
		if digest, err = s.resolve(repository + ":" + reference); err != nil {
			return err
		}
		log.Printf("%s %s:%s is %s", r.Method, repository, reference, digest)
	}
	data, mediaType, err := s.manifest(digest)
	if errors.Is(err, fs.ErrNotExist) {
		return failure{
			http.StatusNotFound, "MANIFEST_UNKNOWN",
			fmt.Sprintf("%s has no manifest %s", repository, digest),
		}
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", string(mediaType))
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.Header().Set("Docker-Content-Digest", digest.String())
	_, _ = w.Write(data) // a client that has gone needs no answer
	return nil
}

// resolve is the image to which a name leads now.
func (s Store) resolve(full string) (v1.Hash, error) {
	index, err := s.index()
	if err != nil {
		return v1.Hash{}, err
	}
	for _, image := range index.Manifests {
		if image.Annotations[annotationName] == full {
			return image.Digest, nil
		}
	}
	return v1.Hash{}, failure{
		http.StatusNotFound, "MANIFEST_UNKNOWN",
		fmt.Sprintf("the lab has no image %s; load it: hack/lab/lab load FILE", full),
	}
}

func (s Store) serveBlob(w http.ResponseWriter, r *http.Request, reference string) error {
	digest, err := v1.NewHash(reference)
	if err != nil {
		return failure{http.StatusBadRequest, "DIGEST_INVALID", err.Error()}
	}
	f, err := os.Open(s.blob(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return failure{http.StatusNotFound, "BLOB_UNKNOWN", "there is no blob " + digest.String()}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", digest.String())
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

func refuse(w http.ResponseWriter, r *http.Request, err error) {
	log.Printf("%s %s: %v", r.Method, r.URL, err)
	var f failure
	if !errors.As(err, &f) {
		f = failure{http.StatusInternalServerError, "UNKNOWN", err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"errors": []map[string]string{{"code": f.code, "message": f.message}},
	})
}
