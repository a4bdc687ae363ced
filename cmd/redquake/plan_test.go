package main

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
)

// The plan of a load names its measured time without the one by which its faults may extend it.
func TestPlanOfALoad(t *testing.T) {
	text, err := os.ReadFile("../../config/samples/loadtest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for until, want := range map[time.Duration]string{
		0:               "  Time       3s ramp-up, 5s warm-up, 1m15s measured, it ends 1m23s after its start\n",
		3 * time.Minute: "  Time       3s ramp-up, 5s warm-up, 1m15s measured, it ends 1m23s after its start, up to 3m later until its faults have settled\n",
	} {
		var test v1alpha1.RedisLoadTest
		if err := manifest.Decode(text, &test); err != nil {
			t.Fatal(err)
		}
		test.Spec.Load.UntilFaultsSettle = nil
		if until > 0 {
			test.Spec.Load.UntilFaultsSettle = &metav1.Duration{Duration: until}
		}
		var out strings.Builder
		if err := planLoad(&out, &test); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("with untilFaultsSettle %s the plan is\n%swant\n%s", until, out.String(), want)
		}
	}
}
