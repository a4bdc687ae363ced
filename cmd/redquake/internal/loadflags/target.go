package loadflags

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/manifest"
	"github.com/redquake/redquake/internal/plan"
)

// Plan returns the plan of the test for this process instead of pods, with the credentials of the
// flags instead of Secrets. notes are the differences from a run in the cluster.
func (f *Flags) Plan(test *v1alpha1.RedisLoadTest) (plan *plan.Plan, notes []string, err error) {
	if test.Spec.Target.IsSet() {
		if err := f.checkTarget(&test.Spec.Target); err != nil {
			return nil, nil, err
		}
	}
	if err := admit(test); err != nil {
		return nil, nil, f.Named(err)
	}
	pods := int(test.Spec.Pods.Count)
	test.Spec.Pods.Count = 1
	test.Spec.Load.UntilFaultsSettle = nil // no fault hits a load without a cluster
	if plan, err = children.Plan(test, f.planned(test.Spec.Target.Addresses)); err != nil {
		return nil, nil, f.Named(err)
	}
	if err := f.useAdapter(&plan.Client); err != nil {
		return nil, nil, err
	}
	if pods > 1 {
		// otherwise they are as many as users need
		if test.Spec.Client.Connections > 0 || !plan.Workload.IsRemote() {
			plan.Client.Connections *= pods
		}
		notes = append(notes,
			fmt.Sprintf("the load of %d pods was sent by this process, over %d connections", pods,
				plan.Client.Connections))
	}
	if len(test.Spec.Observe.Pods) > 0 {
		notes = append(notes,
			"the pods of spec.observe.pods were not observed: there is no metrics API outside of a cluster")
	}
	notes = append(notes, unwritten(&plan.Workload)...)
	plan.Run = test.Name
	if err := f.login(&plan.Target, &test.Spec.Target); err != nil {
		return nil, nil, err
	}
	if err := f.databaseLogin(plan.Workload.CacheAside); err != nil {
		return nil, nil, err
	}
	return plan, notes, nil
}

// admit sets defaults and checks the test. Both go through JSON, which would change the bytes of
// commands that are not UTF-8.
func admit(test *v1alpha1.RedisLoadTest) error {
	given := slices.Clone(test.Spec.Workload.Commands)
	if err := manifest.Admit(test); err != nil {
		return err
	}
	for i := range given {
		test.Spec.Workload.Commands[i].Command = given[i].Command
	}
	return nil
}

// inFile adds the name of the file to err, if there is one.
func (f *Flags) inFile(err error) error {
	if f.file == "" {
		return err
	}
	return fmt.Errorf("%s: %w", f.file, err)
}

// checkTarget returns an error if the file's target needs a cluster to be resolved.
func (f *Flags) checkTarget(target *v1alpha1.RedisTarget) error {
	if len(target.Addresses) == 0 && target.Sentinel == nil {
		return fmt.Errorf(
			"%s: spec.target: names no addresses, and a Service or pods are not resolved outside of a cluster: "+
				"pass --address host:port, for instance of a `kubectl port-forward`", f.file)
	}
	return f.checkSentinels(target)
}

// login replaces the paths of files in load pods by those of the flags.
func (f *Flags) login(to *plan.Target, target *v1alpha1.RedisTarget) error {
	f.sentinelLogin(to.Sentinel)
	to.PasswordFile = f.passwordFile
	if f.changed("username") {
		to.Username = f.username
	}
	if target.Auth != nil && f.passwordFile == "" && f.password == "" &&
		os.Getenv(PasswordVariable) == "" {
		return fmt.Errorf(
			"%s: spec.target.auth.passwordSecretRef: Secrets are not read outside of a cluster: pass "+
				"--password-file or set $%s", f.file, PasswordVariable)
	}
	if to.TLS == nil {
		if !f.wantsTLS() {
			return nil
		}
		to.TLS = &plan.TLS{}
	}
	err := f.checkTLSSecrets("spec.target.tls", target.TLS)
	if err != nil {
		return err
	}
	f.applyTLS(to.TLS)
	return nil
}

// databaseLogin replaces the path of the data source name in load pods by that of the flag.
func (f *Flags) databaseLogin(to *plan.CacheAside) error {
	switch {
	case to == nil && f.dsnFile != "":
		return errors.New("--dsn-file needs a file with workload.cacheAside")
	case to == nil:
		return nil
	case f.dsnFile == "":
		return fmt.Errorf(
			"%s: spec.workload.cacheAside.database.dsnSecretRef: Secrets are not read outside of a cluster: pass --dsn-file",
			f.file)
	}
	to.Database.DSNFile = f.dsnFile
	return nil
}

func (f *Flags) wantsTLS() bool {
	return f.tls || f.insecure || f.ca != "" || f.cert != "" || f.serverName != ""
}

// Options pass the password in the environment to the runner: a plan contains only the path of a
// password file.
func (f *Flags) Options() []engine.Option {
	options := []engine.Option{engine.WithPatience(f.wait)}
	password := cmp.Or(f.password, os.Getenv(PasswordVariable))
	if password != "" && f.passwordFile == "" {
		options = append(options, engine.WithPassword(password))
	}
	if f.unrecorded {
		options = append(options, engine.WithoutRecording())
	}
	return options
}
