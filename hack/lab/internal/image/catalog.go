package image

import (
	"fmt"
	"maps"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Pause is the image that holds pods' namespaces, around the static program at path.
func Pause(path string) Spec {
	return Spec{
		Tags:   []string{settings.PauseImage},
		Files:  Files{"/pause": {Source: path}},
		Config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
	}
}

// CoreDNS is the image of the cluster's DNS, around the static program at path.
func CoreDNS(path string) Spec {
	return Spec{
		Tags:   []string{settings.CoreDNSImage},
		Files:  merge(base("nonroot", 65532), Files{"/coredns": {Source: path}}),
		Config: v1.Config{Entrypoint: []string{"/coredns"}, Env: []string{searchPath}},
	}
}

// Static is an image around one static program, run by user 65532.
func Static(program, tag string) (Spec, error) {
	architecture, err := staticFor(program)
	if err != nil {
		return Spec{}, err
	}
	path := "/" + filepath.Base(program)
	return Spec{
		Tags:         []string{tag},
		Architecture: architecture,
		Files:        merge(base("nonroot", 65532), certificates(), Files{path: {Source: program}}),
		Config: v1.Config{
			User:       "65532:65532",
			Entrypoint: []string{path},
			WorkingDir: "/",
			Env:        []string{searchPath},
		},
	}, nil
}

// base is what programs expect of any system: users, name resolution, a folder for temporary files.
func base(user string, id int) Files {
	return Files{
		"/tmp":          {Dir: true, Mode: 0o1777},
		"/home/" + user: {Dir: true, Mode: 0o700, Owner: id},
		"/etc/passwd": {
			Data: fmt.Appendf(nil,
				"root:x:0:0:root:/root:/sbin/nologin\n%s:x:%d:%d:%s:/home/%s:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n",
				user, id, id, user, user),
		},
		"/etc/group": {
			Data: fmt.Appendf(nil, "root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", user, id),
		},
		"/etc/nsswitch.conf": {Data: []byte("passwd: files\ngroup: files\nhosts: files dns\n")},
	}
}

func merge(parts ...Files) Files {
	all := Files{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}
