package registry

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// references are the blobs that a manifest, or an index of manifests, consists of.
type references struct {
	MediaType types.MediaType `json:"mediaType"`
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`
}

func parse(manifest []byte) (references, error) {
	var r references
	return r, json.Unmarshal(manifest, &r)
}

// mediaType is the one that the manifest states, as OCI's need not, or none if this is no manifest.
func (r references) mediaType() types.MediaType {
	switch {
	case r.Config == nil && r.Manifests == nil:
		return ""
	case r.MediaType != "":
		return r.MediaType
	case r.Manifests != nil:
		return types.OCIImageIndex
	}
	return types.OCIManifestSchema1
}

// removeUnreferenced deletes the blobs that no image of the index consists of, and what an
// interrupted command left.
func (s Store) removeUnreferenced(index *v1.IndexManifest) error {
	keep := map[string]bool{}
	s.mark(index.Manifests, keep)
	entries, err := os.ReadDir(s.blobs())
	if err != nil {
		return err
	}
	var problem error
	for _, e := range entries {
		if !keep[e.Name()] {
			problem = errors.Join(problem, os.Remove(filepath.Join(s.blobs(), e.Name())))
		}
	}
	return problem
}

// mark notes all blobs that manifests consist of. Those of other platforms may be missing.
func (s Store) mark(manifests []v1.Descriptor, keep map[string]bool) {
	for _, m := range manifests {
		keep[m.Digest.Hex] = true
		data, _, err := s.manifest(m.Digest)
		if err != nil {
			continue
		}
		r, _ := parse(data)
		if r.Config != nil {
			keep[r.Config.Digest.Hex] = true
		}
		for _, layer := range r.Layers {
			keep[layer.Digest.Hex] = true
		}
		s.mark(r.Manifests, keep)
	}
}
