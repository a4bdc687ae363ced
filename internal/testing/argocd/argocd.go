// Package argocd runs a real Argo CD in tests: an application controller and a repo server, with
// Redis and a Git repository.
package argocd

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/installed"
	"github.com/redquake/redquake/internal/testing/redistest"
)

const namespace = "argocd"

// Argo is an Argo CD of a test.
type Argo struct {
	Kubeconfig string // of a user who may do all, as Argo CD may

	t          testing.TB
	client     client.Client
	program    string
	repository string
	folder     string // with the logs
}

// Start starts an Argo CD on a cluster until the test ends. It deletes there what it creates. The
// program and the folder of its CRDs are those of REDQUAKE_ARGOCD and REDQUAKE_ARGOCD_CRDS.
func Start(t testing.TB, config *rest.Config, to client.Client) *Argo {
	t.Helper()
	program, crds := os.Getenv("REDQUAKE_ARGOCD"), os.Getenv("REDQUAKE_ARGOCD_CRDS")
	if program == "" || crds == "" {
		t.Fatal("REDQUAKE_ARGOCD and REDQUAKE_ARGOCD_CRDS must be set: make argocd and make e2e-installation do it")
	}
	a := &Argo{
		t:       t,
		client:  to,
		program: program,
		folder:  t.TempDir(),
	}
	a.repository = filepath.Join(a.folder, "repository")
	a.Kubeconfig = filepath.Join(a.folder, "kubeconfig")
	a.must(clientcmd.WriteToFile(kubeconfigOf(config), a.Kubeconfig))
	a.createKinds(crds)
	a.createSettings()
	a.git("init", "--quiet", "--initial-branch=main", a.repository)
	store, repo := a.freeAddress(), a.freeAddress()
	host, port, _ := net.SplitHostPort(store)
	a.StartProcess("redis", exec.Command(redistest.ServerProgram(t), "--bind", host, "--port", port, "--save", "", "--dir",
		a.folder))
	host, port, _ = net.SplitHostPort(repo)
	a.StartProcess("argocd-repo-server", a.Command("argocd-repo-server", "--logformat", "text", "--disable-tls",
		"--address", host, "--port", port, "--metrics-port", a.freePort(), "--redis", store))
	a.StartProcess("argocd-application-controller", a.Command("argocd-application-controller", "--logformat", "text",
		"--kubeconfig", a.Kubeconfig, "--namespace", namespace, "--repo-server", repo, "--repo-server-plaintext",
		"--metrics-port", a.freePort(), "--redis", store, "--app-resync", "5"))
	a.awaitProjects()
	return a
}

// kubeconfigOf is the file of a configuration.
func kubeconfigOf(c *rest.Config) clientcmdapi.Config {
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{
		Server:                   c.Host,
		CertificateAuthority:     c.CAFile,
		CertificateAuthorityData: c.CAData,
	}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificate:     c.CertFile,
		ClientCertificateData: c.CertData,
		ClientKey:             c.KeyFile,
		ClientKeyData:         c.KeyData,
		Token:                 c.BearerToken,
	}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: namespace}
	file.CurrentContext = "test"
	return *file
}

// createKinds creates Argo CD's CRDs, and waits until they are served.
func (a *Argo) createKinds(folder string) {
	a.t.Helper()
	for _, name := range []string{"application-crd.yaml", "appproject-crd.yaml", "applicationset-crd.yaml"} {
		a.create(a.read(filepath.Join(folder, name)))
	}
	await.Until(a.t, "Argo CD's kinds are served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("argoproj.io/v1alpha1")
		list.SetKind("AppProjectList")
		return a.client.List(a.t.Context(), list)
	})
}

// createSettings creates Argo CD's settings: those of config/argocd, as users apply them.
func (a *Argo) createSettings() {
	a.t.Helper()
	a.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	settings, err := cluster.Path("config", "argocd", "argocd-cm.yaml")
	a.must(err)
	a.create(inArgo(a.read(settings)))
	part := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	for _, name := range []string{
		"argocd-rbac-cm", "argocd-cmd-params-cm", "argocd-ssh-known-hosts-cm",
		"argocd-tls-certs-cm", "argocd-gpg-keys-cm",
	} {
		a.create(inArgo(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: part}}))
	}
	a.create(inArgo(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-secret", Labels: part},
		StringData: map[string]string{
			"server.secretkey": base64.StdEncoding.EncodeToString([]byte("of a test")),
		},
	}))
	a.create(inArgo(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{
			"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}},
			"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
		},
	}}))
}

