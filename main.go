// Command manager is the Redquake operator: it runs RedisLoadTests and RedisFaults.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/topology"
	"github.com/redquake/redquake/internal/version"
)

// settings are the manager's flags.
type settings struct {
	metricsAddress, probeAddress, image string
	leaderElect, secureMetrics          bool
	namespaces, home                    string
}

func main() {
	var s settings
	flag.StringVar(&s.image, "agent-image", os.Getenv("REDQUAKE_IMAGE"), "image of the load pods, unless a test names one; the operator's own. Also $REDQUAKE_IMAGE")
	flag.StringVar(&s.namespaces, "namespaces", os.Getenv("WATCH_NAMESPACE"), "comma-separated namespaces to watch; all where empty. Also $WATCH_NAMESPACE")
	flag.StringVar(&s.home, "namespace", os.Getenv("POD_NAMESPACE"), "the operator's own namespace: its annotation "+v1alpha1.AnnotationStop+"=true undoes and ends all faults. Also $POD_NAMESPACE")
	flag.StringVar(&s.metricsAddress, "metrics-bind-address", "0", "address of the metrics endpoint, such as :8443; 0 switches it off")
	flag.BoolVar(&s.secureMetrics, "metrics-secure", true, "serve metrics over HTTPS, to callers whom the API server lets read /metrics")
	flag.StringVar(&s.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.BoolVar(&s.leaderElect, "leader-elect", false, "let only one of several replicas work")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(s); err != nil {
		ctrl.Log.Error(err, "the manager ends")
		os.Exit(1)
	}
}

func run(s settings) error {
	if s.image == "" {
		return fmt.Errorf("no image for the load pods: set --agent-image or $REDQUAKE_IMAGE")
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	metrics := metricsserver.Options{BindAddress: s.metricsAddress, SecureServing: s.secureMetrics}
	if s.secureMetrics {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, Metrics: metrics, HealthProbeBindAddress: s.probeAddress,
		LeaderElection: s.leaderElect, LeaderElectionID: "redquake.redquake.dev", LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(15 * time.Second), RenewDeadline: new(10 * time.Second), RetryPeriod: new(2 * time.Second),
		Cache: cache.Options{DefaultNamespaces: watched(s.namespaces), DefaultTransform: cache.TransformStripManagedFields()},
		// Read one at a time, when needed: a cache would want to list and watch every Secret of the cluster.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Service{}, &discoveryv1.EndpointSlice{},
		}}},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	sessions := controllers.NewSessions()
	defer sessions.Close()
	tests := &controllers.RedisLoadTestReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("redisloadtest"),
		Clock: clock.RealClock{}, Sessions: sessions, Image: s.image,
	}
	if err := tests.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up RedisLoadTest: %w", err)
	}
	servers := topology.NewReal()
	defer servers.Close()
	faults := &controllers.RedisFaultReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("redisfault"),
		Clock: clock.RealClock{}, Sessions: sessions, Servers: servers, Home: s.home,
	}
	if err := faults.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up RedisFault: %w", err)
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", version.Version, "agentImage", s.image)
	return mgr.Start(ctrl.SetupSignalHandler())
}

// watched turns a comma-separated list into the cache's terms; nil means all namespaces.
func watched(namespaces string) map[string]cache.Config {
	var found map[string]cache.Config
	for name := range strings.SplitSeq(namespaces, ",") {
		if name = strings.TrimSpace(name); name != "" {
			if found == nil {
				found = map[string]cache.Config{}
			}
			found[name] = cache.Config{}
		}
	}
	return found
}
