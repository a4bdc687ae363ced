package image

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// withLibraries is the program of this machine in /usr/bin, together with the shared libraries it
// loads.
func withLibraries(program string) (Files, error) {
	found, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(found)
	if err != nil {
		return nil, err
	}
	files, err := libraries(resolved)
	if err != nil {
		return nil, err
	}
	files[filepath.Join("/usr/bin", filepath.Base(program))] = File{Source: resolved}
	return files, nil
}

// atItsPlace is a program or a library of this machine where it is found here, together with the
// shared libraries it loads. A script loads none.
func atItsPlace(path string) (Files, error) {
	files := Files{}
	if f, err := elf.Open(path); err == nil {
		f.Close()
		if files, err = libraries(path); err != nil {
			return nil, err
		}
	}
	files[path] = File{Source: path}
	return files, nil
}

// libraries are the shared libraries that the program or library at path loads, where they are
// found on this machine.
func libraries(path string) (Files, error) {
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the libraries of %s: %w", path, err)
	}
	files := Files{}
	for _, library := range parseLDD(string(out)) {
		files[library] = File{Source: library}
	}
	return files, nil
}

// parseLDD picks the absolute paths out of ldd's output: "libm.so.6 => /lib/libm.so.6 (0x...)",
// "/lib64/ld.so (0x...)".
func parseLDD(out string) []string {
	var paths []string
	for line := range strings.Lines(out) {
		for _, field := range strings.Fields(line) {
			if strings.HasPrefix(field, "/") {
				paths = append(paths, field)
				break
			}
		}
	}
	return paths
}

// ofTree is a program of unpacked packages together with the shared libraries that the loader among
// them gives it.
func ofTree(tree, program string) (Files, error) {
	loaders, err := filepath.Glob(filepath.Join(tree, "usr/lib/*/ld-linux*.so.*"))
	if err != nil || len(loaders) != 1 {
		return nil, fmt.Errorf("%s has %d dynamic loaders, not one (%v)", tree, len(loaders), err)
	}
	path := filepath.Join(tree, "usr/bin", program)
	out, err := exec.Command(loaders[0], "--inhibit-cache", "--library-path", filepath.Dir(loaders[0]),
		"--list", path).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the libraries of %s: %w", path, err)
	}
	files, err := parseList(string(out), tree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	files["/usr/bin/"+program] = File{Source: path}
	return files, nil
}

// parseList picks the files below tree out of a loader's list: "libm.so.6 => TREE/usr/lib/libm.so.6
// (0x...)". The loader itself is named by the path at which the kernel looks for it: "/lib64/ld.so
// => TREE/usr/lib/ld.so (0x...)".
func parseList(out, tree string) (Files, error) {
	files := Files{}
	for line := range strings.Lines(out) {
		name, found, is := strings.Cut(strings.TrimSpace(line), " => ")
		if !is {
			continue // the kernel's
		}
		source, _, _ := strings.Cut(found, " ")
		path, inside := strings.CutPrefix(source, tree)
		if !inside {
			return nil, fmt.Errorf("%s is not in %s: %q", name, tree, source)
		}
		if filepath.IsAbs(name) {
			path = name
		}
		files[path] = File{Source: source}
	}
	return files, nil
}

// busybox is the static busybox of this machine with a link for every tool in it.
func busybox() (Files, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	if err := requireStatic(path,
		"install the static one: apt-get install busybox-static"); err != nil {
		return nil, err
	}
	out, err := exec.Command(path, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing busybox's tools: %w", err)
	}
	files := Files{"/bin/busybox": {Source: path}}
	for tool := range strings.FieldsSeq(string(out)) {
		if tool != "busybox" {
			files["/bin/"+tool] = File{Link: "/bin/busybox"}
		}
	}
	return files, nil
}

// requireStatic returns an error unless path is a program that needs no shared library: in an image
// without any, another one fails with a baffling "no such file or directory".
func requireStatic(path, remedy string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is not a Linux program: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs shared libraries, which the image does not have; %s", path, remedy)
		}
	}
	return nil
}

// machines are the architectures of images, by Go's names.
var machines = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// staticFor is the architecture of static programs, which is the same for all of them.
func staticFor(paths ...string) (architecture string, err error) {
	for i, path := range paths {
		if err := requireStatic(path, "build it with CGO_ENABLED=0"); err != nil {
			return "", err
		}
		f, err := elf.Open(path)
		if err != nil {
			return "", err
		}
		machine := f.Machine
		f.Close()
		switch found := machines[machine]; {
		case found == "":
			return "", fmt.Errorf("%s is for %s, for which there are no images", path, machine)
		case i > 0 && found != architecture:
			return "", fmt.Errorf("%s is for %s, and %s for %s", paths[0], architecture, path, found)
		default:
			architecture = found
		}
	}
	return architecture, nil
}

// certificates are the authorities this machine trusts; none if it has no list of them.
func certificates() Files {
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat(bundle); err != nil {
		return Files{}
	}
	return Files{bundle: {Source: bundle, Mode: 0o644}}
}