func inArgo[T client.Object](object T) T {
	object.SetNamespace(namespace)
	return object
}

// awaitProjects waits until Argo CD's controller knows its project: a sync that it begins before
// fails, and is not tried again.
func (a *Argo) awaitProjects() {
	a.t.Helper()
	a.Commit("first", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}})
	app := a.NewApplication("first", "default")
	a.Create(app)
	await.Within(a.t, 4*time.Minute, "Argo CD compares the first application", func() error {
		a.get(app)
		status, _, _ := unstructured.NestedString(app.Object, "status", "sync", "status")
		return await.That(status == "OutOfSync", "%v", app.Object["status"])
	})
}

// Commit stores manifests in a folder of the repository.
func (a *Argo) Commit(folder string, objects ...client.Object) {
	a.t.Helper()
	var all bytes.Buffer
	for _, object := range objects {
		if object.GetObjectKind().GroupVersionKind().Empty() {
			kinds, _, err := a.client.Scheme().ObjectKinds(object)
			a.must(err)
			object.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
		text, err := yaml.Marshal(object)
		a.must(err)
		all.WriteString("---\n")
		all.Write(text)
	}
	folder = filepath.Join(a.repository, folder)
	a.must(errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "all.yaml"), all.Bytes(), 0o600)))
	a.commitAll()
}

// CommitFolder stores a copy of a folder in the repository.
func (a *Argo) CommitFolder(folder, from string) {
	a.t.Helper()
	a.must(os.CopyFS(filepath.Join(a.repository, folder), os.DirFS(from)))
	a.commitAll()
}

func (a *Argo) commitAll() {
	a.t.Helper()
	a.git("-C", a.repository, "add", ".")
	a.git("-C", a.repository, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m",
		"a change")
}

func (a *Argo) git(words ...string) {
	a.t.Helper()
	if text, err := exec.Command("git", words...).CombinedOutput(); err != nil {
		a.t.Fatalf("git %v: %v: %s", words, err, text)
	}
}

// Command is a command of Argo CD's program, which has several names.
func (a *Argo) Command(name string, arguments ...string) *exec.Cmd {
	a.t.Helper()
	command := exec.Command(a.program, arguments...)
	command.Env = append(os.Environ(), "ARGOCD_BINARY_NAME="+name, "ARGOCD_GPG_ENABLED=false", "KUBECONFIG="+a.Kubeconfig,
		"HOME="+a.folder, "ARGOCD_FAKE_IN_CLUSTER=true",
		"PATH="+filepath.Dir(installed.Program(a.t, "helm3"))+":"+os.Getenv("PATH")) // which it calls as helm
	return command
}

// StartProcess runs a program until the test ends. Its log is shown if the test fails.
func (a *Argo) StartProcess(name string, command *exec.Cmd) {
	a.t.Helper()
	log, err := os.Create(filepath.Join(a.folder, name+".log"))
	a.must(err)
	command.Stdout, command.Stderr = log, log
	a.must(command.Start())
	a.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && a.t.Failed() {
			a.t.Logf("%s:\n%s", name, text[max(0, len(text)-6000):])
		}
	})
}

// freeAddress is an address that nobody listens on.
func (a *Argo) freeAddress() string {
	a.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	a.must(err)
	defer listener.Close()
	return listener.Addr().String()
}

func (a *Argo) freePort() string {
	_, port, _ := net.SplitHostPort(a.freeAddress())
	return port
}

// read returns the object of a file.
func (a *Argo) read(path string) *unstructured.Unstructured {
	a.t.Helper()
	text, err := os.ReadFile(path)
	a.must(err)
	object := &unstructured.Unstructured{}
	a.must(yaml.Unmarshal(text, &object.Object))
	return object
}

// create creates an object of Argo CD until the test ends. One that an interrupted test left is as
// good.
func (a *Argo) create(object client.Object) {
	a.t.Helper()
	if err := a.client.Create(a.t.Context(), object); !apierrors.IsAlreadyExists(err) {
		a.must(err)
	}
	a.deleteAtEnd(object)
}

func (a *Argo) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}
