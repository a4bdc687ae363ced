package topology

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/redis"
)

// Replies are converted by redis.Plain. A map is a list of names and values in turn.

// FieldsOf reads a map. Names that are no text are passed over.
func FieldsOf(reply any) map[string]any {
	fields := map[string]any{}
	for l := listOf(reply); len(l) >= 2; l = l[2:] {
		if name, ok := l[0].(string); ok {
			fields[name] = l[1]
		}
	}
	return fields
}

func listOf(reply any) []any {
	l, _ := reply.([]any)
	return l
}

// Pairs reads a map as text, such as the reply of CONFIG GET.
func Pairs(reply any) map[string]string {
	values := map[string]string{}
	for l := listOf(reply); len(l) >= 2; l = l[2:] {
		values[fmt.Sprint(l[0])] = fmt.Sprint(l[1])
	}
	return values
}

// TextOf reads text or a number as text; "" for anything else.
func TextOf(reply any) string {
	switch r := reply.(type) {
	case string:
		return r
	case int64:
		return strconv.FormatInt(r, 10)
	}
	return ""
}

// numberOf reads a number, or text that is one.
func numberOf(reply any) (int64, bool) {
	switch r := reply.(type) {
	case int64:
		return r, true
	case string:
		n, err := strconv.ParseInt(r, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// joinAddress makes host:port of what a server said; "" where that cannot be dialled.
func joinAddress(host, port any) string {
	h := TextOf(host)
	p, ok := numberOf(port)
	if !isHost(h) || !ok || p < 1 || p > 65535 {
		return ""
	}
	return net.JoinHostPort(h, strconv.FormatInt(p, 10))
}

// isHost reports whether text may be an IP or a host name: it goes into messages and commands.
func isHost(text string) bool {
	return text != "" && len(text) <= 253 && strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune(".-_:%", r)
	}) < 0
}

// hostOf is the host of host:port, or all of it.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// Unexpected is about a reply that has not the shape that the command's documentation gives it.
func Unexpected(command string, reply any) error {
	if l := listOf(reply); len(l) > 10 {
		reply = l[:10]
	}
	return fmt.Errorf("%s: the reply is not what it should be: %s", command,
		redis.Printable(fmt.Sprintf("%.200v", reply), 200))
}
