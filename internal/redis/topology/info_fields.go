package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// InfoField is a field of INFO; "" where it is absent.
func InfoField(info, field string) string {
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}

// Pairs reads a reply of names and values, a map in RESP3.
func Pairs(reply any) map[string]string {
	values := map[string]string{}
	switch r := reply.(type) {
	case map[any]any:
		for name, value := range r {
			values[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			values[fmt.Sprint(r[i])] = fmt.Sprint(r[i+1])
		}
	}
	return values
}

// InfoNumber reads a field of INFO; 0 where it is absent or no whole number.
func InfoNumber(info, field string) int64 {
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			n, _ := strconv.ParseInt(text, 10, 64)
			return n
		}
	}
	return 0
}
