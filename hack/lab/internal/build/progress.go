package build

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// progress tells people how far the build of a part is.
type progress struct {
	out      io.Writer
	part     part
	number   int // of this part, from 1, of all
	all      int // parts that are built
	began    time.Time
	packages int          // to compile; 0: unknown
	compiled atomic.Int64 // of them
}

const (
	onTerminal = time.Second // the line is overwritten
	inLog      = 30 * time.Second
)

// show tells it periodically, until stop is called.
func (p *progress) show() (stop func()) {
	terminal := isTerminal(p.out)
	interval := inLog
	if terminal {
		interval = onTerminal
	}
	ticker := time.NewTicker(interval)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				if terminal {
					fmt.Fprintf(p.out, "\r%s\x1b[K", p.String())
				} else {
					fmt.Fprintln(p.out, p.String())
				}
			case <-done:
				if terminal {
					fmt.Fprint(p.out, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done); <-ended }
}

// String is shorter than a line of 80 characters, which a terminal would not overwrite.
func (p *progress) String() string {
	compiled := p.compiled.Load()
	var what string
	switch {
	case p.packages > 0 && compiled >= int64(p.packages):
		what = fmt.Sprintf("all %d packages compiled, linking", p.packages)
	case p.packages > 0:
		what = fmt.Sprintf("%d of %d packages compiled", compiled, p.packages)
	default:
		what = fmt.Sprintf("%d packages compiled", compiled)
	}
	return fmt.Sprintf("  part %d of %d, %s: %s, %v so far", p.number, p.all, p.part.name, what,
		time.Since(p.began).Round(time.Second))
}

// Write takes the output of `go build -v` or `go install -v`, and counts its lines that name a
// package.
func (p *progress) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if isPackage(line) {
			p.compiled.Add(1)
		}
	}
	return len(text), nil
}

// isPackage distinguishes the line of a package from those of downloads and errors.
func isPackage(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && !strings.ContainsAny(line, " :#\t")
}

// withoutPackages is the output of a failed build without the lines that only tell of progress.
func withoutPackages(output []byte) []byte {
	var rest bytes.Buffer
	for line := range bytes.Lines(output) {
		if !isPackage(string(line)) {
			rest.Write(line)
		}
	}
	return rest.Bytes()
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// toCompile counts the packages of a part that the build cache does not have, and downloads their
// modules for that. 0 is for unknown: the build itself says what is wrong.
func (p part) toCompile(ctx context.Context, source string, env []string) int {
	run := func(dir string, argv ...string) []byte {
		c := exec.CommandContext(ctx, "go", argv...)
		c.Dir, c.Env = dir, env
		out, err := c.Output()
		if err != nil {
			return nil
		}
		return out
	}
	dir := filepath.Join(source, p.dir)
	if p.module != "" { // outside of this module, as `go install` with a version is
		var downloaded struct{ Dir string }
		if json.Unmarshal(run(dir, "mod", "download", "-json", p.module), &downloaded) != nil {
			return 0
		}
		dir = downloaded.Dir
	}
	list := []string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}
	list = append(append(list, p.modFlags()...), p.targets()...)
	return len(strings.Fields(string(run(dir, list...))))
}

// targets are the packages at the end of the command, without versions.
func (p part) targets() (targets []string) {
	for _, argument := range p.command {
		path, _, versioned := strings.Cut(argument, "@")
		if versioned {
			targets = append(targets, path)
		}
	}
	if targets == nil {
		targets = p.command[len(p.command)-1:]
	}
	return targets
}
