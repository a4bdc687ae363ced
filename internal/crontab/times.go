// Package crontab is the times of a cron schedule in a time zone, as those of a CronJob. It is
// pure.
package crontab

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redquake/redquake/internal/problem"
)

// Times are the times of a schedule.
type Times struct {
	of   cron.Schedule
	zone *time.Location
}

// Parse reads spec.schedule and spec.timeZone. The error is a problem.Problem that names the field.
func Parse(schedule string, zone *string) (*Times, error) {
	in, err := zoneOf(zone)
	if err != nil {
		return nil, err
	}
	if strings.Contains(schedule, "TZ=") { // of which the parser panics without a space
		return nil, problem.Invalid(
			"spec.schedule: %s: set spec.timeZone instead of a time zone in the schedule", schedule)
	}
	of, err := cron.ParseStandard(schedule)
	if err != nil {
		return nil, problem.Invalid("spec.schedule: %s", err)
	}
	if every, ok := of.(cron.ConstantDelaySchedule); ok {
		if every.Delay < time.Minute {
			return nil, problem.Invalid("spec.schedule: %s: the period must be at least 1m", schedule)
		}
		of = period(every.Delay)
	}
	t := &Times{of, in}
	if t.Next(time.Unix(0, 0)).IsZero() {
		return nil, problem.Invalid("spec.schedule: %s: there is no such date", schedule)
	}
	return t, nil
}

func zoneOf(zone *string) (*time.Location, error) {
	name := "UTC"
	if zone != nil {
		name = *zone
	}
	if strings.EqualFold(name, "Local") {
		return nil, problem.Invalid(
			"spec.timeZone: Local depends on where the operator runs: name a time zone, such as Europe/Berlin")
	}
	in, err := time.LoadLocation(name)
	if err != nil {
		return nil, problem.Invalid("spec.timeZone: %s", err)
	}
	return in, nil
}

// Zone is the time zone of spec.timeZone, to show times in; UTC if there is no such zone.
func Zone(zone *string) *time.Location {
	in, err := zoneOf(zone)
	if err != nil {
		return time.UTC
	}
	return in
}

// period is @every: the multiples of it since 1970, so that its times do not depend on when an
// operator looks.
type period time.Duration

// Next implements cron.Schedule.
func (p period) Next(after time.Time) time.Time {
	seconds := int64(time.Duration(p) / time.Second)
	return time.Unix((after.Unix()/seconds+1)*seconds, 0).In(after.Location())
}

// Next is the first time after an instant.
func (t *Times) Next(after time.Time) time.Time {
	return t.of.Next(after.In(t.zone))
}

// Zone is the time zone.
func (t *Times) Zone() *time.Location {
	return t.zone
}

// Last is the last time from one instant to another one, both included; ok: there is one. However
// long that is, it takes some tens of steps.
func (t *Times) Last(from, to time.Time) (last time.Time, ok bool) {
	before := from.Add(-time.Nanosecond) // the last time is after it, and at or before to
	past := func(at time.Time) bool { next := t.Next(at); return next.IsZero() || next.After(to) }
	if past(before) {
		return time.Time{}, false
	}
	for after := to; after.Sub(before) > time.Second; {
		middle := before.Add(after.Sub(before) / 2)
		if past(middle) {
			after = middle
		} else {
			before = middle
		}
	}
	for next := t.Next(before); !next.IsZero() && !next.After(to); next = t.Next(next) {
		last = next
	}
	return last, true
}

// Between are the times from one instant, included, to another one, excluded: the first ones, at
// most limit.
func (t *Times) Between(from, to time.Time, limit int) []time.Time {
	var all []time.Time
	for next := t.Next(from.Add(-time.Nanosecond)); !next.IsZero() && next.Before(to) &&
		len(all) < limit; next = t.Next(next) {
		all = append(all, next)
	}
	return all
}

// Minutes are those since 1970, in which runs are named.
func Minutes(t time.Time) int64 {
	return t.Unix() / 60
}

// Text is a time as people read it.
func (t *Times) Text(at time.Time) string {
	return fmt.Sprintf("%s (%s)", at.In(t.zone).Format(time.RFC3339), t.zone)
}
