package image

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Build is what the labels of an image say of its build, as far as it is known.
type Build struct {
	Version, Revision string
	Created           time.Time
}

// Redquake is the project's own image: the two static programs and no shell, run by user 65532, as
// a distroless one. It is for the architecture of its programs.
func Redquake(manager, redquake, tag string, of Build) (Spec, error) {
	architecture, err := staticFor(manager, redquake)
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		Tags:         []string{tag},
		Architecture: architecture,
		Created:      of.Created,
		Files: merge(base("nonroot", 65532), certificates(), Files{
			"/manager":  {Source: manager},
			"/redquake": {Source: redquake},
		}),
		Config: v1.Config{
			User:       "65532:65532",
			Entrypoint: []string{"/manager"},
			WorkingDir: "/",
			Env:        []string{searchPath},
			Labels:     of.labels(),
		},
	}, nil
}

// labels are OCI's annotations of an image; the Dockerfile sets the same.
func (b Build) labels() map[string]string {
	const prefix, home = "org.opencontainers.image.", "https://github.com/redquake/redquake"
	labels := map[string]string{
		prefix + "title":         "Redquake",
		prefix + "description":   "Kubernetes operator for chaos and load tests of Redis",
		prefix + "url":           home,
		prefix + "source":        home,
		prefix + "documentation": home + "/blob/main/README.md",
		prefix + "licenses":      "Apache-2.0",
	}
	if b.Version != "" {
		labels[prefix+"version"] = b.Version
	}
	if b.Revision != "" {
		labels[prefix+"revision"] = b.Revision
	}
	if !b.Created.IsZero() {
		labels[prefix+"created"] = b.Created.UTC().Format(time.RFC3339)
	}
	return labels
}
