package format

import (
	"math"
	"testing"
	"testing/quick"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestChange(t *testing.T) {
	for x, want := range map[float64]string{0.125: "+12.5%", -0.25: "-25%", 3.4: "+340%", 0: "0%", math.Inf(1): ""} {
		if got := Change(x); got != want {
			t.Errorf("Change(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	tests := []struct {
		in   time.Duration
		want string
	}{
		{0, "0s"},
		{437, "0.437us"},
		{31 * time.Microsecond, "31us"},
		{31_449, "31.4us"},
		{99_949, "99.9us"},
		{99_960, "0.1ms"},
		{412 * time.Microsecond, "0.412ms"},
		{410 * time.Microsecond, "0.41ms"},
		{1_904 * time.Microsecond, "1.9ms"},
		{999_400 * time.Microsecond, "999ms"},
		{999_600 * time.Microsecond, "1s"},
		{4_118 * time.Millisecond, "4.12s"},
		{1_912 * time.Millisecond, "1.91s"},
		{59_940 * time.Millisecond, "59.94s"},
		{12_347 * time.Millisecond, "12.35s"},
		{59_996 * time.Millisecond, "1m"},
		{134_260 * time.Millisecond, "2m14.3s"},
		{2 * time.Hour, "2h"},
		{2*time.Hour + 10*time.Minute, "2h10m"},
		{time.Hour + 30*time.Second, "1h0m30s"},
		{-1412 * time.Millisecond, "-1.41s"},
		{math.MinInt64, "-2562047h47m16.854775807s"},
	}
	for _, tt := range tests {
		if got := Duration(tt.in); got != tt.want {
			t.Errorf("Duration(%d) = %q, want %q", int64(tt.in), got, tt.want)
		}
	}
}

// Each text is short, and is parsed as nearly the same duration.
func TestDurationParses(t *testing.T) {
	property := func(n int64, shift uint8) bool {
		d := time.Duration(n >> (shift%40 + 4))
		text := Duration(d)
		back, err := time.ParseDuration(text)
		if err != nil || d.Abs() < time.Minute && len(text) > len("-0.0123us") {
			return false
		}
		return math.Abs(float64(back-d)) <= max(math.Abs(float64(d))*0.0051, 1)
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}

func TestShare(t *testing.T) {
	tests := []struct {
		in   float64
		want string
	}{
		{0, "0%"},
		{1, "100%"},
		{0.992, "99.2%"},
		{0.5, "50%"},
		{0.12345, "12.3%"},
		{0.001, "0.1%"},
		{0.00104, "0.1%"},
		{0.00012, "0.012%"},
		{0.9996, "99.96%"},
		{1e-6, "0.0001%"},
		{1 - 1e-6, "99.9999%"},
		{1e-12, "0.0000000001%"},
		{1.042, "104.2%"},
		{-0.03, "-3%"},
		{-1e-14, "0%"},
		{math.NaN(), ""},
		{math.Inf(1), ""},
	}
	for _, tt := range tests {
		if got := Share(tt.in); got != tt.want {
			t.Errorf("Share(%g) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestRate(t *testing.T) {
	tests := []struct {
		in   float64
		want string
	}{
		{0, "0"},
		{3012.41, "3012.4"},
		{2710, "2710"},
		{9.876, "9.88"},
		{9.999, "10"},
		{0.12345, "0.123"},
		{1e6 / 3, "333333.3"},
		{math.NaN(), ""},
	}
	for _, tt := range tests {
		if got := Rate(tt.in); got != tt.want {
			t.Errorf("Rate(%g) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestBytes(t *testing.T) {
	tests := []struct {
		in   int64
		want string
	}{
		{0, "0"},
		{4096, "4096"},
		{10 << 10, "10Ki"},
		{1_100_800, "1075Ki"},
		{12_897_485, "12.3Mi"},
		{1747 << 20, "1747Mi"},
		{-(20 << 20), "-20Mi"},
		{math.MaxInt64, "8192Pi"},
	}
	for _, tt := range tests {
		got := Bytes(tt.in)
		if got != tt.want {
			t.Errorf("Bytes(%d) = %q, want %q", tt.in, got, tt.want)
		}
		if _, err := resource.ParseQuantity(got); err != nil {
			t.Errorf("Bytes(%d) = %q is no quantity: %v", tt.in, got, err)
		}
	}
}

func TestMillicores(t *testing.T) {
	for in, want := range map[float64]string{0: "0m", 0.9301: "930m", 1.2529: "1253m", 16: "16000m"} {
		if got := Millicores(in); got != want {
			t.Errorf("Millicores(%g) = %q, want %q", in, got, want)
		}
	}
	if got := Millicores(math.NaN()); got != "" {
		t.Errorf("Millicores(NaN) = %q, want nothing", got)
	}
}
