//go:build integration && linux

package holder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/internal/diskfill"
	"github.com/redquake/redquake/internal/testing/await"
)

const capacity = 64 << 20

// ofKernel is what ext4 keeps for itself of what it says is free for root: 2 %, s_resv_clusters.
const ofKernel = capacity / 50

// mounted is a new file system of a size in bytes, of the claim's own. Without root the test is
// skipped.
func mounted(t *testing.T, size int64) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a file system is mounted by root")
	}
	image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
	file, err := os.Create(image)
	if err == nil {
		err = errors.Join(file.Truncate(size), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", words, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}

// serving is a holder that serves; the function ends it.
func serving(t *testing.T, path string) (asks func(string, diskfill.Order) diskfill.State, end func()) {
	t.Helper()
	socket := fmt.Sprintf("@redquake-diskfill-%s", t.Name())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, socket, path) }()
	asks = func(verb string, order diskfill.Order) (state diskfill.State) {
		t.Helper()
		await.Until(t, "the holder answers "+verb, func() (err error) {
			state, err = ask(t.Context(), socket, verb, order)
			return err
		})
		return state
	}
	return asks, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// left is what a file system has left for everybody, in bytes.
func left(t *testing.T, path string) int64 {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		t.Fatal(err)
	}
	return int64(stat.Bfree) * stat.Bsize
}

// write writes to a file of the volume, as its owner does.
func write(path string, bytes int) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, bytes))
	return errors.Join(err, file.Sync(), file.Close())
}

// A volume is full for its owner, stays so when the owner deletes something, and has all of its room
// again at the end, without a file that somebody would have to delete.
func TestFills(t *testing.T) {
	at := mounted(t, capacity)
	file := filepath.Join(at, "aof")
	if err := write(file, 8<<20); err != nil {
		t.Fatal(err)
	}
	before := left(t, at)
	asks, end := serving(t, at)
	order := diskfill.Order{Capacity: capacity, Leave: 1 << 20, For: time.Minute}
	if s := asks(diskfill.VerbCheck, order); s.Refused != "" || s.Full || left(t, at) != before {
		t.Fatalf("the check says %+v, and %d bytes are left of %d", s, left(t, at), before)
	}
	for range 2 { // the second time as by an operator that does not know of the first
		if s := asks(diskfill.VerbFill, order); !s.Full || s.Left > order.Leave+ofKernel || s.Held < before-order.Leave-2*ofKernel {
			t.Fatalf("filled: %+v", s)
		}
	}
	if err := write(file, 4<<20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("the owner could write more than is left: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "what the owner gave back is filled as well", func() error {
		s := asks(diskfill.VerbShow, diskfill.Order{})
		return await.That(s.Left <= order.Leave+ofKernel && s.Held > before-2<<20, "%+v", s)
	})
	if names, err := os.ReadDir(at); err != nil || len(names) != 1 || names[0].Name() != "lost+found" {
		t.Errorf("the volume has %v, %v", names, err)
	}
	if s := asks(diskfill.VerbRelease, diskfill.Order{}); !s.Released || s.Held != 0 || s.Left < before {
		t.Errorf("released: %+v", s)
	}
	if s := asks(diskfill.VerbFill, order); s.Full || s.Left < before {
		t.Errorf("it was filled again after its release: %+v", s)
	}
	end()
}

// A holder that nobody reaches any more frees the volume by itself, and one that is killed does by
// its end.
func TestFreesByItself(t *testing.T) {
	at := mounted(t, capacity)
	before := left(t, at)
	for name, for_ := range map[string]time.Duration{"at its deadline": 300 * time.Millisecond, "at its end": time.Hour} {
		asks, end := serving(t, at)
		began := time.Now()
		if s := asks(diskfill.VerbFill, diskfill.Order{Capacity: capacity, For: for_}); !s.Full {
			t.Fatalf("%s: %+v", name, s)
		}
		if for_ == time.Hour {
			end()
		}
		await.Until(t, "the volume has its room again "+name, func() error {
			return await.That(left(t, at) == before, "%d bytes are left of %d", left(t, at), before)
		})
		if since := time.Since(began); since < min(for_, 300*time.Millisecond) && for_ != time.Hour {
			t.Errorf("%s: it was freed after %v", name, since)
		}
	}
}

// What is not a file system of the claim's own is refused, and nothing is written to it.
func TestRefuses(t *testing.T) {
	own := mounted(t, capacity)
	folder := filepath.Join(own, "claim")
	bound := t.TempDir()
	if err := errors.Join(os.Mkdir(folder, 0o700), unix.Mount(folder, bound, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(bound, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	memory := t.TempDir()
	if err := unix.Mount("tmpfs", memory, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(memory, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for name, tc := range map[string]struct {
		path     string
		capacity int64
		says     string
	}{
		"a folder of a larger one": {bound, capacity, "it is the folder /claim of a larger file system"},
		"larger than the claim":    {own, 16 << 20, "and the claim 16 MiB: others may use it as well"},
		"not mounted":              {folder, capacity, "nothing is mounted at " + folder},
		"in memory":                {memory, capacity, "only ext4 and xfs are filled"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			before := left(t, tc.path)
			asks, end := serving(t, tc.path)
			order := diskfill.Order{Capacity: tc.capacity, For: time.Minute}
			for _, verb := range []string{diskfill.VerbCheck, diskfill.VerbFill} {
				if s := asks(verb, order); !strings.Contains(s.Refused, tc.says) || s.Full || left(t, tc.path) != before {
					t.Errorf("%s: %+v, want %q; %d bytes are left of %d", verb, s, tc.says, left(t, tc.path), before)
				}
			}
			end()
		})
	}
}
