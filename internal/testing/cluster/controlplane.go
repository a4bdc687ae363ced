// Package cluster provides clusters for tests: real control planes, and stand-ins for the missing controllers.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// SharedVariable names the environment variable with the path of a kubeconfig: of a control plane with the project's
// CRDs that the packages of one test run share. hack/tools/controlplane sets it.
const SharedVariable = "REDQUAKE_TEST_KUBECONFIG"

// patience is how long a control plane may take to start, and a CRD to be served, on a busy machine.
const patience = 2 * time.Minute

// ControlPlane returns the control plane that SharedVariable names, or starts one. stop ends what was started. Packages
// that share one must work in separate namespaces and must not change cluster-scoped objects.
func ControlPlane() (config *rest.Config, stop func() error, err error) {
	if path := os.Getenv(SharedVariable); path != "" {
		config, err = clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", SharedVariable, err)
		}
		config.QPS, config.Burst = 500, 1000
		return config, func() error { return nil }, nil
	}
	env, err := StartControlPlane()
	if err != nil {
		return nil, nil, err
	}
	return env.Config, env.Stop, nil
}

// StartControlPlane starts a kube-apiserver and its etcd, of the folder that KUBEBUILDER_ASSETS names, with the
// project's CRDs and admission policies, and with the CRDs at the given paths. The caller stops it.
func StartControlPlane(crds ...string) (*envtest.Environment, error) {
	return StartControlPlaneWith(nil, crds...)
}

// StartControlPlaneWith is StartControlPlane with further flags of kube-apiserver, without their dashes.
func StartControlPlaneWith(flags map[string]string, crds ...string) (*envtest.Environment, error) {
	own, err := Path("config/crd/bases")
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		CRDDirectoryPaths: append([]string{own}, crds...), ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: patience},
	}
	// No quota is tested here, and a busy machine needs more than the 10 s that its evaluation may take.
	env.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "ResourceQuota")
	for name, value := range flags {
		env.ControlPlane.GetAPIServer().Configure().Set(name, value)
	}
	if _, err := env.Start(); err != nil {
		return nil, fmt.Errorf("start kube-apiserver and etcd of KUBEBUILDER_ASSETS=%q: %w", os.Getenv("KUBEBUILDER_ASSETS"),
			err)
	}
	env.Config.QPS, env.Config.Burst = 500, 1000
	if err := installPolicies(env.Config); err != nil {
		return nil, errors.Join(fmt.Errorf("install the admission policies: %w", err), env.Stop())
	}
	return env, nil
}

// Path returns a path in the repository: tests run in their package's folder, wherever that is.
func Path(elements ...string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(folder, "PROJECT"))
		if err == nil {
			return filepath.Join(append([]string{folder}, elements...)...), nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("the working directory is not in the repository: no parent folder has a PROJECT")
		}
		folder = parent
	}
}
