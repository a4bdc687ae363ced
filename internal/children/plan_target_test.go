package children

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

func TestPlanTarget(t *testing.T) {
	test := loadTest(t, `
target:
  topology: Sentinel
  sentinel:
    service: {name: redis-sentinel}
    masterName: mymaster
    auth: {username: watcher, passwordSecretRef: {name: sentinel, key: password}}
    tls: {caSecretRef: {name: ca}, certSecretRef: {name: client}, serverName: sentinel.shop}
load: {users: 10, duration: 1m}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}]}
`)
	target := &test.Spec.Target
	want := plan.Target{
		Topology: plan.TopologySentinel,
		Sentinel: &plan.Sentinel{
			Addresses: []string{"redis-sentinel.shop.svc:26379"}, MasterName: "mymaster",
			Username: "watcher", PasswordFile: "/etc/redquake/sentinel-password/password",
			TLS: &plan.TLS{
				CAFile: "/etc/redquake/sentinel-ca/ca.crt", CertFile: "/etc/redquake/sentinel-cert/tls.crt",
				KeyFile: "/etc/redquake/sentinel-cert/tls.key", ServerName: "sentinel.shop",
			},
		},
	}
	if diff := cmp.Diff(want, planTarget("shop", target, nil)); diff != "" {
		t.Error(diff)
	}
	mounted := map[string]string{}
	pod := LoadJob(test, "checkout-cache-plan", "image", FixedUserIDs).Spec.Template.Spec
	for _, m := range pod.Containers[0].VolumeMounts {
		mounted[m.Name] = m.MountPath
	}
	for name, dir := range map[string]string{
		"sentinel-password": sentinelPasswordDir,
		"sentinel-ca":       sentinelCADir,
		"sentinel-cert":     sentinelCertDir,
	} {
		if mounted[name] != dir {
			t.Errorf("%s is mounted at %q, not %s: %v", name, mounted[name], dir, mounted)
		}
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
}

func TestPlanClient(t *testing.T) {
	test := loadTest(t, `
target: {addresses: ["a:1"]}
client: {driver: RedisPy, options: {socket_timeout: 0.5, retry: {retries: 7}, name: x}}
load: {users: 10, duration: 1m}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}]}
`)
	want := plan.Client{
		Connections: 10, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: time.Second, Protocol: 3,
		ReadFrom: plan.ReadPrimary, Mode: plan.Dedicated, Driver: plan.RedisPyDriver,
		Options: plan.Options{"socket_timeout": 0.5, "retry": map[string]any{"retries": int64(7)}, "name": "x"},
		Adapter: &plan.Adapter{Socket: "/run/redquake/client.sock"},
	}
	if diff := cmp.Diff(want, planClient(&test.Spec)); diff != "" {
		t.Error(diff)
	}
}

// Connections and timeout fit the workload: those of an API or a database follow the users, whatever Redis gets.
func TestDefaultsOfTheClient(t *testing.T) {
	const commands, http = `{commands: [{name: incr, command: [INCR, "{key}"]}]}`, `{http: {url: "http://shop"}}`
	const cacheAside = `{cacheAside: {database: {driver: mysql, dsnSecretRef: {name: a, key: b}, query: "SELECT ?"}}}`
	for _, tt := range []struct {
		load, pods, client, workload string
		connections                  int
		redis, operation             time.Duration
	}{
		{"users: 1000", "2", "{}", commands, 50, time.Second, time.Second},
		{"users: 1001", "2", "{}", http, 501, time.Second, 30 * time.Second},
		{"users: 40", "1", "{}", cacheAside, 40, time.Second, 30 * time.Second},
		{"users: 40", "1", "{connections: 20, requestTimeout: 5s}", cacheAside, 20, 5 * time.Second, 5 * time.Second},
		{"users: 1000000", "2", "{}", http, 10_000, time.Second, 30 * time.Second},
		{"rate: 100", "1", "{}", http, 50, time.Second, 30 * time.Second},
		{"rate: 100, users: 7", "1", "{}", http, 7, time.Second, 30 * time.Second},
	} {
		made, err := Plan(loadTest(t,
			fmt.Sprintf(
				"target: {addresses: [\"a:1\"]}\nload: {%s, duration: 1m}\npods: {count: %s}\nclient: %s\nworkload: %s\n",
				tt.load, tt.pods, tt.client, tt.workload)), addresses)
		if err != nil {
			t.Fatal(err)
		}
		if c := made.Client; c.Connections != tt.connections || c.RequestTimeout != tt.redis ||
			made.OperationTimeout() != tt.operation {
			t.Errorf("%+v: %d connections, %v for Redis, %v for an operation", tt, c.Connections, c.RequestTimeout,
				made.OperationTimeout())
		}
	}
	stages, err := Plan(loadTest(t,
		"target: {addresses: [\"a:1\"]}\nload: {stages: [{duration: 5s, users: 5}, {duration: 5s, users: 90}]}\nworkload: "+
			http), addresses)
	if err != nil || stages.Client.Connections != 90 {
		t.Errorf("%+v, %v; want the most users of any stage", stages, err)
	}
}

// Without a target there is nothing to probe and no INFO to read.
func TestPlanWithoutTarget(t *testing.T) {
	const load = "load: {users: 10, duration: 1m}\n"
	for name, workload := range map[string]string{
		"http":     `{http: {url: "http://shop"}}`,
		"database": `{cacheAside: {mode: DatabaseOnly, database: {driver: mysql, dsnSecretRef: {name: a, key: b}, query: "SELECT ?"}}}`,
	} {
		test := loadTest(t, load+"workload: "+workload)
		made, err := Plan(test, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if made.Target.IsSet() || made.Probe.Rate != 0 || made.Info != 0 {
			t.Errorf("%s: %+v, %+v, INFO every %v", name, made.Target, made.Probe, made.Info)
		}
		test.Spec.Target.Service = &v1alpha1.ServiceReference{Name: "redis", Port: 6379}
		if _, err := Plan(test, nil); err == nil {
			t.Errorf("%s: a target that was not found is accepted", name)
		}
	}
}
