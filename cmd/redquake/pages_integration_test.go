//go:build integration

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/testing/markdown"
	"github.com/redquake/redquake/internal/testing/redistest"
)

var (
	ofCluster = regexp.MustCompile(
		`kubectl|-n (shop|NAMESPACE)|redquake (run|doctor|plan|watch|stop|rerun|mark|dashboard)\b|make |docker|redisexperiment`)
	// the first file that a comparison reads
	filesOfCompare = regexp.MustCompile(`compare .*?'?([^='" ]+[.](json|yaml))`)
	waits          = regexp.MustCompile(`--(duration|warm-up) \S+`)
)

// The commands that pages show for a machine without a cluster do what they say, as they stand: but for the address of
// Redis, and for how long they load it.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var commands []string
		for _, b := range markdown.Parse(path, string(text)).Blocks {
			for _, command := range b.Commands() {
				if strings.Contains(command, "redquake load ") || strings.Contains(command, "redquake compare ") {
					commands = append(commands, command)
				}
			}
		}
		for _, command := range commands {
			if ofCluster.MatchString(command) {
				continue
			}
			ran++
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			runOnLoopback(t, commands)
		})
	}
	if ran < 8 {
		t.Errorf("only %d commands were found", ran)
	}
}

// runOnLoopback runs the commands of a page one after the other in one folder.
func runOnLoopback(t *testing.T, commands []string) {
	folder := t.TempDir()
	server := ""
	for _, command := range commands {
		if ofCluster.MatchString(command) {
			continue
		}
		if server == "" {
			server = redistest.NewServer(t, redistest.Options{}).Address()
			shim := fmt.Sprintf(
				"#!/bin/bash\nexport %s=1\nif [[ $1 = load && \" $* \" != *\" --address \"* ]]; then set -- \"$@\" --address %s; fi\n"+
					"exec %q \"$@\"\n", asCommand, server, os.Args[0])
			if err := os.WriteFile(filepath.Join(folder, "redquake"), []byte(shim), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(folder, "config"), os.DirFS("../../config")); err != nil {
				t.Fatal(err)
			}
		}
		runCommandOfPage(t, folder, server, command)
	}
}

func runCommandOfPage(t *testing.T, folder, server, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if files := filesOfCompare.FindStringSubmatch(command); files != nil {
		if found, err := filepath.Glob(filepath.Join(folder, files[1])); err != nil || len(found) == 0 {
			return // the page shows what to do with runs that one has
		}
	}
	text := waits.ReplaceAllString(strings.ReplaceAll(command, "127.0.0.1:6379", server), "--$1 1s")
	c := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", text)
	c.Dir = folder
	c.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	var out, failed strings.Builder
	c.Stdout, c.Stderr = &out, &failed
	err := c.Run()
	refused := strings.Contains(failed.String(), "See 'redquake") || strings.Contains(failed.String(), "TargetUnreachable")
	unreachable := strings.Contains(command, "127.0.0.1:1") || strings.Contains(command, "--rate 0")
	silent := out.Len() == 0 && !unreachable && !strings.Contains(command, "> ")
	most := cli.ExitInconclusive
	if unreachable {
		most = cli.ExitError
	}
	if code := c.ProcessState.ExitCode(); code > most || code < 0 || refused != unreachable || silent {
		t.Errorf("%s\nexit code %d, %v\n%s%s", command, code, err, out.String(), failed.String())
	}
	if _, file, ok := strings.Cut(command, "-o json > "); ok && strings.HasSuffix(file, ".json") {
		data, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || !json.Valid(data) {
			t.Errorf("%s\n%v: %s", command, err, data)
		}
	}
	t.Logf("%s\n%s", command, out.String())
}
