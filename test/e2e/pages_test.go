//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	testcluster "github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/markdown"
)

var nameOfPage = regexp.MustCompile(`\btry\b`)

// TestGettingStarted runs the commands of the first page that a new user reads, as they stand but for the name of the
// namespace, and logs how long that takes.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	root, err := testcluster.Path()
	if err != nil {
		t.Fatal(err)
	}
	path, err := testcluster.Path("docs/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := &namespace{T: t, name: "e2e-try-" + suiteID, began: time.Now()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
		if err := client.IgnoreNotFound(cluster.Delete(ctx, own)); err != nil {
			t.Error(err)
		}
	})
	load, fault := &v1alpha1.RedisLoadTest{}, &v1alpha1.RedisFault{}
	for _, b := range markdown.Parse(path, string(text)).Blocks {
		for _, command := range b.Commands() {
			if strings.Contains(command, "delete namespace") {
				if !n.get("checkout-cache", load) || !n.get("kill-primary", fault) {
					t.Fatal("load and fault are not there")
				}
			}
			n.runCommand(root, command)
			if strings.Contains(command, "create namespace") {
				n.runCommand(root, "kubectl label namespace try "+labelScenario+"="+suiteID)
			}
		}
	}
	t.Logf("the page took %s; the load is %s, the fault %s", time.Since(n.began).Round(time.Second), load.Status.Verdict,
		fault.Status.Verdict)
	if load.Status.Verdict == "" || fault.Status.Verdict == "" || fault.Status.Impact == nil {
		t.Errorf("load: %+v\nfault: %+v", load.Status.Conditions, fault.Status.Conditions)
	}
}

// runCommand runs a command of a page in the root of the repository. One that watches ends when it has shown something.
func (n *namespace) runCommand(root, command string) {
	n.Helper()
	limit := 6 * time.Minute
	watches := strings.HasSuffix(command, " -w")
	if watches {
		limit = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(n.Context(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", nameOfPage.ReplaceAllString(command, n.name))
	c.Dir = root
	out, err := c.CombinedOutput()
	n.Logf("$ %s\n%s", command, out)
	if err != nil && !watches || len(out) == 0 {
		n.Errorf("%s: %v\n%s", command, err, out)
	}
}
