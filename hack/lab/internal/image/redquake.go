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

// Programs are the paths of the project's static programs.
type Programs struct{ Manager, Redquake, Netfault string }

// netAdmin is the file capability cap_net_admin+ep, as the extended attribute security.capability has
// it (vfs_cap_data of linux/capability.h, revision 2): the program drops packets of a pod, whose
// user need not be root.
const netAdmin = "\x01\x00\x00\x02" + "\x00\x10\x00\x00" + "\x00\x00\x00\x00" +
	"\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// Redquake is the project's own image: the static programs and no shell, run by user 65532, as a
// distroless one. It is for the architecture of its programs.
func Redquake(of Programs, tag string, build Build) (Spec, error) {
	architecture, err := staticFor(of.Manager, of.Redquake, of.Netfault)
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		Tags:         []string{tag},
		Architecture: architecture,
		Created:      build.Created,
		Files: merge(base("nonroot", 65532), certificates(), Files{
			"/manager":  {Source: of.Manager},
			"/redquake": {Source: of.Redquake},
			"/netfault": {Source: of.Netfault, Capability: netAdmin},
		}),
		Config: v1.Config{
			User:       "65532:65532",
			Entrypoint: []string{"/manager"},
			WorkingDir: "/",
			Env:        []string{searchPath},
			Labels:     build.labels(),
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
