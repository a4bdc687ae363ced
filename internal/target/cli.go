package target

import (
	"net"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// CLI is the shell command by which a person sends a command to a target's server. It fails where
// the server refuses that: otherwise redis-cli would print the error and exit with 0, and what
// follows after && would be done.
func (r Redis) CLI(target *v1alpha1.FaultTarget, words ...string) string {
	command := []string{"kubectl", "-n", r.Namespace, "exec"}
	if r.needsPassword() {
		command = append(command, "-it")
	}
	command = append(command, target.Pod, "-c", target.Container, "--", "redis-cli", "-e")
	if _, port, err := net.SplitHostPort(target.Address); err == nil {
		command = append(command, "-p", port)
	}
	command = append(command, r.cliLogin()...)
	for _, word := range words {
		command = append(command, ShellWord(word))
	}
	return strings.Join(command, " ")
}

// ShellWord quotes a word for a shell where it needs that.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CLIAt is the shell command by which a person sends a command to an address.
func (r Redis) CLIAt(address, command string) string {
	host, port, _ := net.SplitHostPort(address)
	return strings.Join(append(append([]string{"redis-cli", "-e", "-h", host, "-p", port},
		r.cliLogin()...), command), " ")
}

// needsPassword reports whether servers are logged in to with a password, by the spec or by the
// login that was read: the Secret may be gone.
func (r Redis) needsPassword() bool {
	return r.Login.Password != "" || r.Spec != nil && r.Spec.Auth != nil
}

// cliLogin are the options by which redis-cli logs in. It asks for the password, which is in no
// command.
func (r Redis) cliLogin() (options []string) {
	user := r.Login.Username
	if user == "" && r.Spec != nil && r.Spec.Auth != nil {
		user = r.Spec.Auth.Username
	}
	if r.Login.TLS != nil || r.Spec != nil && r.Spec.TLS != nil {
		options = append(options, "--tls", "--insecure")
	}
	if user != "" {
		options = append(options, "--user", ShellWord(user))
	}
	if r.needsPassword() {
		options = append(options, "--askpass")
	}
	return options
}
