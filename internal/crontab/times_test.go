package crontab

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/problem"
)

func parse(t *testing.T, schedule, zone string) *Times {
	t.Helper()
	times, err := Parse(schedule, &zone)
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// A bad schedule is a lasting problem, whose message names the field.
func TestParseNamesTheField(t *testing.T) {
	for _, c := range []struct{ schedule, zone, want string }{
		{"daily", "UTC", "spec.schedule: expected exactly 5 fields"},
		{"61 * * * *", "UTC", "spec.schedule: end of range (61)"},
		{"0 0 30 2 *", "UTC", "spec.schedule: 0 0 30 2 *: there is no such date"},
		{"TZ=", "UTC", "spec.schedule: TZ=: set spec.timeZone"},
		{"CRON_TZ=Europe/Berlin 0 3 * * *", "UTC", "spec.schedule: CRON_TZ=Europe/Berlin 0 3 * * *: set spec.timeZone"},
		{"@every 59s", "UTC", "spec.schedule: @every 59s: the period must be at least 1m"},
		{"0 3 * * *", "Mars/Phobos", "spec.timeZone: unknown time zone Mars/Phobos"},
		{"0 3 * * *", "../etc/passwd", "spec.timeZone: "},
		{"0 3 * * *", "local", "spec.timeZone: Local depends"},
	} {
		_, err := Parse(c.schedule, &c.zone)
		found, err := problem.From(err)
		if found == nil || err != nil || !found.Lasting || !strings.HasPrefix(found.Message, c.want) {
			t.Errorf("%s in %s: %+v, %v", c.schedule, c.zone, found, err)
		}
	}
	if times, err := Parse("@daily", nil); err != nil || times.Zone().String() != "UTC" {
		t.Errorf("without a time zone: %v, %v", times, err)
	}
}

// As for a CronJob: a time that the clocks skip in spring has no run, and one that they show twice in autumn has two.
func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct{ schedule, from, want string }{
		{"30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		{"0 3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T01:00:00Z"},
		{"30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-26T01:30:00Z"},
		{
			"@every 12h", "2026-03-28T12:00:00Z",
			"2026-03-28T12:00:00Z 2026-03-29T00:00:00Z 2026-03-29T12:00:00Z 2026-03-30T00:00:00Z",
		},
		{"0 3 * * *", "2026-10-24T12:00:00Z", "2026-10-25T02:00:00Z 2026-10-26T02:00:00Z"},
	} {
		var got []string
		for _, time := range parse(t, c.schedule, "Europe/Berlin").Between(at(c.from), at(c.from).Add(40*time.Hour), 9) {
			got = append(got, time.UTC().Format("2006-01-02T15:04:05Z"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s from %s: %s, want %s", c.schedule, c.from, got, c.want)
		}
	}
}

// The last time is found without a step for each before it, and is that of stepping.
func TestLast(t *testing.T) {
	from := at("2026-01-01T00:00:00Z")
	for _, schedule := range []string{
		"* * * * *", "*/7 * 3 * *", "0 3 * * 1", "15,45 0-5 1,31 */2 *", "30 2 * * *",
		"@every 1h30m",
	} {
		times := parse(t, schedule, "Europe/Berlin")
		for _, length := range []time.Duration{
			0, time.Second, time.Hour, 25 * time.Hour, 60 * 24 * time.Hour,
			364*24*time.Hour + time.Minute,
		} {
			var want time.Time
			for next := times.Next(from.Add(-time.Nanosecond)); !next.After(from.Add(length)); next = times.Next(next) {
				want = next
			}
			if got, ok := times.Last(from, from.Add(length)); ok == want.IsZero() || !got.Equal(want) {
				t.Errorf("%s in %s: %s, %v, want %s", schedule, length, got, ok, want)
			}
		}
	}
	if _, ok := parse(t, "* * * * *", "UTC").Last(from.Add(time.Hour), from); ok {
		t.Error("a time between an instant and one before it")
	}
}
