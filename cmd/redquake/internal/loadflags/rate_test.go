package loadflags

import (
	"math"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestRates: rates below 1/s are whole numbers of a longer time.
func TestRates(t *testing.T) {
	for text, want := range map[string]struct {
		number int32
		per    v1alpha1.RateUnit
		second float64
	}{
		"500":       {500, v1alpha1.PerSecond, 500},
		"500/s":     {500, v1alpha1.PerSecond, 500},
		"10k":       {10_000, v1alpha1.PerSecond, 10_000},
		"1.5k":      {1500, v1alpha1.PerSecond, 1500},
		"0.1M":      {100_000, v1alpha1.PerSecond, 100_000},
		"0.5":       {30, v1alpha1.PerMinute, 0.5},
		"1.5":       {90, v1alpha1.PerMinute, 1.5},
		"30/m":      {30, v1alpha1.PerMinute, 0.5},
		"0.1/m":     {6, v1alpha1.PerHour, 6.0 / 3600},
		"0.01":      {36, v1alpha1.PerHour, 0.01},
		"1/h":       {1, v1alpha1.PerHour, 1.0 / 3600},
		"6k/m":      {6000, v1alpha1.PerMinute, 100},
		"100000000": {100_000_000, v1alpha1.PerSecond, 1e8},
	} {
		var number int32
		var per v1alpha1.RateUnit
		if err := (&rate{&number, &per}).Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		shape := v1alpha1.LoadShape{RatePer: per}
		if second := shape.PerSecond(number); number != want.number || per != want.per ||
			math.Abs(second-want.second) > 1e-12 {
			t.Errorf("%s is %d per %s, %v/s; want %d per %s", text, number, per, second, want.number, want.per)
		}
	}
	for text, want := range map[string]string{
		"": "must be a number", "fast": "must be a number", "-1": "must be a number", "1e3": "must be a number",
		"10kk": "must be a number", "10/d": "must be a number", "0.0001": "between 1/h", "200M": "between 1/h",
		"0.3333": "no whole number of requests per hour", "1.00001": "no whole number of requests per hour",
	} {
		var number int32
		var per v1alpha1.RateUnit
		if err := (&rate{&number, &per}).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %d per %s, %v; want %q", text, number, per, err, want)
		}
	}
}

// TestPlanOfRates: the plan has requests per second, whatever the unit of the file or the flag.
func TestPlanOfRates(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	file := strings.Replace(`
apiVersion: redquake.dev/v1alpha1
kind: RedisLoadTest
metadata: {name: slow}
spec:
  target: {addresses: ["127.0.0.1:6379"]}
  load: {LOAD}
  workload: {commands: [{name: get, command: [GET, "{key}"]}]}
`, "LOAD", "ratePer: Minute, stages: [{rate: 30, duration: 10s}, {rate: 90, duration: 10s}]", 1)
	for _, tt := range []struct {
		text string
		args []string
		want float64
	}{
		{"", []string{"--rate", "0.5"}, 0.5},
		{"", []string{"--rate", "36/h"}, 0.01},
		{file, []string{"-f", "FILE", "--rate", "7"}, 7},
		{
			strings.Replace(file, "stages: [{rate: 30, duration: 10s}, {rate: 90, duration: 10s}]", "rate: 3, duration: 1m", 1),
			[]string{"-f", "FILE"},
			0.05,
		},
	} {
		plan, _, err := planOf(t, tt.text, tt.args...)
		if err != nil || plan.Shape.Rate != tt.want {
			t.Errorf("%q: %v, rate %v, want %v", tt.args, err, plan.Shape.Rate, tt.want)
		}
	}
	plan, _, err := planOf(t, file, "-f", "FILE")
	if err != nil || plan.Shape.Stages[0].Rate != 0.5 || plan.Shape.Stages[1].Rate != 1.5 {
		t.Errorf("%v, stages %+v", err, plan.Shape.Stages)
	}
}
