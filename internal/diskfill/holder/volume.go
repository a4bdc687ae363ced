//go:build linux

package holder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Magic numbers of file systems on which space can be set aside without writing it, and on which a
// file without a name is freed when the file system is mounted again: statfs(2).
var supported = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4",
	unix.XFS_SUPER_MAGIC:  "xfs",
}

// tolerance is by how much a file system may be larger than its claim, in percent: some drivers
// round.
const tolerance = 10

const (
	// most is how much space is set aside by one call.
	most = 1 << 30
	// least is the smallest piece: a block.
	least = 4 << 10
)

// volume is a file system and the file that fills it.
type volume struct {
	path string
	file *os.File // without a name; nil = there is none
}

// refusal is why a volume must not be filled.
type refusal struct{ error }

// check refuses what is not a file system of the claim's own.
func (v *volume) check(capacity int64) error {
	stat, err := v.stat()
	if err != nil {
		return err
	}
	if _, ok := supported[int64(stat.Type)]; !ok { //nolint:unconvert // another type on other machines
		return refusal{fmt.Errorf("its file system has type %#x: only ext4 and xfs are filled", stat.Type)}
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer func() { _ = mounts.Close() }()
	root, err := rootOf(mounts, v.path)
	if err != nil {
		return err
	}
	if root != "/" {
		return refusal{fmt.Errorf(
			"it is the folder %s of a larger file system, which others use as well", root)}
	}
	if size := sizeOf(stat); size > capacity+capacity*tolerance/100 {
		return refusal{fmt.Errorf(
			"its file system has %d MiB, and the claim %d MiB: others may use it as well", size>>20, capacity>>20)}
	}
	return nil
}

// rootOf finds which folder of its file system is mounted at a path: proc_pid_mountinfo(5). The last
// mount at a path is the one that is seen.
func rootOf(mounts io.Reader, path string) (root string, err error) {
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && fields[4] == path {
			root = fields[3]
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	if root == "" {
		return "", refusal{fmt.Errorf("nothing is mounted at %s", path)}
	}
	return root, nil
}

// fill sets space aside until no more than leave is left, or the file system has no more.
func (v *volume) fill(leave int64) error {
	if v.file == nil {
		file, err := os.OpenFile(v.path, unix.O_TMPFILE|os.O_WRONLY, 0o600)
		if err != nil {
			return refusal{err}
		}
		v.file = file
	}
	for piece := int64(most); piece >= least; {
		_, left, err := v.space()
		if err != nil {
			return err
		}
		if left-leave < least {
			return nil
		}
		piece = min(piece, left-leave)
		end, _, err := v.extent()
		if err != nil {
			return err
		}
		err = unix.Fallocate(int(v.file.Fd()), 0, end, piece)
		switch { // what it could set aside before an error stays so
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			piece /= 2
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return refusal{fmt.Errorf("set space aside: %w", err)}
		}
	}
	return nil
}

// extent is where the file ends, and how much of the file system it has, in bytes.
func (v *volume) extent() (end, held int64, err error) {
	if v.file == nil {
		return 0, 0, nil
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(v.file.Fd()), &stat); err != nil {
		return 0, 0, fmt.Errorf("read the size of the file: %w", err)
	}
	return stat.Size, stat.Blocks * 512, nil // stat(2)
}

// free gives the space back.
func (v *volume) free() error {
	if v.file == nil {
		return nil
	}
	err := v.file.Close()
	v.file = nil
	return err
}

// space is how large the file system is, and what is left for whoever has this process' user.
func (v *volume) space() (size, left int64, err error) {
	stat, err := v.stat()
	if err != nil {
		return 0, 0, err
	}
	free := stat.Bavail
	if os.Geteuid() == 0 { // it may use what is reserved for it as well
		free = stat.Bfree
	}
	return sizeOf(stat), int64(free) * stat.Bsize, nil
}

func (v *volume) stat() (*unix.Statfs_t, error) {
	stat := &unix.Statfs_t{}
	if err := unix.Statfs(v.path, stat); err != nil {
		return nil, fmt.Errorf("read the file system at %s: %w", v.path, err)
	}
	return stat, nil
}

func sizeOf(stat *unix.Statfs_t) int64 {
	return int64(stat.Blocks) * stat.Bsize
}
