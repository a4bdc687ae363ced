package ledger

import (
	"slices"
	"strings"
)

// settingsOfPrimaries are the settings of the primaries of all shards: each with the addresses of
// those that have it.
type settingsOfPrimaries []struct {
	settings  string
	addresses []string
}

func (s *settingsOfPrimaries) add(address, settings string) {
	for i := range *s {
		if one := &(*s)[i]; one.settings == settings {
			one.addresses = append(one.addresses, address)
			return
		}
	}
	*s = append(*s, struct {
		settings  string
		addresses []string
	}{settings, []string{address}})
}

// String is the settings that all primaries have, or those of each with its address.
func (s settingsOfPrimaries) String() string {
	if len(s) == 1 {
		return s[0].settings
	}
	var parts []string
	for _, one := range s {
		parts = append(parts, strings.Join(slices.Sorted(slices.Values(one.addresses)), " and ")+": "+
			one.settings)
	}
	return strings.Join(parts, "; ")
}
