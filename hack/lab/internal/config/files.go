// Package config renders the configuration files, command lines and certificates of the lab's
// programs.
// It reads nothing and writes nothing, so all of it is tested against golden files.
package config

import (
	"bytes"
	"embed"
	"fmt"
	"path/filepath"
	"text/template"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles,
	"templates/*"))

// NodeFiles are the configuration files of a node: absolute path to content. reservedMemory is
// withheld from pods.
func NodeFiles(state settings.State, node settings.Node, reservedMemory string) map[string][]byte {
	dir := state.NodeDir(node.Name)
	values := map[string]any{
		"Node":                  node,
		"Dir":                   dir,
		"PKI":                   state.PKI(),
		"Cgroup":                NodeCgroup(node.Name),
		"ReservedMemory":        reservedMemory,
		"PauseImage":            settings.PauseImage,
		"CNIBinDir":             settings.CNIBinDir,
		"HostsDir":              HostsDir(state, node.Name),
		"RegistryAddress":       registryAddress,
		"Bridge":                settings.Bridge,
		"ClusterNetwork":        settings.ClusterNetwork,
		"ControlPlaneIP":        settings.ControlPlaneIP,
		"KubeletPort":           settings.KubeletPort,
		"ReservedCPU":           settings.ReservedCPU,
		"MaxPods":               settings.MaxPods,
		"DNSServiceIP":          settings.DNSServiceIP,
		"ClusterDomain":         settings.ClusterDomain,
		"LeaseDuration":         settings.NodeLeaseDurationSeconds,
		"StatusUpdateFrequency": settings.NodeStatusUpdateFrequency,
	}
	return map[string][]byte{
		ContainerdConfig(state, node.Name): render("containerd.toml",
			values),
		filepath.Join(HostsDir(state, node.Name), "_default", "hosts.toml"): render("hosts.toml", values),
		filepath.Join(dir, "cni", "10-bridge.conflist"): render("cni.conflist",
			values),
		KubeletConfig(state, node.Name): render("kubelet.yaml",
			values),
	}
}

// ContainerdConfig is the path of a node's containerd configuration.
func ContainerdConfig(state settings.State, node string) string {
	return filepath.Join(state.NodeDir(node), "containerd.toml")
}

// HostsDir is the folder that tells a node's containerd which registry to pull from.
func HostsDir(state settings.State, node string) string {
	return filepath.Join(state.NodeDir(node), "certs.d")
}

// KubeletConfig is the path of a node's kubelet configuration.
func KubeletConfig(state settings.State, node string) string {
	return filepath.Join(state.NodeDir(node), "kubelet.yaml")
}

// NodeCgroup is the group that holds a node's pods.
func NodeCgroup(node string) string {
	return settings.CgroupRoot + "/" + node
}

// BaseManifests are the objects the lab itself needs in the cluster.
func BaseManifests() []byte {
	return render("base.yaml", map[string]any{
		"CSIDriver": settings.CSIDriver, "CoreDNSImage": settings.CoreDNSImage,
		"ControlPlaneIP": settings.ControlPlaneIP, "MetricsPort": settings.MetricsPort,
		"DNSServiceIP": settings.DNSServiceIP, "ClusterDomain": settings.ClusterDomain,
	})
}

// render panics on a template that does not fit its values: that is a mistake in this package,
// which its tests find.
func render(name string, values map[string]any) []byte {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, values); err != nil {
		panic(fmt.Sprintf("rendering %s: %v", name, err))
	}
	return b.Bytes()
}
