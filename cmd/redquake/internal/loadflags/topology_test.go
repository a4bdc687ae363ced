package loadflags

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/plan"
)

// parsed are the flags of a command line, and the load test that they make.
func parsed(t *testing.T, args ...string) (*Flags, *v1alpha1.RedisLoadTest) {
	t.Helper()
	f := &Flags{}
	set := pflag.NewFlagSet("load", pflag.ContinueOnError)
	f.Register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	test, err := f.LoadTest(cli.Streams{In: strings.NewReader(""), Err: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	return f, test
}

func TestTopologyFlags(t *testing.T) {
	f, test := parsed(t, "--topology", "Sentinel", "--sentinel", "a:1", "--sentinel", "b:2", "--master-name", "m",
		"--sentinel-username", "watcher",
		"--sentinel-password-file", "p", "--sentinel-tls", "--ca", "ca.crt", "--server-name", "redis")
	want := v1alpha1.RedisTarget{
		Topology: v1alpha1.TopologySentinel,
		Sentinel: &v1alpha1.SentinelTarget{Addresses: []string{"a:1", "b:2"}, MasterName: "m"},
	}
	if diff := cmp.Diff(want, test.Spec.Target); diff != "" {
		t.Error(diff)
	}
	to := &plan.Sentinel{}
	f.sentinelLogin(to)
	if diff := cmp.Diff(&plan.Sentinel{
		Username:     "watcher",
		PasswordFile: "p",
		TLS:          &plan.TLS{CAFile: "ca.crt", ServerName: "redis"},
	}, to); diff != "" {
		t.Error(diff)
	}
}

func TestClientFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want v1alpha1.LoadClient
	}{
		{
			[]string{
				"--read-from", "Any", "--mode", "Multiplexed", "--connection-max-age", "1m", "--retries", "2",
				"--added-latency", "5ms",
			},
			v1alpha1.LoadClient{
				ReadFrom:         v1alpha1.ReadFromAny,
				Mode:             v1alpha1.ClientMultiplexed,
				Retries:          2,
				ConnectionMaxAge: &metav1.Duration{Duration: time.Minute},
				AddedLatency:     &metav1.Duration{Duration: 5 * time.Millisecond},
			},
		},
		{
			[]string{
				"--driver", "GoRedis", "--driver-option", "MaxRetries=-1", "--driver-option", "DialTimeout=7s",
				"--driver-option", "a.b=true", "--driver-option", `a.c={"d": [1]}`, "--driver-option", "name=x=y",
			},
			v1alpha1.LoadClient{
				Driver: v1alpha1.DriverGoRedis,
				Options: &runtime.RawExtension{
					Raw: []byte(`{"DialTimeout":"7s","MaxRetries":-1,"a":{"b":true,"c":{"d":[1]}},"name":"x=y"}`),
				},
			},
		},
	} {
		_, test := parsed(t, c.args...)
		if diff := cmp.Diff(c.want, test.Spec.Client); diff != "" {
			t.Errorf("%q: %s", c.args, diff)
		}
	}
}

func TestTopologyFlagErrors(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	file := func(target string) string {
		return strings.Replace(clitest.LoadTestYAML, `{addresses: ["127.0.0.1:6379"]}`, target, 1)
	}
	for _, tc := range []struct {
		text string
		args []string
		want string
	}{
		{"", []string{"--sentinel", "a:1", "--address", "b:2"}, "exclude each other"},
		{"", []string{"--master-name", "m"}, "need --sentinel"},
		{"", []string{"--topology", "Ring"}, `--topology: "Ring": supported values: "Auto", `},
		{"", []string{"--topology", "Sentinel"}, "--topology Sentinel needs --sentinel"},
		{"", []string{"--topology", "Cluster", "--sentinel", "a:1"}, "--sentinel belongs to --topology Sentinel or Auto"},
		{"", []string{"--driver", "GoRedis", "--driver-option", "MaxRetries"}, `"MaxRetries" must be NAME=VALUE`},
		{"", []string{"--driver", "GoRedis", "--driver-option", "a=1", "--driver-option", "a.b=1"}, `"a.b=1" must be`},
		{"", []string{"--driver", "RedisPy"}, "--driver RedisPy needs --adapter"},
		{"", []string{"--driver", "RedisPy", "--adapter", `"x`}, "--adapter: "},
		{file("{sentinel: {service: {name: s}}}"), []string{"-f", "FILE"}, "pass --sentinel host:port"},
		{
			file(`{sentinel: {addresses: ["a:1"], auth: {passwordSecretRef: {name: a, key: b}}}}`),
			[]string{"-f", "FILE"},
			"pass --sentinel-password-file",
		},
		{file(`{sentinel: {addresses: ["a:1"], tls: {caSecretRef: {name: a}}}}`), []string{"-f", "FILE"}, "pass --ca"},
		{
			file(`{sentinel: {addresses: ["a:1"], tls: {certSecretRef: {name: a}}}}`),
			[]string{"-f", "FILE"},
			"pass --cert and --key",
		},
	} {
		_, _, err := planOf(t, tc.text, tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v %s: %v, want %q", tc.args, tc.text, err, tc.want)
		}
	}
}

// Each user of the flags has a connection, up to a limit, where nothing else says how many there are.
func TestConnectionsFollowUsers(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want int
	}{
		{nil, 50},
		{[]string{"--users", "4"}, 4},
		{[]string{"--users", "200"}, 200},
		{[]string{"--users", "5000"}, 1000},
		{[]string{"--users", "200", "--connections", "7"}, 7},
		{[]string{"--users", "200", "--mode", "Multiplexed"}, 50},
		{[]string{"--rate", "5"}, 50},
		{[]string{"--rate", "5", "--users", "200"}, 200},
		{[]string{"-f", "FILE"}, 50},
		{[]string{"-f", "FILE", "--users", "200"}, 200},
	} {
		got, _, err := planOf(t, clitest.LoadTestYAML, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got.Client.Connections != tt.want {
			t.Errorf("%q: %d connections, want %d", tt.args, got.Client.Connections, tt.want)
		}
	}
	inFile := strings.Replace(clitest.LoadTestYAML, "spec:", "spec:\n  client: {connections: 5}", 1)
	if got, _, err := planOf(t, inFile, "-f", "FILE", "--users", "200"); err != nil || got.Client.Connections != 5 {
		t.Errorf("connections of a file: %+v, %v", got, err)
	}
}
