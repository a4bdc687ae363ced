package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Client is the image of a language's adapters of client libraries: those that hack/adapters.sh has
// built into a folder, in /adapters, with this machine's runtime of the language.
func Client(language, adapters, tag string) (Spec, error) {
	drivers, own, err := runtimeOf(language)
	if err != nil {
		return Spec{}, err
	}
	tools, err := busybox() // the adapters are started by scripts
	if err != nil {
		return Spec{}, err
	}
	files, err := tree(filepath.Join(adapters, language), "/adapters/"+language)
	if err != nil {
		return Spec{}, fmt.Errorf("%w; build the adapters: hack/adapters.sh %s", err, language)
	}
	for _, driver := range drivers {
		path := filepath.Join(adapters, driver)
		file := File{Source: path}
		if target, err := os.Readlink(path); err == nil {
			file = File{Link: target}
		}
		files["/adapters/"+driver] = file
	}
	return Spec{
		Tags:   []string{tag},
		Files:  merge(base("nonroot", 65532), certificates(), tools, own, loaded(files), files),
		Config: v1.Config{User: "65532:65532", WorkingDir: "/", Env: []string{searchPath}},
	}, nil
}

// runtimeOf is what a language's adapters are, and what runs them.
func runtimeOf(language string) (drivers []string, files Files, err error) {
	switch language {
	case "python":
		files, err = python()
		return []string{"RedisPy", "RedisPyAsync", "GlidePython"}, files, err
	case "node":
		files, err = withLibraries("node")
		return []string{"NodeRedis", "IORedis", "GlideNode"}, files, err
	case "java":
		files, err = java()
		return []string{"Lettuce", "Jedis", "GlideJava"}, files, err
	case "rust":
		return []string{"RedisRs", "RedisRsMultiplexed"}, nil, nil
	}
	return nil, nil, fmt.Errorf("there are no adapters in %q: python, node, java and rust have some", language)
}

// python is this machine's interpreter with its standard library, which it finds from its own
// place.
func python() (Files, error) {
	out, err := exec.Command("python3", "-c", "import os, sys, sysconfig\n"+
		"print(sys.base_prefix, os.path.realpath(sys._base_executable), sysconfig.get_path('stdlib'), sep='\\n')").Output()
	if err != nil {
		return nil, fmt.Errorf("asking python3 where it is: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 {
		return nil, errors.New("python3 does not say where it is")
	}
	prefix, program, library := lines[0], lines[1], lines[2]
	inside := func(path string) string { return "/usr" + strings.TrimPrefix(path, prefix) }
	files, err := tree(library, inside(library), "test", "idlelib", "ensurepip", "site-packages", "dist-packages")
	if err != nil {
		return nil, err
	}
	own, err := libraries(program)
	if err != nil {
		return nil, err
	}
	return merge(files, own, loaded(files), Files{
		inside(program):    {Source: program},
		"/usr/bin/python3": {Link: inside(program)},
	}), nil
}

// java is this machine's JVM with all that belongs to it.
func java() (Files, error) {
	found, err := exec.LookPath("java")
	if err != nil {
		return nil, err
	}
	program, err := filepath.EvalSymlinks(found)
	if err != nil {
		return nil, err
	}
	home := filepath.Dir(filepath.Dir(program))
	files, err := tree(home, home, "jmods", "src.zip", "include", "man", "demo", "legal")
	if err != nil {
		return nil, err
	}
	own, err := libraries(program)
	if err != nil {
		return nil, err
	}
	return merge(files, own, loaded(files), cLibraries(), Files{"/usr/bin/java": {Link: program}}), nil
}

// cLibraries are what native code in jars loads, which is not seen from outside.
func cLibraries() Files {
	files := Files{}
	for _, name := range []string{"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1"} {
		found, _ := filepath.Glob("/lib/*-linux-gnu/" + name)
		for _, path := range found {
			files[path] = File{Source: path}
		}
	}
	return files
}

// loaded are the libraries of this machine that the shared objects among the files load. What a
// window or a sound needs may be missing here, and is not needed.
func loaded(files Files) Files {
	all := Files{}
	for _, file := range files {
		name := filepath.Base(file.Source)
		if !strings.Contains(name, ".so") && filepath.Ext(name) != ".node" {
			continue
		}
		if found, err := libraries(file.Source); err == nil {
			for path, library := range found {
				if strings.HasPrefix(path, "/lib") || strings.HasPrefix(path, "/usr/lib/") {
					all[path] = library
				}
			}
		}
	}
	return all
}

// tree is a folder of this machine at another place of the image, without the entries that have one
// of the names. Links to files are followed.
func tree(from, to string, without ...string) (Files, error) {
	files := Files{}
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != from && slices.Contains(without, entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil // a link to nothing, or to a folder that has its own place
		}
		relative, err := filepath.Rel(from, path)
		files[filepath.Join(to, relative)] = File{Source: path, Mode: info.Mode().Perm() | 0o444}
		return err
	})
	return files, err
}
