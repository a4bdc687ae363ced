package config

import (
	"fmt"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Daemon is one long-running program: Program is the name of its binary.
type Daemon struct {
	Name, Program string
	Args          []string
}

// Names of the daemons, as logs and `lab status` show them.
const (
	Registry          = "registry"
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Proxy             = "kube-proxy"
	CSIController     = "csi-controller"
	MetricsServer     = "metrics-server"
	Containerd        = "containerd"
	Kubelet           = "kubelet"
	CSINode           = "csi"
)

const etcdURL, etcdPeerURL = "http://127.0.0.1:2379", "http://127.0.0.1:2380"

// Server is the API server's address for clients in the lab's network namespace.
var Server = fmt.Sprintf("https://%s:%d", settings.ControlPlaneIP, settings.APIServerPort)

// registryAddress is where the nodes pull images from.
var registryAddress = fmt.Sprintf("%s:%d", settings.ControlPlaneIP, settings.RegistryPort)

// Store are the daemons everything else waits for.
func Store(state settings.State) []Daemon {
	pki := state.PKI()
	toleration := fmt.Sprint(settings.DefaultTolerationSeconds)
	return []Daemon{
		{Registry, "registry", []string{"--data=" + state.Images(), "--listen=" + registryAddress}},
		{Etcd, "etcd", []string{
			"--data-dir=" + state.Etcd(),
			"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + etcdPeerURL, "--initial-advertise-peer-urls=" + etcdPeerURL,
			"--initial-cluster=default=" + etcdPeerURL,
			"--unsafe-no-fsync", // a lab's data need not survive a power cut, its disk is often slow
			"--log-level=warn",
		}},
		{APIServer, "kube-apiserver", []string{
			"--etcd-servers=" + etcdURL,
			"--bind-address=" + settings.ControlPlaneIP, "--advertise-address=" + settings.ControlPlaneIP,
			fmt.Sprintf("--secure-port=%d", settings.APIServerPort),
			"--tls-cert-file=" + pki + "/apiserver.crt", "--tls-private-key-file=" + pki + "/apiserver.key",
			"--client-ca-file=" + pki + "/ca.crt",
			"--kubelet-client-certificate=" + pki + "/apiserver-kubelet.crt",
			"--kubelet-client-key=" + pki + "/apiserver-kubelet.key",
			"--kubelet-certificate-authority=" + pki + "/ca.crt",
			// otherwise exec and logs look up "node-b" in DNS
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-key-file=" + pki + "/sa.pub",
			"--service-account-signing-key-file=" + pki + "/sa.key",
			"--service-account-issuer=https://kubernetes.default.svc." + settings.ClusterDomain,
			"--service-cluster-ip-range=" + settings.ServiceNetwork,
			// How it authenticates itself to metrics-server, as an aggregated API.
			"--requestheader-client-ca-file=" + pki + "/ca.crt", "--requestheader-allowed-names=front-proxy",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + pki + "/front-proxy.crt",
			"--proxy-client-key-file=" + pki + "/front-proxy.key",
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--allow-privileged",
			"--default-not-ready-toleration-seconds=" + toleration,
			"--default-unreachable-toleration-seconds=" + toleration,
			"--profiling=false",
		}},
	}
}

// Control are the daemons that need the API server to answer.
func Control(state settings.State) []Daemon {
	pki := state.PKI()
	return []Daemon{
		{ControllerManager, "kube-controller-manager", append(clientFlags(state, "controller-manager"),
			"--service-account-private-key-file="+pki+"/sa.key", "--root-ca-file="+pki+"/ca.crt",
			"--cluster-signing-cert-file="+pki+"/ca.crt", "--cluster-signing-key-file="+pki+"/ca.key",
			"--use-service-account-credentials", "--allocate-node-cidrs=false", "--leader-elect=false",
			"--node-monitor-period=2s", "--node-monitor-grace-period="+settings.NodeMonitorGracePeriod,
		)},
		{Scheduler, "kube-scheduler", append(clientFlags(state, "scheduler"), "--leader-elect=false")},
		// One proxy serves both nodes, as they share the network namespace. It must be iptables mode: the
		// nftables mode makes hairpin rules only for pods of its own node. Conntrack limits are the
		// machine's and read-only here.
		{Proxy, "kube-proxy", []string{
			"--kubeconfig=" + state.Kubeconfig("proxy"), "--hostname-override=" + settings.Nodes[0].Name,
			"--proxy-mode=iptables", "--conntrack-max-per-core=0", "--conntrack-min=0",
			"--nodeport-addresses=" + settings.NodeNetwork,
		}},
		{CSIController, "labcsi", []string{
			"controller", "--kubeconfig=" + state.Kubeconfig("admin"), "--data=" + state.Volumes(),
		}},
		// Not in a pod: an aggregated API without a server keeps every namespace from being deleted, also
		// while its node is down.
		{MetricsServer, "metrics-server", append(clientFlags(state, "admin"),
			"--bind-address="+settings.ControlPlaneIP, fmt.Sprintf("--secure-port=%d", settings.MetricsPort),
			"--tls-cert-file="+pki+"/metrics-server.crt",
			"--tls-private-key-file="+pki+"/metrics-server.key",
			"--kubelet-certificate-authority="+pki+"/ca.crt", "--kubelet-preferred-address-types=InternalIP",
			"--metric-resolution=15s",
		)},
	}
}

// OnNode are the daemons of a node, in the order they are started.
func OnNode(state settings.State, node settings.Node) []Daemon {
	return []Daemon{
		{Containerd, "containerd", []string{"--config=" + ContainerdConfig(state, node.Name)}},
		{CSINode, "labcsi", []string{
			"node", "--node-id=" + node.Name, "--kubelet-root=/var/lib/kubelet", "--data=" + state.Volumes(),
		}},
		{Kubelet, "kubelet", []string{
			"--config=" + KubeletConfig(state, node.Name), "--kubeconfig=" + state.Kubeconfig(node.Name),
			"--hostname-override=" + node.Name, "--node-ip=" + node.IP,
			"--cert-dir=" + state.NodeDir(node.Name) + "/certificates", "--v=2",
		}},
	}
}

func clientFlags(state settings.State, user string) []string {
	file := state.Kubeconfig(user)
	return []string{
		"--kubeconfig=" + file, "--authentication-kubeconfig=" + file,
		"--authorization-kubeconfig=" + file,
	}
}
