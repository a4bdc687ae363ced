// Package settings defines all names: versions, paths, addresses, the nodes.
// Values that are computed from the machine belong to the package that computes them.
package settings

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// Versions of what the lab builds or expects. A change here changes the hash of the built binaries.
const (
	KubernetesVersion    = "1.36.3" // that of kube/go.mod; kube/versions has others
	ContainerdVersion    = "2.4.2"
	CoreDNSVersion       = "1.15.0"
	MetricsServerVersion = "0.9.0"
)

// Names of the lab's objects on the host. There is one lab per machine, so they are constants.
const (
	Name          = "redquake-lab"
	NetNSDir      = "/run/netns"
	NetNS         = NetNSDir + "/" + Name
	Pointer       = "/run/" + Name // a link to the state folder of the lab that is up
	LockSocket    = "@" + Name     // abstract socket: held by the command that changes the lab
	CgroupRoot    = "/" + Name
	DaemonsCgroup = CgroupRoot + "/daemons"
	// Weight is how many other processes that want a CPU the pods of all nodes weigh as much as: with
	// the kernel's default, one, a Redis would not answer for seconds beside a build.
	Weight = 16
	Bridge = "cni0"
)

// Addresses inside the lab's network namespace, all from 198.18.0.0/15 (RFC 2544, for benchmarks):
// no address of the machine's own networks can be meant by mistake.
const (
	ClusterNetwork  = "198.18.0.0/16"
	NodeNetwork     = "198.18.0.0/24"
	PrefixLength    = 16
	ControlPlaneIP  = "198.18.0.1"
	APIServerPort   = 6443
	ServiceNetwork  = "198.19.0.0/16"
	KubernetesSvcIP = "198.19.0.1"
	DNSServiceIP    = "198.19.0.10"
	ClusterDomain   = "cluster.local"
	KubeletPort     = 10250
	MetricsPort     = 4443 // of metrics-server, at ControlPlaneIP
	RegistryPort    = 5000 // of the images' registry, at ControlPlaneIP
)

// Behaviour of the cluster that tests rely on. They belong together: the grace period needs the
// short lease.
const (
	NodeMonitorGracePeriod = "16s" // an unreachable node is NotReady after this long
	// renewed every quarter of it, 5 s; the default 40 would need a grace of 40 s
	NodeLeaseDurationSeconds  = 20
	NodeStatusUpdateFrequency = "5s" // also bounds how soon a detach is noticed
	DefaultTolerationSeconds  = 30   // of not-ready and unreachable, until pods are evicted
	ReservedCPU               = "500m"
	MaxPods                   = 60
)

// Images that every node has from the start.
const (
	PauseImage   = "docker.io/redquake-lab/pause:1"
	CoreDNSImage = "docker.io/redquake-lab/coredns:" + CoreDNSVersion
	RedisImage   = "docker.io/library/redis"
	CSIDriver    = "disk.lab.csi"
)

// Images that are loaded on request.
const (
	ValkeyImage     = "docker.io/valkey/valkey"
	PostgresImage   = "docker.io/library/postgres"
	MariaDBImage    = "docker.io/library/mariadb"
	PrometheusImage = "docker.io/prom/prometheus"
)

