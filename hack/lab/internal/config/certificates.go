package config

import (
	"github.com/redquake/redquake/hack/lab/internal/pki"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Certificates are those of every component. Nodes are real system:node users, so the Node
// authorizer and NodeRestriction judge them as they would elsewhere.
func Certificates() []pki.Request {
	requests := []pki.Request{
		{
			Name: "apiserver", CommonName: "kube-apiserver",
			DNSNames: []string{
				"kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc." + settings.ClusterDomain, "localhost",
			},
			IPs: []string{settings.KubernetesSvcIP, settings.ControlPlaneIP, "127.0.0.1"},
		},
		{
			Name:         "apiserver-kubelet",
			CommonName:   "kube-apiserver-kubelet-client",
			Organization: "system:masters",
			Client:       true,
		},
		{Name: "front-proxy", CommonName: "front-proxy", Client: true},
		{
			Name:       "metrics-server",
			CommonName: "metrics-server",
			DNSNames:   []string{"metrics-server.kube-system.svc"},
			IPs:        []string{settings.ControlPlaneIP},
		},
		{Name: "admin", CommonName: "admin", Organization: "system:masters", Client: true},
		{Name: "controller-manager", CommonName: "system:kube-controller-manager", Client: true},
		{Name: "scheduler", CommonName: "system:kube-scheduler", Client: true},
		{Name: "proxy", CommonName: "system:kube-proxy", Client: true},
	}
	for _, n := range settings.Nodes {
		requests = append(requests, pki.Request{
			Name: n.Name, CommonName: "system:node:" + n.Name, Organization: "system:nodes", Client: true,
			DNSNames: []string{n.Name}, IPs: []string{n.IP},
		})
	}
	return requests
}

// Users are the certificates that get a kubeconfig.
func Users() []string {
	users := []string{"admin", "controller-manager", "scheduler", "proxy"}
	for _, n := range settings.Nodes {
		users = append(users, n.Name)
	}
	return users
}
