// Package preflight checks, before anything is changed, whether this machine can run the lab, and
// describes what to do if it cannot.
package preflight

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redquake/redquake/hack/lab/internal/cgroup"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// needed maps a Debian package to the files the lab uses from it; a name without a slash is looked
// up in PATH.
var needed = []struct {
	pkg   string
	files []string
}{
	{"runc", []string{"runc"}},
	{"containernetworking-plugins", []string{
		settings.CNIBinDir + "/bridge", settings.CNIBinDir + "/host-local",
		settings.CNIBinDir + "/portmap", settings.CNIBinDir + "/loopback",
	}},
	{"iptables", []string{"iptables", "iptables-restore", "ip6tables"}},
	{"conntrack", []string{"conntrack"}},
	{"iproute2", []string{"ip"}},
	{"util-linux", []string{"nsenter", "mount", "umount"}},
	{"e2fsprogs", []string{"mkfs.ext4"}},
	{"redis-server", []string{"redis-server"}},
	{"redis-tools", []string{"redis-cli", "redis-benchmark"}},
	{"busybox-static", []string{"busybox"}},
	{"libc-bin", []string{"ldd"}},
}

// features are kernel features and where the kernel shows them.
var features = []struct{ what, path, module string }{
	{"network namespaces", "/proc/self/ns/net", ""},
	{"PID namespaces", "/proc/self/ns/pid", ""},
	{"bridge netfilter", "/proc/sys/net/bridge/bridge-nf-call-iptables", "br_netfilter"},
	{"loop devices", "/dev/loop-control", "loop"},
}

// maxStateDir keeps the sockets in the state folder below the 108 bytes that a socket's path may
// have.
const maxStateDir = 50

// Check returns every reason why the lab cannot run here, in one error.
func Check(state settings.State) error {
	if os.Geteuid() != 0 {
		return errors.New("the lab needs root, for namespaces, cgroups and mounts: use sudo, " +
			"or another cluster with CLUSTER=kind or CLUSTER=existing")
	}
	var problems []error
	if missing := missingPackages(); len(missing) > 0 {
		problems = append(problems,
			fmt.Errorf("programs are missing; install them: apt-get install --no-install-recommends %s",
				strings.Join(missing, " ")))
	}
	if len(state.Dir) > maxStateDir {
		problems = append(problems,
			fmt.Errorf("REDQUAKE_LAB_DIR has %d characters; sockets in it allow %d", len(state.Dir),
				maxStateDir))
	}
	problems = append(problems, checkCgroups(), checkKernel())
	return errors.Join(problems...)
}

func missingPackages() []string {
	var missing []string
	for _, n := range needed {
		if slices.ContainsFunc(n.files, func(file string) bool { return !installed(file) }) {
			missing = append(missing, n.pkg)
		}
	}
	return missing
}

// installed also searches the sbin folders, which PATH often lacks.
func installed(file string) bool {
	if strings.Contains(file, "/") {
		_, err := os.Stat(file)
		return err == nil
	}
	if _, err := exec.LookPath(file); err == nil {
		return true
	}
	return slices.ContainsFunc(filepath.SplitList(settings.SystemPath), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, file))
		return err == nil && info.Mode()&0o111 != 0
	})
}

func checkCgroups() error {
	h, err := cgroup.Discover()
	if err != nil {
		return err
	}
	if missing := h.Missing(); len(missing) > 0 {
		version := "v1"
		if h.IsV2() {
			version = "v2"
		}
		return fmt.Errorf(
			"cgroup %s has no controller for %s; mount or enable it (v1: mount -t cgroup -o NAME cgroup /sys/fs/cgroup/NAME)",
			version, strings.Join(missing, ", "))
	}
	return nil
}

func checkKernel() error {
	var problems []error
	for _, f := range features {
		if _, err := os.Stat(f.path); err == nil {
			continue
		}
		if f.module != "" && exec.Command("modprobe", f.module).Run() == nil {
			if _, err := os.Stat(f.path); err == nil {
				continue
			}
		}
		hint := "the kernel was built without it"
		if f.module != "" {
			hint = "load it: modprobe " + f.module
		}
		problems = append(problems,
			fmt.Errorf("the kernel has no %s (%s is missing); %s", f.what, f.path, hint))
	}
	filesystems, _ := os.ReadFile("/proc/filesystems")
	if !strings.Contains(string(filesystems), "\toverlay\n") &&
		exec.Command("modprobe", "overlay").Run() != nil {
		problems = append(problems,
			errors.New("the kernel has no overlay file system; load it: modprobe overlay"))
	}
	return errors.Join(problems...)
}
