package target

import (
	"fmt"
	"net"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// CLI is the shell command by which a person sends a command to a target's server.
func (r Redis) CLI(target *v1alpha1.FaultTarget, words ...string) string {
	command := []string{"kubectl", "-n", r.Namespace, "exec"}
	if r.Login.Password != "" {
		command = append(command, "-it")
	}
	command = append(command, target.Pod, "-c", target.Container, "--", "redis-cli")
	if _, port, err := net.SplitHostPort(target.Address); err == nil {
		command = append(command, "-p", port)
	}
	if r.Login.TLS != nil {
		command = append(command, "--tls", "--insecure")
	}
	if r.Login.Username != "" {
		command = append(command, "--user", r.Login.Username)
	}
	if r.Login.Password != "" {
		command = append(command, "--askpass")
	}
	for _, word := range words {
		command = append(command, ShellWord(word))
	}
	return strings.Join(command, " ")
}

// ShellWord quotes a word for a shell where it needs that.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CLIAt is the shell command by which a person sends a command to an address.
func (Redis) CLIAt(address, command string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("redis-cli -h %s -p %s %s", host, port, command)
}
