//go:build e2e

// Package e2e_test runs scenarios on a real cluster: real kubelets, real pods, a real Redis. `make e2e` boots the lab
// and runs TestSmoke there, `make e2e-full` all other tests. A scenario is a function that both may call.
// One operator serves all tests; each test has its own namespace. Of the full tests, those whose figures other tests
// would distort, and those that change the whole cluster, run one after the other; the rest (t.Parallel) at the end and
// in parallel.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/await"
)

// withoutOperator is the environment variable by which the test of installations gets a cluster without one.
const withoutOperator = "REDQUAKE_E2E_WITHOUT_OPERATOR"

// cluster is the connection that all tests share.
var cluster connection

type connection struct {
	client.WithWatch
	clientset *kubernetes.Clientset
	config    *rest.Config
}

func TestMain(m *testing.M) {
	if address := os.Getenv(watcherAddress); address != "" {
		os.Exit(watchRedis(address, os.Stdout))
	}
	os.Exit(suite(m))
}

// suite installs the operator, runs the tests, and checks that nothing of them is left.
func suite(m *testing.M) int {
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard))) // what matters is in the objects and in the operator's log
	ctx := context.Background()
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "connect to the cluster (is KUBECONFIG set? run `make e2e`):", err)
		return 1
	}
	manifests := os.Getenv("REDQUAKE_E2E_INSTALL")
	if manifests == "" {
		fmt.Fprintln(os.Stderr,
			"REDQUAKE_E2E_INSTALL must name the operator's manifests (build/install.yaml); `make e2e` sets it")
		return 1
	}
	if os.Getenv(withoutOperator) == "" {
		if err := deployOperator(ctx, manifests); err != nil {
			fmt.Fprintln(os.Stderr, "deploy the operator:", err)
			return 1
		}
		if err := deleteEarlierRuns(ctx, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "delete what an earlier run left:", err)
			return 1
		}
	}
	code := m.Run()
	if file := os.Getenv(figuresFile); file != "" {
		if err := keepFigures(os.Stdout, file); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: keep the figures:", err)
			code = 1
		}
	}
	if err := waitNamespacesDeleted(ctx, 5*time.Minute); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: after the tests:", err)
		return 1
	}
	return code
}

func connect() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	if err := errors.Join(v1alpha1.AddToScheme(clientgoscheme.Scheme),
		object.AddToScheme(clientgoscheme.Scheme)); err != nil {
		return err
	}
	cluster.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return err
	}
	cluster.config = config
	cluster.clientset, err = kubernetes.NewForConfig(config)
	return err
}

// deleteEarlierRuns removes the namespaces of a run that did not come to its end, as when its machine was switched off:
// the lab keeps its objects, and the loads in them would run beside this run's tests. The operator must run, as it
// removes the finalizers.
func deleteEarlierRuns(ctx context.Context, out io.Writer) error {
	var earlier corev1.NamespaceList
	if err := cluster.List(ctx, &earlier, client.HasLabels{labelScenario}); err != nil {
		return err
	}
	for i := range earlier.Items {
		fmt.Fprintf(out, "namespace %s is of an earlier run: it is deleted first\n", earlier.Items[i].Name)
		if err := client.IgnoreNotFound(cluster.Delete(ctx, &earlier.Items[i])); err != nil {
			return err
		}
	}
	return waitNamespacesDeleted(ctx, 5*time.Minute)
}

// waitNamespacesDeleted waits until the tests' namespaces no longer exist: an object with a remaining finalizer would
// block that.
func waitNamespacesDeleted(ctx context.Context, within time.Duration) error {
	return await.Try(ctx, within, func() error {
		var left corev1.NamespaceList
		if err := cluster.List(ctx, &left, client.HasLabels{labelScenario}); err != nil {
			return err
		}
		if len(left.Items) == 0 {
			return nil
		}
		return fmt.Errorf("namespace %s is still there after %s: %v", left.Items[0].Name, within,
			left.Items[0].Status.Conditions)
	})
}
