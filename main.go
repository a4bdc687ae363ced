// Command manager is the Redquake operator: it runs RedisLoadTests, RedisFaults and
// RedisExperiments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zones

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	exported "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/controllers/dashboardserver"
	"github.com/redquake/redquake/controllers/loadpods"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/version"
)

// settings are the values of the manager's flags.
type settings struct {
	metricsAddress, probeAddress, image string
	dashboardAddress                    string
	leaderElect, secureMetrics          bool
	namespaces, namespace, pod          string
	faults                              []string // nil = as by default
	prometheusHosts, notifyHosts        string
	powerHookURL, powerHookFiles        string
}

func main() {
	var s settings
	flag.StringVar(&s.image, "agent-image", "",
		"image of the load pods, unless a test names one; where empty that of the operator's own pod")
	flag.StringVar(&s.namespaces, "namespaces", os.Getenv("WATCH_NAMESPACE"),
		"comma-separated namespaces to watch; all where empty. Also $WATCH_NAMESPACE")
	flag.StringVar(&s.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"the operator's own namespace: its annotation "+v1alpha1.AnnotationStop+
			"=true reverts and ends all faults, and the Lease of --leader-elect is there. Also $POD_NAMESPACE")
	flag.StringVar(&s.pod, "pod", os.Getenv("POD_NAME"),
		"the operator's own pod, in its namespace. Also $POD_NAME")
	flag.Func("faults", "comma-separated types of faults that may be injected: * is all that taint no node and delete "+
		"no data, NAME adds one, -NAME removes one; default *. Several of this flag are one list",
		func(list string) error {
			s.faults = append(s.faults, list)
			return nil
		})
	flag.StringVar(&s.metricsAddress, "metrics-bind-address", "0",
		"address of the metrics endpoint, such as :8443; 0 switches it off")
	flag.BoolVar(&s.secureMetrics, "metrics-secure", true,
		"serve metrics over HTTPS, to clients that are authorized to read /metrics")
	flag.StringVar(&s.dashboardAddress, "dashboard-bind-address", "0",
		"address of the dashboard, over HTTPS, such as :8082; 0 switches it off. Who may see what is "+
			"decided by TokenReviews and SubjectAccessReviews")
	flag.StringVar(&s.probeAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz")
	flag.BoolVar(&s.leaderElect, "leader-elect", false,
		"enable leader election, so that only one of several replicas reconciles")
	flag.StringVar(&s.prometheusHosts, "prometheus-hosts", "",
		"comma-separated hosts that the queries of stop conditions may be sent to, such as "+
			"prometheus.monitoring.svc, *.example.com or an address; where empty none, and no fault with a query begins")
	flag.StringVar(&s.notifyHosts, "notify-hosts", "",
		"comma-separated hosts that notifications of schedules may be sent to, such as "+
			"hooks.slack.com, *.example.com or an address; where empty none")
	flag.StringVar(&s.powerHookURL, "power-hook-url", "",
		"URL of the webhook that switches the power of nodes, for faults of type NodeLoss with method Power; where empty "+
			"no such fault begins")
	flag.StringVar(&s.powerHookFiles, "power-hook-files", "",
		"folder with what the power hook needs, such as that of a Secret: token, sent as a bearer token, and ca.crt, "+
			"which signs its certificate. Each may be missing")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	named := flag.Bool("version", false, "print the version of this build, and exit")
	flag.Parse()
	if *named {
		fmt.Println(version.Of("manager"))
		return
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(s); err != nil {
		ctrl.Log.Error(err, "manager exited")
		os.Exit(1)
	}
}

func run(s settings) error {
	if s.faults == nil {
		s.faults = []string{"*"}
	}
	faults, err := declared.SwitchedOn(strings.Join(s.faults, ","))
	if err != nil {
		return fmt.Errorf("--faults: %w", err)
	}
	queried, err := egress.ParseHosts(s.prometheusHosts)
	if err != nil {
		return fmt.Errorf("--prometheus-hosts: %w", err)
	}
	notified, err := egress.ParseHosts(s.notifyHosts)
	if err != nil {
		return fmt.Errorf("--notify-hosts: %w", err)
	}
	power, err := s.powerHook()
	if err != nil {
		return fmt.Errorf("--power-hook-url: %w", err)
	}
	metrics := metricsserver.Options{BindAddress: s.metricsAddress, SecureServing: s.secureMetrics}
	if s.secureMetrics {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	election, err := s.election()
	if err != nil {
		return err
	}
	config := paced(ctrl.GetConfigOrDie())
	if err := s.findImage(config); err != nil {
		return fmt.Errorf("no image for the load pods: %w", err)
	}
	loads := runs.NewRegistry()
	defer loads.Close()
	servers := topology.NewReal()
	defer servers.Close()
	sessions := faultrun.NewRegistry(nil)
	defer sessions.Close()
	counted := controllers.NewMetrics(time.Now, loads)
	if err := exported.Registry.Register(counted); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	var pages *dashboardserver.Server
	if s.dashboardAddress != "" && s.dashboardAddress != "0" {
		pages = &dashboardserver.Server{
			Address: s.dashboardAddress,
			Secure:  true,
			Log:     ctrl.Log.WithName("dashboard"),
		}
	}
	ctrl.Log.Info("starting", "version", version.Version, "agentImage", s.image, "faults", faults)
	process := controllers.Process{
		Config:        config,
		Election:      election,
		MetricsServer: metrics,
		ProbeAddress:  s.probeAddress,
		Settings: controllers.Settings{
			Image:             s.image,
			OperatorNamespace: s.namespace,
			Namespaces:        split(s.namespaces),
			Faults:            faults,
			Runs:              loads,
			Servers:           servers,
			Sessions:          sessions,
			Lookup:            net.DefaultResolver.LookupNetIP,
			Prometheus:        prometheus.Client{Hosts: queried},
			Notify:            notify.Client{Hosts: notified},
			Metrics:           counted,
			Dashboard:         pages,
			Power:             power,
			Pod:               s.pod,
		},
	}
	return process.Run(ctrl.SetupSignalHandler())
}

// findImage sets the image of the load pods, where no flag does, to that of the operator's own pod.
func (s *settings) findImage(config *rest.Config) error {
	if s.image != "" {
		return nil
	}
	if s.namespace == "" || s.pod == "" {
		return errors.New("set --agent-image, or $POD_NAMESPACE and $POD_NAME, by which the " +
			"operator finds its own pod")
	}
	api, err := client.New(config, client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		return err
	}
	s.image, err = loadpods.OwnImage(context.Background(), api,
		client.ObjectKey{Namespace: s.namespace, Name: s.pod})
	return err
}

// powerHook is the hook that the flags name; nil = they name none.
func (s *settings) powerHook() (contract.PowerHook, error) {
	if s.powerHookURL == "" {
		return nil, nil
	}
	return powerhook.New(s.powerHookURL, s.powerHookFiles)
}

// election returns how replicas elect the one that reconciles; nil = there is only one.
func (s *settings) election() (*controllers.Election, error) {
	if !s.leaderElect {
		return nil, nil
	}
	if s.namespace == "" {
		return nil, fmt.Errorf(
			"--leader-elect needs the namespace of the Lease: set --namespace or $POD_NAMESPACE")
	}
	return &controllers.Election{
		Namespace:     s.namespace,
		Name:          "redquake.redquake.dev",
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
	}, nil
}

// paced limits the manager's requests of each kind to the API server: so many that the reads of a
// revert of 1,000 targets take no more than a second, and that no fault of ours floods it. Workers
// wait for their requests, so there is never a queue of more than some tens.
func paced(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = 500, 1000
	return config
}

// split returns the names in a comma-separated list.
func split(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
