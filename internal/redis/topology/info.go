// Package topology asks Redis and Valkey servers who they are. It knows Redis, not Kubernetes.
package topology

import (
	"strconv"
	"strings"
	"time"
)

// Role is a server's role, as it tells itself.
type Role string

// The roles.
const (
	Primary  Role = "Primary"
	Replica  Role = "Replica"
	Sentinel Role = "Sentinel"
	Unknown  Role = "Unknown"
)

// Server is what one server said of itself at one instant.
type Server struct {
	Address string
	Name    string // redis | valkey
	Version string
	Mode    string // standalone | sentinel | cluster
	RunID   string // changes with every start of the process
	Role    Role
	Uptime  time.Duration // to the second
	Loading bool          // the data set is being read from disk; commands are refused
}

// ParseInfo reads the reply of INFO. Fields that are absent stay empty; lines that are no fields are passed over.
// Valkey keeps redis_version at 7.2.4 for compatibility, so its own fields win where they stand.
func ParseInfo(address, info string) Server {
	s := Server{Address: address, Name: "redis", Role: Unknown}
	var valkeyVersion string
	for line := range strings.Lines(info) {
		field, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(field, "#") {
			continue
		}
		switch field {
		case "redis_version":
			s.Version = value
		case "server_name":
			s.Name = value
		case "valkey_version":
			valkeyVersion = value
		case "redis_mode", "server_mode":
			s.Mode = value
		case "run_id":
			s.RunID = value
		case "uptime_in_seconds":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				s.Uptime = time.Duration(n) * time.Second
			}
		case "loading":
			s.Loading = value == "1"
		case "role":
			s.Role = parseRole(value)
		}
	}
	if valkeyVersion != "" {
		s.Version = valkeyVersion
	}
	if s.Mode == "sentinel" {
		s.Role = Sentinel
	}
	return s
}

func parseRole(word string) Role {
	switch word {
	case "master", "primary":
		return Primary
	case "slave", "replica":
		return Replica
	case "sentinel":
		return Sentinel
	}
	return Unknown
}
