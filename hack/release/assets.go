package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// sums is the file that a signature is of, and thereby of all others.
const sums = "checksums.txt"

// asset is a file that is published.
type asset struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// sum writes the notes, the checksums of all that is published, as sha256sum reads them, and all of
// it as JSON.
func (r *release) sum() error {
	if err := os.WriteFile(filepath.Join(folder, "notes.md"), []byte(r.notes+"\n"), 0o644); err != nil {
		return err
	}
	entries, err := os.ReadDir(assets)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		a, err := assetAt(r.asset(e.Name()))
		if err != nil {
			return err
		}
		r.Assets = append(r.Assets, a)
		fmt.Fprintf(&lines, "%s  %s\n", a.SHA256, a.Name)
	}
	if err := os.WriteFile(r.asset(sums), []byte(lines.String()), 0o644); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "release.json"), append(text, '\n'), 0o644)
}

func assetAt(path string) (asset, error) {
	f, err := os.Open(path)
	if err != nil {
		return asset{}, err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	return asset{
		Name:   filepath.Base(path),
		Bytes:  size,
		SHA256: fmt.Sprintf("%x", hash.Sum(nil)),
	}, err
}

// print shows what there is.
func (r *release) print(w io.Writer) error {
	fmt.Fprintf(w, "%s of %s, with %s\n%s@%s for %s\n\n", r.Version, r.Commit, r.Go, r.Image.Name, r.Image.Digest,
		strings.Join(r.Image.Architectures, ", "))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ASSET\tMB\tSHA256")
	for _, a := range r.Assets {
		fmt.Fprintf(table, "%s\t%.1f\t%s\n", a.Name, float64(a.Bytes)/1e6, a.SHA256)
	}
	return table.Flush()
}

// call runs a command whose output is of interest if it fails, and as a sign of life.
func call(c *exec.Cmd) error {
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return nil
}

// output is what a command prints, without white space around it.
func output(name string, arguments ...string) (string, error) {
	c := exec.Command(name, arguments...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
