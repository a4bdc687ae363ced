package operator

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/forward"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/kube"
)

const dashboardHelp = `Open the dashboard of the operator in a browser: a list of load tests, faults, experiments and
schedules, and a page for each, which follows it while it runs and is its report afterwards. It only
reads, and each page can be saved as one file.

The command forwards a port of this machine to the manager that leads, until Ctrl-C, and follows
when another one takes over. Only browsers with the address that it prints get in. The pages show
what the user of the kubeconfig may read: get on the object, and list on redisloadtests and
redisfaults of its namespace.

The manager knows the user by a bearer token. Where the kubeconfig has none, as with a client
certificate, a token of the ServiceAccount redquake-dashboard is requested, which may read the
objects of all namespaces and lasts for an hour.

Needed in the operator's namespace: get leases and pods, create pods/portforward, and for the
ServiceAccount create serviceaccounts/token. docs/dashboard.md says more, also how to serve the
dashboard behind an ingress.`

const dashboardExamples = `  # all objects that you may list
  {name} dashboard

  # the page of a load test, on a port of your choice
  {name} dashboard checkout-cache -n shop --port 9000

  # a fault, without a browser on this machine; as a ServiceAccount
  {name} dashboard redisfault/kill-primary -n shop --no-browser --service-account redquake-dashboard`

// dashboardFlags are the flags of `redquake dashboard`.
type dashboardFlags struct {
	cluster   cluster.Flags
	operator  string
	account   string
	port      int
	noBrowser bool
}

// NewDashboard returns the command dashboard. name is that of the program, as users call it.
func NewDashboard(name string, io cli.Streams) *cobra.Command {
	var flags dashboardFlags
	cmd := &cobra.Command{
		Use:     "dashboard [NAME] [flags]",
		Short:   "Open the pages of load tests, faults, experiments and schedules in a browser",
		Long:    dashboardHelp,
		Example: strings.ReplaceAll(dashboardExamples, "{name}", name),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.port < 0 || flags.port > 65535 {
				return fmt.Errorf("--port: %d is no port: 0 to 65535", flags.port)
			}
			if _, err := dashboardPath("", args); err != nil {
				return err
			}
			return cli.AsFailure(flags.run(cmd.Context(), args, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&flags.port, "port", 0, "`port` of this machine (default: any free one)")
	f.BoolVar(&flags.noBrowser, "no-browser", false, "only print the address")
	f.StringVar(&flags.account, "service-account", "",
		"`name` of a ServiceAccount of the operator's namespace to read as (default: the user of the "+
			"kubeconfig, or "+forward.ServiceAccount+" if that has no token)")
	f.StringVar(&flags.operator, "operator-namespace", "redquake-system",
		"`namespace` of the operator")
	flags.cluster.Register(f)
	return cmd
}

// dashboardPath is the path of the page of an object that the arguments name: a load test, or
// KIND/NAME.
func dashboardPath(namespace string, args []string) (string, error) {
	if len(args) == 0 {
		return "/", nil
	}
	kind, name, typed := strings.Cut(args[0], "/")
	if !typed {
		kind, name = kube.LoadTest.Name, args[0]
	}
	known, ok := kube.KindOf(kind)
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf(
			"%q is neither the name of a RedisLoadTest nor redisloadtest/NAME, redisfault/NAME, "+
				"redisexperiment/NAME or redisexperimentschedule/NAME", args[0])
	}
	return "/" + namespace + "/" + known.Resource + "/" + name, nil
}

// followEvery is how often the Lease is read while a browser is connected.
const followEvery = 5 * time.Second

func (f *dashboardFlags) run(ctx context.Context, args []string, io cli.Streams) error {
	config, namespace, err := f.cluster.Config()
	if err != nil {
		return err
	}
	path, err := dashboardPath(namespace, args)
	if err != nil {
		return err
	}
	operator, err := forward.NewOperator(config, f.operator)
	if err != nil {
		return err
	}
	identity, err := forward.NewIdentity(ctx, operator, f.account)
	if err != nil {
		return err
	}
	if _, err := operator.Leader(ctx); err != nil {
		return err
	}
	listener, err := forward.Listen(f.port)
	if err != nil {
		return err
	}
	tunnel := &forward.Tunnel{Operator: operator, Moved: func(pod string) {
		fmt.Fprintf(io.Err,
			"Connected to pod %s of namespace %s.\n", pod, f.operator)
	}}
	proxy := forward.NewProxy(listener, tunnel, identity, log.New(io.Err, "", 0))
	fmt.Fprintf(io.Err, "Reading as %s. Ctrl-C ends.\n", identity.Name)
	fmt.Fprintln(io.Out, proxy.URL(path))
	if !f.noBrowser {
		err := forward.OpenBrowser(ctx, proxy.URLOnce(path))
		if err != nil {
			fmt.Fprintf(io.Err, "Open the address above in a browser: %v.\n", err)
		}
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go tunnel.Follow(ctx, followEvery)
	err = server.Serve(listener)
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the dashboard: %w", err)
	}
	return nil // ended by Ctrl-C, as intended
}
