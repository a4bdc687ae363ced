package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// machine describes the machine of a measurement.
type machine struct {
	Date    string   `json:"date"` // UTC
	CPU     string   `json:"cpu"`
	Cores   int      `json:"cores"`
	Memory  string   `json:"memory"`
	Kernel  string   `json:"kernel"`
	System  string   `json:"system"`
	Go      string   `json:"go"`
	Redis   string   `json:"redis"`
	Load    string   `json:"loadAverage"` // at the start of the measurement: 1, 5, 15 minutes
	Tools   []string `json:"tools,omitempty"`
	LeftOut []string `json:"leftOut,omitempty"`

	Placement string `json:"placement,omitempty"` // on cores
	// what others used of the cores under test in each round of a case that counts, as a share of one
	// core
	Others []float64 `json:"others,omitempty"`
	// rounds of a case, because others used more than the limit
	ThrownAway int  `json:"thrownAway,omitempty"`
	AllowBusy  bool `json:"allowBusy,omitempty"` // nothing was thrown away
}

func describeMachine() machine {
	m := machine{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU:    field("/proc/cpuinfo", "model name"),
		System: strings.Trim(field("/etc/os-release", "PRETTY_NAME"), `"`),
		Redis:  redisVersion(),
	}
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		m.Memory = fmt.Sprintf("%d GiB", (info.Totalram*uint64(info.Unit)+1<<29)>>30)
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(text))[:3], " ")
	}
	return m
}

// redisVersion is the number in "Redis server v=7.0.15 sha=...".
func redisVersion() string {
	for _, word := range strings.Fields(firstLine("redis-server", "--version")) {
		if version, ok := strings.CutPrefix(word, "v="); ok {
			return version
		}
	}
	return "unknown"
}

// field is the first value of a name in a file of "name: value" or "name=value".
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			return strings.TrimLeft(rest, "\t :=")
		}
	}
	return "unknown"
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readJSON returns false if the file does not exist.
func readJSON(path string, v any) (bool, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}
