package loadflags

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
)

// Ports of addresses without one.
const (
	redisPort    = 6379
	sentinelPort = 26379
)

// socketStandIn is host:port for a unix socket, which only a plan has: the API has none, as load
// pods do not reach it.
const socketStandIn = "unix-socket:1"

// where says which Redis is loaded, in the ways of other tools.
type where struct {
	argument string   // ADDRESS
	hosts    []string // as redis-benchmark's -h and -s
	port     int32    // of an address without one

	socket   string // unix://PATH; "" = TCP
	password string // of an URI
}

// server is where an address leads, and what an URI says beside that.
type server struct {
	address            string // host:port, or unix://PATH
	username, password string
	tls                bool
	database           *int32
}

// isURI reports whether it says more than where a server is, so that it cannot be one of several.
func (s *server) isURI() bool {
	return s.username != "" || s.password != "" || s.tls || s.database != nil ||
		plan.IsSocket(s.address)
}

// Argument takes the argument of the command, another way to write --address.
func (f *Flags) Argument(args []string) {
	if len(args) > 0 {
		f.argument = args[0]
	}
}

// locate reads the addresses, however they were given, and what URIs among them say.
func (f *Flags) locate() error {
	if f.changed("password-file") && f.passwordFile == "" { // also of FromOthers
		return errors.New("a password is not taken from a flag, which all users of this machine can " +
			"read: use --password-file or $" + PasswordVariable)
	}
	given := slices.Concat(f.addresses, f.hosts)
	if f.argument != "" {
		given = append(given, f.argument)
	}
	ways := 0
	for _, way := range []bool{len(f.addresses) > 0, len(f.hosts) > 0, f.argument != ""} {
		if way {
			ways++
		}
	}
	switch port := cmp.Or(f.port, redisPort); {
	case ways > 1:
		return errors.New("--address, -h HOST and the argument ADDRESS are the same: use one of them")
	case f.changed("port") && (f.port < 1 || f.port > 65535):
		return errors.New("--port: must be between 1 and 65535")
	case ways == 0 && f.changed("port"):
		return f.locateAt([]string{"127.0.0.1"}, port)
	case ways > 0:
		return f.locateAt(given, port)
	}
	return f.locateSentinels()
}

func (f *Flags) locateSentinels() error {
	for i, text := range f.sentinels {
		address, err := hostPort(text, sentinelPort)
		if err != nil {
			return fmt.Errorf("--sentinel: %w", err)
		}
		f.sentinels[i] = address
	}
	return nil
}

func (f *Flags) locateAt(given []string, port int32) error {
	f.addresses = nil
	extra := map[string]bool{"address": true}
	for _, text := range given {
		s, err := readServer(text, port)
		switch {
		case err != nil:
			return fmt.Errorf("--address: %w", err)
		case s.isURI() && len(given) > 1:
			return fmt.Errorf("--address: %s must be the only address", shown(text))
		}
		if err := f.apply(&s, extra); err != nil {
			return fmt.Errorf("--address: %s %w", shown(text), err)
		}
		f.addresses = append(f.addresses, s.address)
	}
	changed := f.changed
	f.changed = func(name string) bool { return extra[name] || changed(name) }
	return f.locateSentinels()
}

// apply sets the flags that an URI replaces; extra receives their names.
func (f *Flags) apply(s *server, extra map[string]bool) error {
	if plan.IsSocket(s.address) {
		return f.applySocket(s)
	}
	if s.username != "" {
		if f.changed("username") {
			return errors.New("has a user, as --username: use one of them")
		}
		f.username, extra["username"] = s.username, true
	}
	if s.password != "" {
		if f.passwordFile != "" {
			return errors.New("has a password, as --password-file: use one of them")
		}
		f.password = s.password
	}
	if s.database != nil {
		if f.changed("database") && f.database != *s.database {
			return errors.New("has a database, as --database: use one of them")
		}
		f.database, extra["database"] = *s.database, true
	}
	f.tls = f.tls || s.tls
	return nil
}

