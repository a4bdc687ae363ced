// Package markdown reads pages for tests that hold them to what they show.
package markdown

import (
	"regexp"
	"strings"
)

// Page is a Markdown file.
type Page struct {
	Path   string
	Text   string
	Blocks []Block
	Prose  []string // the lines outside blocks
}

// Block is a fenced block of code.
type Block struct {
	Line     int    // of its first line, from 1
	Language string // "" = none
	Text     string
	File     string // what <!-- file: PATH --> in front of it claims
}

var fileClaim = regexp.MustCompile(`^<!-- file: (\S+) -->$`)

// Parse reads a page.
func Parse(path, text string) Page {
	p := Page{Path: path, Text: text}
	var open *Block
	claimed := ""
	for i, line := range strings.Split(text, "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &Block{
				Line:     i + 2,
				Language: language,
				File:     claimed,
			}
			claimed = ""
		case fence:
			p.Blocks = append(p.Blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		default:
			p.Prose = append(p.Prose, line)
			claimed = ""
			if m := fileClaim.FindStringSubmatch(line); m != nil {
				claimed = m[1]
			}
		}
	}
	return p
}

// Commands are the commands of a block that a shell runs: all of a block of sh, and what follows "$ "
// of a transcript. A command may have several lines.
func (b Block) Commands() []string {
	var commands []string
	switch b.Language {
	case "sh":
		unfinished := ""
		for line := range strings.Lines(b.Text) {
			unfinished += line
			if strings.HasSuffix(line, "\\\n") || strings.Count(unfinished, " do\n")+strings.Count(unfinished, "; do ") >
				strings.Count(unfinished, "done") {
				continue
			}
			if command := strings.TrimSpace(unfinished); command != "" && command[0] != '#' {
				commands = append(commands, command)
			}
			unfinished = ""
		}
	case "console":
		for line := range strings.Lines(b.Text) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	return commands
}
