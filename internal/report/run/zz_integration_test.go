//go:build integration

package run

import (
	"testing"
	"github.com/redquake/redquake/internal/testing/browser"
)

func TestZZPic(t *testing.T) {
	d, _ := Fault(saved(t, "pass"), "kill-primary")
	b := browser.Start(t)
	f := pageOf(t, d)
	b.OpenFile(t, f, browser.View{Width: 1200}).Picture("/tmp/p-light.png", 1200, 0)
	b.OpenFile(t, f, browser.View{Width: 400}).Picture("/tmp/p-400.png", 400, 0)
	f = pageOf(t, LoadTest(saved(t, "several")))
	b.OpenFile(t, f, browser.View{Width: 1200, Dark: true}).Picture("/tmp/p-several.png", 1200, 0)
}
