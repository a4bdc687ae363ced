package image

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"strings"

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

// Redquake is the project's own image: the two static programs and no shell, run by user 65532, as a distroless one.
func Redquake(manager, redquake, tag string) (Spec, error) {
	for _, path := range []string{manager, redquake} {
		if err := requireStatic(path, "build it with CGO_ENABLED=0"); err != nil {
			return Spec{}, err
		}
	}
	return Spec{
		Tags: []string{tag},
		Files: merge(base("nonroot", 65532), certificates(), Files{
			"/manager":  {Source: manager},
			"/redquake": {Source: redquake},
		}),
		Config: v1.Config{User: "65532:65532", Entrypoint: []string{"/manager"}, WorkingDir: "/", Env: []string{searchPath}},
	}, nil
}

//go:embed redis-server.sh
var redisServerScript []byte

//go:embed docker-entrypoint.sh
var entrypointScript []byte

// Redis is an image made of this machine's redis packages, under the official image's names. As there, user 999 is
// redis, data is in /data, options alone start the server, and protected mode is off.
func Redis() (Spec, error) {
	version, err := RedisVersion()
	if err != nil {
		return Spec{}, err
	}
	tools, err := busybox()
	if err != nil {
		return Spec{}, err
	}
	files := merge(base("redis", 999), tools, Files{
		"/data":                               {Dir: true, Mode: 0o777, Owner: 999},
		"/usr/local/bin/redis-server":         {Data: redisServerScript, Mode: 0o755},
		"/usr/local/bin/docker-entrypoint.sh": {Data: entrypointScript, Mode: 0o755},
		"/usr/bin/redis-sentinel":             {Link: "redis-server"},
		"/usr/bin/redis-check-aof":            {Link: "redis-server"},
		"/usr/bin/redis-check-rdb":            {Link: "redis-server"},
	})
	for _, program := range []string{"redis-server", "redis-cli", "redis-benchmark"} {
		f, err := withLibraries(program)
		if err != nil {
			return Spec{}, fmt.Errorf("%w; install it: apt-get install redis-server redis-tools", err)
		}
		files = merge(files, f)
	}
	major, _, _ := strings.Cut(version, ".")
	return Spec{
		Tags:  []string{settings.RedisImage + ":" + major, settings.RedisImage + ":" + version},
		Files: files,
		Config: v1.Config{
			Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"redis-server"}, WorkingDir: "/data",
			Env: []string{searchPath, "REDIS_VERSION=" + version}, ExposedPorts: map[string]struct{}{"6379/tcp": {}},
		},
	}, nil
}

// RedisVersion is the version of this machine's redis-server.
func RedisVersion() (string, error) {
	out, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking redis-server for its version: %w; install it: apt-get install redis-server", err)
	}
	match := regexp.MustCompile(`v=(\d+\.\d+\.\d+)`).FindSubmatch(out)
	if match == nil {
		return "", errors.New("redis-server --version printed " + strings.TrimSpace(string(out)) + ", without a version like v=7.0.15")
	}
	return string(match[1]), nil
}

// base is what programs expect of any system: users, name resolution, a folder for temporary files.
func base(user string, id int) Files {
	return Files{
		"/tmp":               {Dir: true, Mode: 0o1777},
		"/home/" + user:      {Dir: true, Mode: 0o700, Owner: id},
		"/etc/passwd":        {Data: fmt.Appendf(nil, "root:x:0:0:root:/root:/sbin/nologin\n%s:x:%d:%d:%s:/home/%s:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n", user, id, id, user, user)},
		"/etc/group":         {Data: fmt.Appendf(nil, "root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", user, id)},
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
