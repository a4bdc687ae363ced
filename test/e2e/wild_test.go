//go:build e2e

package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestDeploymentInTheWild breaks a Redis whose pods declare only a port of metrics and that listens with TLS on 6380
// beside plain 6379, in a namespace with a quota of CPU limits, by probes that must tolerate the taint of the only node
// that they select. A hook runs although the grace period is 0.
func TestDeploymentInTheWild(t *testing.T) {
	n := newNamespace(t, "wild")
	bothNodes.Lock()
	defer bothNodes.Unlock()
	n.create(certificateFor(t, "redis-tls", "redis."+n.name+".svc"))
	objects, err := readObjects(filepath.Join("testdata", "tls-beside-plain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		n.create(object)
	}
	before := n.podReady("redis-0", deployTime)
	node := n.taint(before.Spec.NodeName)

	pods := &v1alpha1.LoadPodTemplate{
		NodeSelector: map[string]string{corev1.LabelHostname: node},
		Tolerations:  []corev1.Toleration{{Key: "redquake.dev/e2e", Operator: corev1.TolerationOpExists}},
		Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("100m"),
				corev1.ResourceMemory: resource.MustParse("64Mi"),
			},
			Limits: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("1"),
				corev1.ResourceMemory: resource.MustParse("256Mi"),
			},
		},
		Labels: map[string]v1alpha1.PodLabelValue{"team": "checkout"},
	}
	broken := func(name string, target v1alpha1.RedisTarget, action v1alpha1.Action) *v1alpha1.RedisFault {
		fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		fault.Spec = v1alpha1.RedisFaultSpec{
			Target:           &target,
			ProbePods:        pods,
			Action:           action,
			RecoveryDeadline: *span(time.Minute),
			Trigger:          v1alpha1.FaultTrigger{After: span(13 * time.Second)},
		}
		n.create(fault)
		return n.waitFault(name, 3*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	}
	at := func(fault *v1alpha1.RedisFault, port string) {
		t.Helper()
		if hit := fault.Status.Targets; len(hit) != 1 || !strings.HasSuffix(hit[0].Address, ":"+port) ||
			hit[0].Container != "server" || fault.Status.Effect != v1alpha1.EffectConfirmed {
			t.Errorf("%s: %+v, %s (%s), want container server at port %s", fault.Name, hit, fault.Status.Effect,
				fault.Status.EffectEvidence, port)
		}
	}

	tls := v1alpha1.RedisTarget{
		Service:   &v1alpha1.ServiceReference{Name: "redis", Port: 6380},
		TLS:       &v1alpha1.RedisTLS{CASecretRef: &v1alpha1.SecretReference{Name: "redis-tls"}},
		Container: "server",
	}
	at(broken("by-tls", tls, v1alpha1.Action{Type: v1alpha1.FaultClientKill}), "6380")
	plain := v1alpha1.RedisTarget{
		Service:     &v1alpha1.ServiceReference{Name: "redis-plain"},
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
		Container:   "server",
		PodPort:     6379,
	}
	service := &corev1.Service{}
	n.get("redis-plain", service)
	server := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(service.Spec.ClusterIP, "6379")})
	defer func() { _ = server.Close() }()
	// A kubelet grants a hook two seconds, in which a busy machine may not even have started it.
	ran, tries := false, []string{}
	for attempt := 0; attempt < 3 && !ran; attempt++ {
		killed := broken(fmt.Sprintf("by-port-%d", attempt), plain, v1alpha1.Action{
			Type:    v1alpha1.FaultPodKill,
			PodKill: &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))},
		})
		at(killed, "6379")
		if !strings.Contains(strings.Join(killed.Status.Warnings, " "), "preStop hook") {
			t.Errorf("the warnings %q do not name the hook", killed.Status.Warnings)
		}
		n.podReady("redis-0", deployTime)
		value, err := server.Get(t.Context(), "hook").Result()
		ran, tries = value == "ran", append(tries, fmt.Sprintf("%q (%v)", value, err))
	}
	if !ran {
		t.Errorf("hook is %s: the preStop hook did not run with grace period 0", strings.Join(tries, ", then "))
	}
	for _, probe := range []string{"by-tls-probe", "by-port-0-probe"} {
		test := &v1alpha1.RedisLoadTest{}
		if !n.get(probe, test) || test.Spec.Pods.Labels["team"] != "checkout" ||
			test.Spec.Pods.NodeSelector[corev1.LabelHostname] != node {
			t.Errorf("%s: pods %+v", probe, test.Spec.Pods)
		}
	}
}

// taint keeps pods from a node other than the given one until the end of the test, and returns its name.
func (n *namespace) taint(other string) string {
	n.Helper()
	var nodes corev1.NodeList
	if err := cluster.List(n.Context(), &nodes); err != nil {
		n.Fatal(err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Name == other {
			continue
		}
		n.patch(node, `{"spec":{"taints":[{"key":"redquake.dev/e2e","effect":"NoSchedule"}]}}`)
		n.Cleanup(func() {
			if err := cluster.Patch(context.WithoutCancel(n.Context()), node,
				client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"taints":null}}`))); err != nil {
				n.Error(err)
			}
		})
		return node.Name
	}
	n.Fatal("there is no second node")
	return ""
}

// certificateFor is a Secret with a certificate that signs itself, for a host.
func certificateFor(t *testing.T, name, host string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: host},
		DNSNames:              []string{host},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{
		"ca.crt": cert, "tls.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
}
