package image

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

//go:embed redis-server.sh
var serverScript []byte

//go:embed docker-entrypoint.sh
var entrypointScript []byte

// Redis is an image of this machine's redis packages.
func Redis() (Spec, error) {
	version, err := RedisVersion()
	if err != nil {
		return Spec{}, err
	}
	return server("redis", version, func(program string) (Files, error) {
		files, err := withLibraries(program)
		if err != nil {
			return nil, fmt.Errorf("%w; install it: apt-get install redis-server redis-tools", err)
		}
		return files, nil
	})
}

// Redis8 is an image of the Redis that hack/newer-servers.sh has installed.
func Redis8() (Spec, error) {
	return newer("redis", "8")
}

// Valkey9 is an image of the Valkey that hack/newer-servers.sh has installed.
func Valkey9() (Spec, error) {
	return newer("valkey", "9")
}

// newer is an image of the newest installed version of a product, with the libraries that belong to
// it.
func newer(product, major string) (Spec, error) {
	dir, err := settings.ServersDir()
	if err != nil {
		return Spec{}, err
	}
	trees, err := filepath.Glob(filepath.Join(dir, product+"-"+major+".*"))
	if err != nil {
		return Spec{}, err
	}
	tree, version := newest(trees)
	if tree == "" {
		return Spec{}, fmt.Errorf("%s holds no %s %s; install it: hack/newer-servers.sh", dir, product,
			major)
	}
	return server(product, version, func(program string) (Files, error) {
		return ofTree(tree,
			program)
	})
}

// newest is the tree that was installed last, with its version.
func newest(trees []string) (tree, version string) {
	var latest int64
	for _, t := range trees {
		match := regexp.MustCompile(`-(\d+\.\d+\.\d+)`).FindStringSubmatch(filepath.Base(t))
		info, err := os.Stat(t)
		if match == nil || err != nil || info.ModTime().UnixNano() < latest {
			continue
		}
		tree, version, latest = t, match[1], info.ModTime().UnixNano()
	}
	return tree, version
}

// server is an image of redis or valkey under the official image's names. As there, user 999 has
// the product's name, data is in /data, options alone start the server, and protected mode is off.
// load returns a program with its libraries.
func server(product, version string, load func(program string) (Files, error)) (Spec, error) {
	tools, err := busybox()
	if err != nil {
		return Spec{}, err
	}
	of := func(script []byte) []byte {
		return bytes.ReplaceAll(script, []byte("redis-server"), []byte(product+"-server"))
	}
	files := merge(base(product, 999), tools, Files{
		"/data":                                 {Dir: true, Mode: 0o777, Owner: 999},
		"/usr/local/bin/" + product + "-server": {Data: of(serverScript), Mode: 0o755},
		"/usr/local/bin/docker-entrypoint.sh":   {Data: of(entrypointScript), Mode: 0o755},
		"/usr/bin/" + product + "-sentinel":     {Link: product + "-server"},
		"/usr/bin/" + product + "-check-aof":    {Link: product + "-server"},
		"/usr/bin/" + product + "-check-rdb":    {Link: product + "-server"},
	})
	for _, program := range []string{"-server", "-cli", "-benchmark"} {
		f, err := load(product + program)
		if err != nil {
			return Spec{}, err
		}
		files = merge(files, f)
	}
	repository := map[string]string{
		"redis":  settings.RedisImage,
		"valkey": settings.ValkeyImage,
	}[product]
	major, _, _ := strings.Cut(version, ".")
	return Spec{
		Tags:  []string{repository + ":" + major, repository + ":" + version},
		Files: files,
		Config: v1.Config{
			Entrypoint:   []string{"docker-entrypoint.sh"},
			Cmd:          []string{product + "-server"},
			WorkingDir:   "/data",
			Env:          []string{searchPath, strings.ToUpper(product) + "_VERSION=" + version},
			ExposedPorts: map[string]struct{}{"6379/tcp": {}},
		},
	}, nil
}

// RedisVersion is the version of this machine's redis-server.
func RedisVersion() (string, error) {
	version, err := versionOf("redis-server", `v=(\d+\.\d+\.\d+)`)
	if err != nil {
		return "", fmt.Errorf("%w; install it: apt-get install redis-server", err)
	}
	return version, nil
}
