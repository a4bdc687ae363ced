// Command rights generates the admission policies, which check the rights of users, and the roles
// of the operator for each kind of fault, from internal/fault/declared.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rights FOLDER (config)")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "rights: %v\n", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	for _, p := range policies() {
		text, err := p.manifest()
		if err != nil {
			return fmt.Errorf("the policy of %s: %w", p.Resource, err)
		}
		if err := write(filepath.Join(folder, "policy", p.Resource+".yaml"), text); err != nil {
			return err
		}
	}
	return writeRoles(folder)
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
