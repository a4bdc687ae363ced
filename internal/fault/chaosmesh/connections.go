package chaosmesh

import (
	"context"
	"net"
	"strconv"
	"strings"
)

// How long the server may have heard nothing, in seconds, from somebody that still speaks to it. Replicas acknowledge and sentinels ask every
// second, clients under load more often; a primary without writes pings its replicas every 10 s (repl-ping-replica-period).
const (
	speaksWithin        = 3
	primarySpeaksWithin = 12
)

// connection is what the server hears from at one address.
type connection struct {
	from     string // address without port
	sentinel bool   // a sentinel commands the server on it
	quiet    int    // seconds since something was heard
	limit    int    // from which it no longer speaks
}

// connections are those of clients, sentinels and the primary, by CLIENT LIST.
func (c chaosMesh) connections(ctx context.Context, address string) ([]connection, error) {
	reply, err := c.Servers.Do(ctx, address, c.Login, "CLIENT", "LIST")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	var found []connection
	for line := range strings.Lines(text) {
		fields := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			field, value, _ := strings.Cut(word, "=")
			fields[field] = value
		}
		from, _, err := net.SplitHostPort(fields["addr"])
		quiet, bad := strconv.Atoi(fields["idle"])
		// Of a replica, idle also counts what was written to it. A sentinel has a second connection, on which it only listens.
		if err != nil || bad != nil || strings.Contains(fields["flags"], "S") || strings.HasSuffix(fields["name"], "-pubsub") {
			continue
		}
		n := connection{from: from, sentinel: strings.HasPrefix(fields["name"], "sentinel-"), quiet: quiet, limit: speaksWithin}
		if strings.Contains(fields["flags"], "M") {
			n.limit = primarySpeaksWithin
		}
		found = append(found, n)
	}
	return found, nil
}

// replicas are those that acknowledge to the server, by INFO.
func (c chaosMesh) replicas(ctx context.Context, address string) ([]connection, error) {
	info, err := c.Info(ctx, address, "replication")
	var found []connection
	for field := range info {
		replica := info.Pairs(field)
		// A primary lists each replica as slave0, slave1, ...; slave_read_only and such have no lag.
		if lag, noLag := strconv.Atoi(replica["lag"]); strings.HasPrefix(field, "slave") && noLag == nil {
			found = append(found, connection{from: replica["ip"], quiet: lag, limit: speaksWithin})
		}
	}
	return found, err
}
