package goclients

import (
	"errors"
	"io"
	"net"
	"runtime/debug"
	"strings"

	"github.com/redquake/redquake/internal/adapter/wire"
)

// refusalOf is why the first PING failed.
func refusalOf(text string) *wire.Refusal {
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "WRONGPASS", "NOAUTH", "NOPERM":
		return &wire.Refusal{Kind: wire.Login, Field: "password", Message: text}
	case "ERR":
		if strings.Contains(text, "AUTH") || strings.Contains(text, "password") {
			return &wire.Refusal{Kind: wire.Login, Field: "password", Message: text}
		}
		return &wire.Refusal{Kind: wire.Invalid, Message: text}
	}
	return &wire.Refusal{Kind: wire.Unreachable, Field: "addresses", Message: text}
}

// isEnd reports whether a connection was closed by the other side, or by this one.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed)
}

// versionOf is the version of a module in this program, with devel if that is not known.
func versionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return "devel"
}
