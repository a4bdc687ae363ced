package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Builder makes the binaries.
type Builder struct {
	Source     string    // the lab's folder in the repository
	Cache      string    // see settings.CacheDir
	Kubernetes string    // the version of Kubernetes
	Progress   io.Writer // progress messages
}

// Binaries returns the folder that holds all binaries, building what the cache does not have. The
// folder's name is the hash of everything in it, so its content never changes.
func (b Builder) Binaries(ctx context.Context) (string, error) {
	all, err := b.parts()
	if err != nil {
		return "", err
	}
	set, dirs, err := b.folders(all)
	if err != nil {
		return "", err
	}
	if exists(set) {
		return set, nil
	}
	var missing []int
	for i := range all {
		if !exists(filepath.Join(b.Cache, "parts", dirs[i])) {
			missing = append(missing, i)
		}
	}
	for n, i := range missing {
		told := &progress{
			out:    b.Progress,
			part:   all[i],
			number: n + 1,
			all:    len(missing),
			began:  time.Now(),
		}
		if err := b.build(ctx, all[i], dirs[i], told); err != nil {
			return "", err
		}
	}
	return set, b.publish(set, func(dir string) error {
		for i, p := range all {
			for _, name := range append(p.links, p.files...) {
				if err := os.Symlink(filepath.Join("..", "parts", dirs[i], target(p, name)),
					filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Built is Binaries, but an error where that would build.
func (b Builder) Built() (string, error) {
	all, err := b.parts()
	if err != nil {
		return "", err
	}
	set, _, err := b.folders(all)
	if err == nil && !exists(set) {
		err = errors.New("the lab's binaries are not built")
	}
	return set, err
}

// folders returns the path of the folder with the binaries of all parts, and the name of each
// part's own.
func (b Builder) folders(all []part) (set string, dirs []string, err error) {
	var hashes []string
	for _, p := range all {
		hash, err := p.hash(b.Source)
		if err != nil {
			return "", nil, fmt.Errorf("%w; is %s the lab's folder?", err, b.Source)
		}
		hashes = append(hashes, hash)
		dirs = append(dirs, p.name+"-"+hash)
	}
	return filepath.Join(b.Cache, setHash(hashes)), dirs, nil
}

// target is the file for a name of the part.
func target(p part, name string) string {
	for _, f := range p.files {
		if f == name {
			return name
		}
	}
	return p.files[0]
}

func (b Builder) build(ctx context.Context, p part, dir string, told *progress) error {
	fmt.Fprintf(b.Progress, "building %s %s, part %d of %d (first time about %s) ...\n", p.name,
		p.version, told.number, told.all, p.firstTime)
	err := b.publish(filepath.Join(b.Cache, "parts", dir), func(out string) error {
		// Without cgo the binaries are static, so they run in images without libraries.
		env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+flags, "GOBIN="+out)
		told.packages = p.toCompile(ctx, b.Source, env)
		argv := p.argv(out)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = filepath.Join(b.Source, p.dir)
		cmd.Env = env
		// a killed lab leaves no compiler running
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		// the signal comes when this thread ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var output bytes.Buffer
		both := io.MultiWriter(&output, told)
		cmd.Stdout, cmd.Stderr = both, both
		stop := told.show()
		err := cmd.Run()
		stop()
		if err != nil {
			return fmt.Errorf("building %s %s: %w\n%s", p.name, p.version, err,
				tail(withoutPackages(output.Bytes()), 4000))
		}
		for _, f := range p.files {
			if !exists(filepath.Join(out, f)) {
				return fmt.Errorf("building %s made no %s", p.name, f)
			}
		}
		return nil
	})
	if err == nil {
		fmt.Fprintf(b.Progress, "built %s %s in %.0f s\n", p.name, p.version,
			time.Since(told.began).Seconds())
	}
	return err
}

// publish lets fill make a folder that then appears at path all at once: an interrupted build
// leaves nothing there.
func (b Builder) publish(path string, fill func(dir string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	removeStale(filepath.Dir(path))
	dir, err := os.MkdirTemp(filepath.Dir(path), stalePrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := fill(dir); err != nil {
		return err
	}
	if err := os.Rename(dir, path); err != nil && !exists(path) { // another build may have been first
		return err
	}
	return nil
}

const stalePrefix = ".building-"

// removeStale deletes what builds left that were killed long ago.
func removeStale(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, stalePrefix+"*"))
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(path)
		}
	}
}

func tail(data []byte, n int) []byte {
	if len(data) > n {
		return data[len(data)-n:]
	}
	return data
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
