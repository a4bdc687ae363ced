package chaosmesh

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// sparesExpiry refuses to set the clock of a server forward that has keys with an expiry: they
// expire early, and do not come back. How many expire depends on their remaining times, which only
// a scan would show. A replica is no exception, as it may be promoted meanwhile.
func (c chaosMesh) sparesExpiry(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if c.spec.Action.Type != v1alpha1.FaultClockSkew || c.spec.Action.ClockSkew.Offset.Duration <= 0 ||
		slices.Contains(c.spec.Allow, v1alpha1.AllowExpiry) {
		return nil
	}
	info, err := c.Info(ctx, target.Address, "keyspace")
	if err != nil {
		return fmt.Errorf("spec.action.clockSkew: read how many keys expire: %w", err)
	}
	expiring := int64(0)
	for field := range info {
		if _, err := strconv.Atoi(strings.TrimPrefix(field, "db")); err == nil &&
			strings.HasPrefix(field, "db") {
			n, _ := strconv.ParseInt(info.Pairs(field)["expires"], 10, 64)
			expiring += n
		}
	}
	if expiring == 0 {
		return nil
	}
	return problem.TooWide(
		"spec.action.clockSkew.offset: pod %s has %d keys with an expiry: those that expire within %s "+
			"would be lost at once, and cannot be restored; spec.allow: [%s] lifts this guard",
		target.Pod, expiring, c.spec.Action.ClockSkew.Offset.Duration, v1alpha1.AllowExpiry)
}