func (f *Flags) applySocket(s *server) error {
	switch {
	case f.wantsTLS():
		return errors.New("is a unix socket, which has no TLS: use host:port")
	case f.changed("topology") && f.topology != "Auto" && f.topology != "Standalone":
		return fmt.Errorf("is a unix socket, that of one server: --topology %s needs host:port",
			f.topology)
	case f.changed("read-from") && f.readFrom != "Primary":
		return fmt.Errorf("is a unix socket, that of one server: --read-from %s needs host:port",
			f.readFrom)
	}
	f.socket, s.address = s.address, socketStandIn
	return nil
}

// planned are the addresses of a plan: the socket in place of its stand-in.
func (f *Flags) planned(addresses []string) []string {
	if f.socket != "" {
		return []string{f.socket}
	}
	return addresses
}

// shown is an address without the login in it.
func shown(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return strconv.Quote(text)
	}
	scheme, _, ok := strings.Cut(text[:at], "://")
	if !ok {
		return strconv.Quote(text[at+1:])
	}
	return strconv.Quote(scheme + "://" + text[at+1:])
}

// readServer reads host, host:port, a path, or an URI.
func readServer(text string, port int32) (server, error) {
	switch scheme, rest, isURI := strings.Cut(text, "://"); {
	case isURI && strings.EqualFold(scheme, "unix"):
		return socketServer(rest)
	case isURI:
		return readURI(strings.ToLower(scheme), text, port)
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "."):
		return socketServer(text)
	case strings.Contains(text, "@"):
		return server{}, fmt.Errorf("%s: a user and a password need an URI, as redis://user@%s",
			shown(text), text[strings.LastIndexByte(text, '@')+1:])
	case strings.Contains(text, "/"):
		return socketServer(strings.TrimPrefix(text, "unix:"))
	}
	address, err := hostPort(text, port)
	return server{address: address}, err
}

func socketServer(path string) (server, error) {
	if path == "" || strings.HasSuffix(path, "/") {
		return server{}, fmt.Errorf("%q is not the path of a unix socket", path)
	}
	return server{address: redis.SocketScheme + path}, nil
}

// readURI reads redis://[user[:password]@]host[:port][/database]; with rediss over TLS. Errors have
// no part of it that may be a password.
func readURI(scheme, text string, port int32) (server, error) {
	var s server
	switch scheme {
	case "redis", "valkey":
	case "rediss", "valkeys":
		s.tls = true
	default:
		return s, fmt.Errorf("%s: the scheme must be redis, rediss (TLS) or unix", shown(text))
	}
	uri, err := url.Parse(text)
	if err != nil || uri.Fragment != "" {
		return s, fmt.Errorf("%s is not redis://user:password@host:port/database: other characters "+
			"than letters and digits in user and password are written as %%HH", shown(text))
	}
	if uri.RawQuery != "" {
		return s, fmt.Errorf("%s: what follows ? has flags of its own", shown(text))
	}
	if uri.User != nil {
		s.username = uri.User.Username()
		s.password, _ = uri.User.Password()
	}
	if number := strings.Trim(uri.Path, "/"); number != "" {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 {
			return s, fmt.Errorf("%s: the database %q must be a number", shown(text), number)
		}
		s.database = new(int32(n))
	}
	s.address, err = hostPort(cmp.Or(uri.Host, "127.0.0.1"), port)
	return s, err
}

// hostPort completes a host by a port.
func hostPort(text string, port int32) (string, error) {
	bracketed := strings.HasPrefix(text, "[")
	switch {
	case !bracketed && strings.Count(text, ":") > 1:
		return "", fmt.Errorf("%q: an IPv6 address needs brackets, as [::1]:%d", text, port)
	case bracketed && strings.HasSuffix(text, "]") || !bracketed && !strings.Contains(text, ":"):
		text += ":" + strconv.Itoa(int(port))
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return "", fmt.Errorf("%q must be host:port, as redis-0:6379", text)
	}
	if n, err := strconv.Atoi(number); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("the port of %q must be between 1 and 65535", text)
	}
	return text, nil
}
