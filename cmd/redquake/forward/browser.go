package forward

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
)

// OpenBrowser opens an address in the browser of the desktop. An error means that there is none
// that could be started.
func OpenBrowser(ctx context.Context, address string) error {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		command[0] = "open"
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("there is no %s", command[0])
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	go func() { _ = cmd.Wait() }() // some wait for the browser
	return nil
}
