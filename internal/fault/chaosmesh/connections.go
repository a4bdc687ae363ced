package chaosmesh

import (
	"context"
	"net"
	"strconv"
	"strings"
)

// How long a connection may be idle, in seconds, to count as active. Replicas acknowledge and
// sentinels ping every second, clients under load more often; a primary without writes pings its
// replicas every 10 s (repl-ping-replica-period).
const (
	speaksWithin        = 3
	primarySpeaksWithin = 12
)

// connection is a client's connection, as the server shows it.
type connection struct {
	from     string // address without port
	sentinel bool   // it is a sentinel's, for commands
	quiet    int    // seconds since the server received something
	limit    int    // from which it counts as inactive
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
		// Of a replica, idle also counts what was written to it. A sentinel has a second connection, on
		// which it only receives.
		if err != nil || bad != nil || strings.Contains(fields["flags"], "S") ||
			strings.HasSuffix(fields["name"], "-pubsub") {
			continue
		}
		n := connection{
			from:     from,
			sentinel: strings.HasPrefix(fields["name"], "sentinel-"),
			quiet:    quiet,
			limit:    speaksWithin,
		}
		if strings.Contains(fields["flags"], "M") {
			n.limit = primarySpeaksWithin
		}
		found = append(found, n)
	}
	return found, nil
}

// replicas are the connections of the server's replicas, by INFO.
func (c chaosMesh) replicas(ctx context.Context, address string) ([]connection, error) {
	info, err := c.Info(ctx, address, "replication")
	var found []connection
	for field := range info {
		replica := info.Pairs(field)
		// A primary lists each replica as slave0, slave1, ...; slave_read_only and such have no lag.
		if lag, noLag := strconv.Atoi(replica["lag"]); strings.HasPrefix(field, "slave") &&
			noLag == nil && lag >= 0 {
			found = append(found, connection{from: replica["ip"], quiet: lag, limit: speaksWithin})
		}
	}
	return found, err
}