// CNIBinDir and SystemPath are where Debian puts the programs the nodes call.
const (
	CNIBinDir  = "/usr/lib/cni"
	SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Node is one node of the cluster. Its pods get addresses from PodFirst to PodLast.
type Node struct {
	Name, IP, PodFirst, PodLast string
}

// Nodes are all nodes, in the order they are shown.
var Nodes = []Node{
	{Name: "node-a", IP: "198.18.0.11", PodFirst: "198.18.1.10", PodLast: "198.18.1.250"},
	{Name: "node-b", IP: "198.18.0.12", PodFirst: "198.18.2.10", PodLast: "198.18.2.250"},
}

// NodeByName returns the node called name.
func NodeByName(name string) (Node, error) {
	var known []string
	for _, n := range Nodes {
		if n.Name == name {
			return n, nil
		}
		known = append(known, n.Name)
	}
	return Node{}, fmt.Errorf("no node is named %q; the lab's nodes are %v", name, known)
}

// PrivateDirs are the folders each node has for itself: its own are mounted over the host's, so
// both kubelets and both containerds use their default paths and never see each other.
var PrivateDirs = []string{
	"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers",
	"/run/containerd",
	"/run/mount", // notes of mount(8)
}

// State is the folder that holds everything a running lab keeps on disk.
type State struct{ Dir string }

// DefaultStateDir is used unless REDQUAKE_LAB_DIR names another folder.
const DefaultStateDir = "/var/lib/" + Name

// StateFromEnv returns the state folder: REDQUAKE_LAB_DIR if set, otherwise that of the running
// lab, otherwise the default.
func StateFromEnv() (State, error) {
	dir := os.Getenv("REDQUAKE_LAB_DIR")
	if dir == "" {
		if target, err := os.Readlink(Pointer); err == nil {
			return State{Dir: target}, nil
		}
		return State{Dir: DefaultStateDir}, nil
	}
	if !filepath.IsAbs(dir) {
		return State{}, fmt.Errorf("REDQUAKE_LAB_DIR is %q; it must be an absolute path", dir)
	}
	return State{Dir: filepath.Clean(dir)}, nil
}

// Kubernetes is the version that LAB_KUBERNETES chooses, such as 1.35.8, or KubernetesVersion.
func Kubernetes() string {
	return cmp.Or(os.Getenv("LAB_KUBERNETES"), KubernetesVersion)
}

// Marker marks a folder as a lab's: no folder without it is ever deleted.
func (s State) Marker() string {
	return s.path(".redquake-lab")
}

// Kubernetes is where it is recorded which version the lab was booted with.
func (s State) Kubernetes() string {
	return s.path("kubernetes")
}

// CreatedDirs lists the folders outside the state folder that the lab had to create.
func (s State) CreatedDirs() string {
	return s.path("created-dirs")
}

// Bin is a link to the built binaries the lab was started with.
func (s State) Bin() string {
	return s.path("bin")
}

// PKI is the folder of certificates and keys.
func (s State) PKI() string {
	return s.path("pki")
}

// Kubeconfig is a component's kubeconfig; Kubeconfig("admin") is the user's.
func (s State) Kubeconfig(user string) string {
	return s.path("pki", user+".kubeconfig")
}

// KubectlCache is kubectl's discovery cache. In ~/.kube it would outlive the lab and show the next
// one, at the same address, kinds that no longer exist.
func (s State) KubectlCache() string {
	return s.path("kubectl-cache")
}

// Etcd is etcd's data folder.
func (s State) Etcd() string {
	return s.path("etcd")
}

// Images is the folder of the registry's images.
func (s State) Images() string {
	return s.path("images")
}

// Loaded is where it is recorded which version of an archive the nodes have.
func (s State) Loaded(archive string) string {
	return s.path("loaded", filepath.Base(archive))
}

// Volumes is the folder of the CSI driver's volumes.
func (s State) Volumes() string {
	return s.path("volumes")
}

// Log is the log file of a daemon.
func (s State) Log(daemon string) string {
	return s.path("log", daemon+".log")
}

// Record is where the process of a daemon, or of a node's PID 1, is recorded.
func (s State) Record(daemon string) string {
	return s.path("run", daemon)
}

// Manifests is the file of the rendered base manifests.
func (s State) Manifests() string {
	return s.path("base.yaml")
}

// NodeDir is a node's folder.
func (s State) NodeDir(node string) string {
	return s.path("nodes", node)
}

// ContainerdSocket is the path of a node's containerd socket on the host.
func (s State) ContainerdSocket(node string) string {
	return s.NodeFS(node, "/run/containerd/containerd.sock")
}

// NodeFS is the path of a node's private folder on the host: NodeFS(n, "/var/lib/kubelet").
func (s State) NodeFS(node, dir string) string {
	return s.path("nodes", node, "fs", dir)
}

// NodeSocket is where a node's PID 1 takes orders.
func (s State) NodeSocket(node string) string {
	return s.path("nodes", node, "init.sock")
}

func (s State) path(parts ...string) string {
	return filepath.Join(append([]string{s.Dir}, parts...)...)
}

// CacheDir holds built binaries and images; every clone of the repository shares it.
func CacheDir() (string, error) {
	return cache("lab")
}

// ServersDir holds what hack/newer-servers.sh installs.
func ServersDir() (string, error) {
	return cache("servers")
}

func cache(name string) (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no folder for built binaries: %w; set HOME or XDG_CACHE_HOME", err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "redquake", name), nil
}
