package result

import "testing"

func TestOnThisMachine(t *testing.T) {
	for text, want := range map[string]string{
		"9 users shared 2 connections; set client.connections to 9 per load pod, or fewer " +
			"users": "9 users shared 2 connections; set --connections to 9, or fewer users",
		"load pod 0 did not run for 1s. Use a second load pod on another node, a higher CPU limit, or a machine that is " +
			"less busy": "this process did not run for 1s. Use a machine that is less busy",
		"the busiest load pod used 3% of its CPU":             "this process used 3% of its CPU",
		"(it waited for the CPU of its node)":                 "(it waited for a CPU of the machine)",
		"load pod 0 used 1.00 cores of CPU":                   "this process used 1.00 cores of CPU",
		"load pod 0 was throttled by its CPU limit of 1 core": "this process was throttled by its CPU limit of 1 core",
	} {
		if got := OnThisMachine(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
