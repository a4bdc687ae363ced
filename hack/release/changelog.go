package main

import (
	"fmt"
	"regexp"
	"strings"
)

// changelog is the text of CHANGELOG.md, in the format of keepachangelog.com.
type changelog string

var (
	// heading is that of a version: its number, and its date or the word Unreleased.
	heading = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)\] - (\S+)$`)
	date    = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
)

// section is what the changelog says of a version.
type section struct{ version, date, text string }

func (c changelog) sections() []section {
	var found []section
	all := heading.FindAllStringSubmatchIndex(string(c), -1)
	for i, at := range all {
		end := len(c)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		found = append(found, section{
			version: "v" + string(c[at[2]:at[3]]),
			date:    string(c[at[4]:at[5]]),
			text:    strings.TrimSpace(string(c[at[1]:end])),
		})
	}
	return found
}

// snapshot names a build between releases, by the version that comes next, or was the last one.
// build is what it is made of, such as g0123abcd.
func (c changelog) snapshot(build string) (version, notes string, err error) {
	sections := c.sections()
	if len(sections) == 0 {
		return "", "", fmt.Errorf("CHANGELOG.md names no version")
	}
	return sections[0].version + "-snapshot." + build, sections[0].text, nil
}

// notes is what the changelog says of a version that is to be released.
func (c changelog) notes(version string) (string, error) {
	for _, s := range c.sections() {
		if s.version != version {
			continue
		}
		if !date.MatchString(s.date) {
			return "", fmt.Errorf("CHANGELOG.md gives %s no date but %q", version, s.date)
		}
		if s.text == "" {
			return "", fmt.Errorf("CHANGELOG.md says nothing of %s", version)
		}
		return s.text, nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no section of %q", version)
}
