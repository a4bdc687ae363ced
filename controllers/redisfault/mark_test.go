package redisfault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
)

// waiting is a fault of type External that has waited for its instant since t0 until now.
func waiting(now time.Time) *scope.Fault {
	at := metav1.NewMicroTime(t0)
	return &scope.Fault{
		Fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{StartTime: &at}},
		Now:   now,
		Test:  &v1alpha1.RedisLoadTest{},
	}
}

func TestMarkByAnnotation(t *testing.T) {
	t.Parallel()
	now := after(10 * time.Second)
	stamped := func(d time.Duration) string { return after(d).Format(time.RFC3339Nano) }
	for value, test := range map[string]struct {
		at   time.Time
		says string // if there is no mark
	}{
		"":                                    {at: now},
		"now":                                 {at: now},
		stamped(3 * time.Second):              {at: after(3 * time.Second)},
		stamped(0):                            {at: t0},
		stamped(10*time.Second + clocksApart): {at: now}, // of a clock that is ahead
		"2026-01-02T12:04:08.600000001+09:00": {at: after(3*time.Second + 1)},
		"2026-01-02T03:04:08Z":                {at: time.Date(2026, 1, 2, 3, 4, 8, 0, time.UTC)},
		stamped(-time.Nanosecond):             {says: "is before the wait for it began, at 2026-01-02T03:04:05.6Z"},
		stamped(13 * time.Second):             {says: "is in the future: it is 2026-01-02T03:04:15.6Z here"},
		"0000-01-01T00:00:00Z":                {says: "is before"},
		"9999-12-31T23:59:59.999999999-23:59": {says: "is in the future"},
		"Now":                                 {says: `"Now" is no instant: set one such as 2026-01-02T03:04:15.6Z, or now`},
		"now now":                             {says: "is no instant"},
		"1767323048":                          {says: "is no instant"},
		"2026-01-02":                          {says: "is no instant"},
		"2026-01-02T03:04:08":                 {says: "is no instant"},
		"2026-01-02T03:04":                    {says: "is no instant"},
		"2026-02-30T03:04:08Z":                {says: "is no instant"},
		"2026-01-02T24:00:00Z":                {says: "is no instant"},
		"2026-01-02T03:04:08Z\n":              {says: "is no instant"},
		"\x1b]0;owned\x07":                    {says: "is no instant"},
		"\xff\xfe\x00":                        {says: "is no instant"},
		strings.Repeat("9", 256<<10):          {says: "is no instant"},
		"2026-01-02T03:04:08." + strings.Repeat("0", 200<<10) + "Z": {says: "is no instant"},
	} {
		m, trouble := markBy(waiting(now), value)
		if test.says == "" && (m == nil || trouble != "" || !m.At.Equal(test.at) || m.By != v1alpha1.MarkedByAnnotation) {
			t.Errorf("%.60q: %+v, %s; want %s", value, m, trouble, test.at)
		}
		if test.says != "" && (m != nil || !strings.Contains(trouble, test.says) ||
			!strings.HasPrefix(trouble, "annotation redquake.dev/mark: ")) {
			t.Errorf("%.60q: %+v, %.300q; want %q", value, m, trouble, test.says)
		}
		if len(trouble) > 512 || m != nil && len(m.Why) > 512 {
			t.Errorf("%.60q: a message of %d bytes", value, len(trouble)+len(fmt.Sprint(m)))
		}
	}
}

// FuzzMark checks that an annotation is an instant of the wait, or a short message.
func FuzzMark(f *testing.F) {
	for _, seed := range []string{
		"", "now", "2026-01-02T03:04:08Z", "2026-01-02T03:04:08.123456789+09:00",
		"9999-12-31T23:59:60Z", "0000-01-01T00:00:00Z", "\xff", "1e9",
	} {
		f.Add(seed, int64(10*time.Second))
	}
	f.Fuzz(func(t *testing.T, value string, waited int64) {
		now := after(time.Duration(max(0, min(waited, int64(24*time.Hour)))))
		m, trouble := markBy(waiting(now), value)
		switch {
		case (m == nil) == (trouble == ""):
			t.Errorf("%q: %+v, %q", value, m, trouble)
		case m == nil && len(trouble) > 512, m != nil && len(m.Why) > 512:
			t.Errorf("%q: a long message", value)
		case m != nil && (m.At.Before(t0) || m.At.After(now)):
			t.Errorf("%q: %s is not between %s and %s", value, m.At, t0, now)
		}
	})
}
