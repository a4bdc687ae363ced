package main

import (
	"errors"
	"io"
	"strings"

	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/plan"
)

// jsonVersion is the version of the document of an error.
const jsonVersion = 1

// failedDocument is what a program reads in place of a result.
type failedDocument struct {
	Version int         `json:"version"`
	Error   failedError `json:"error"`
}

type failedError struct {
	Reason  string `json:"reason,omitempty"` // as in conditions; absent if it has none
	Message string `json:"message"`
}

// jsonOutput is stdout of a command that was to write JSON.
type jsonOutput struct {
	io.Writer
	written bool
}

func (o *jsonOutput) Write(p []byte) (int, error) {
	o.written = true
	return o.Writer.Write(p)
}

// fail writes the error, unless the command has written something else.
func (o *jsonOutput) fail(err error) {
	if o == nil || o.written {
		return
	}
	document := failedDocument{Version: jsonVersion, Error: failedError{Message: withoutLogins(err)}}
	if of, ok := errors.AsType[*plan.Error](err); ok {
		document.Error = failedError{string(of.Reason), of.Message}
	}
	_ = output.WriteJSON(o.Writer, document) // nobody may read it any more; stderr has it, too
}

// wantsJSON reports whether arguments ask for JSON. Those of an invalid command line do, too.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch name, value, _ := strings.Cut(arg, "="); {
		case arg == "--":
			return false
		case name == "--output" && value == "json", arg == "-ojson", arg == "-o=json":
			return true
		case (arg == "-o" || arg == "--output") && i+1 < len(args) && args[i+1] == "json":
			return true
		}
	}
	return false
}
