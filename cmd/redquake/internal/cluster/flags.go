// Package cluster connects commands with the cluster of a kubeconfig, and reads from it what
// archive holds.
package cluster

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/redquake/redquake/cmd/redquake/kube"
)

// Flags are the flags of commands that read from a cluster, as kubectl has them.
type Flags struct {
	kubeconfig, context, namespace string
}

// Register adds --namespace, --context and --kubeconfig.
func (f *Flags) Register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`namespace` (default: that of the context)")
	flags.StringVar(&f.context, "context", "",
		"`name` of the context in the kubeconfig (default: the current one)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"`file` with the access to the cluster (default: $KUBECONFIG, ~/.kube/config)")
}

// Config returns what the kubeconfig says of the access to the cluster, and the namespace that the
// flags or the context select.
func (f *Flags) Config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// Connect returns a client of the cluster, for that namespace. It makes no request.
func (f *Flags) Connect() (*kube.Client, error) {
	config, namespace, err := f.Config()
	if err != nil {
		return nil, err
	}
	return kube.New(config, namespace)
}
