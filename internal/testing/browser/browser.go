// Package browser opens pages in a headless Chromium, and tells what a reader would not see in
// their source: errors on the console, requests to a network, what does not fit, and how long a
// page takes.
package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/redquake/redquake/internal/testing/installed"
)

// Browser is a running Chromium.
type Browser struct{ ctx context.Context }

// Start starts a Chromium, which ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	allocator, release := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(installed.Program(t, "chromium")), chromedp.Headless,
		chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		cancel()
		release()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &Browser{ctx}
}

// View is how a page is shown. The zero value is a wide, light screen.
type View struct {
	Width int // CSS pixels; 0 = 1280
	Dark  bool
	Print bool
}

// Page is an open page.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	errors   []string
	requests []string
}

// openWithin bounds how long a page may take on a busy machine, openFor how long it is looked at.
const (
	openWithin = time.Minute
	openFor    = 5 * time.Minute
)

// Open opens an address, such as file:///report.html, and waits until its script is ready.
func (b *Browser) Open(t testing.TB, address string, view View) *Page {
	t.Helper()
	tab, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	ctx, expired := context.WithTimeout(tab, openFor)
	t.Cleanup(expired)
	p := &Page{t: t, ctx: ctx}
	p.do("open a tab")
	err := chromedp.Listen(ctx, func(event any) { p.note(event, address) })
	if err != nil {
		t.Fatalf("watch the page: %v", err)
	}
	call(p, runtime.Enable, cdp.Empty{})
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	p.Show(view)
	p.do("open the page", chromedp.Navigate(address))
	run(p, "wait for the page",
		chromedp.Poll[bool](
			`document.readyState === 'complete' && (!document.getElementById('meta') || !!document.documentElement.dataset.ready)`,
			chromedp.WithPollingTimeout(openWithin)))
	return p
}

// call sends a command to the page.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
}

// OpenFile opens a file.
func (b *Browser) OpenFile(t testing.TB, file string, view View) *Page {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return b.Open(t, "file://"+path, view)
}

// Show changes how the page is shown.
func (p *Page) Show(view View) {
	p.t.Helper()
	width, scheme, media := view.Width, "light", "screen"
	if width == 0 {
		width = 1280
	}
	if view.Dark {
		scheme = "dark"
	}
	if view.Print {
		media = "print"
	}
	p.do("set the screen", chromedp.EmulateViewport(int64(width), 900))
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media:    media,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

func (p *Page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v; the console says %q", what, err, p.Errors())
	}
}

// run runs an action and stores its result.
func run[T any](p *Page, what string, action chromedp.Action[T]) T {
	p.t.Helper()
	got, err := chromedp.Run(p.ctx, action)
	if err != nil {
		p.t.Fatalf("%s: %v; the console says %q", what, err, p.Errors())
	}
	return got
}

// note keeps errors, and requests other than that of the page itself.
func (p *Page) note(event any, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, fmt.Sprintf("%+v", *e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var parts []string
			for _, a := range e.Args {
				parts = append(parts, string(a.Value))
			}
			p.errors = append(p.errors, strings.Join(parts, " "))
		}
	case *log.EventEntryAdded:
		p.errors = append(p.errors, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		url := e.Request.URL
		if url != address && !strings.HasPrefix(url, "data:") {
			p.requests = append(p.requests, url)
		}
	}
}

// Errors are the errors and warnings on the console so far.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// Requests are the addresses that the page asked for, but its own.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Evaluate returns the value of an expression in the page, of a promise that to which it resolves.
func Evaluate[T any](p *Page, expression string) T {
	p.t.Helper()
	return run(p, "evaluate "+expression[:min(len(expression), 60)],
		chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// overflowing lists what reaches beyond the screen, apart from what scrolls by itself.
const overflowing = `(() => {
  const wide = document.documentElement.clientWidth + 1, found = [];
  for (const e of document.body.querySelectorAll('*')) {
    if (e.closest('.scroll,pre,.vh,svg') && !e.matches('.scroll,pre')) continue;
    const r = e.getBoundingClientRect(), s = getComputedStyle(e);
    if (r.width && r.right > wide && s.visibility !== 'hidden' && !e.matches('.skip')) found.push(e.tagName + '.' + ` +
	`e.className + ' ' + Math.round(r.right) + ' ' + e.textContent.slice(0, 30));
  }
  if (document.documentElement.scrollWidth > wide) found.push('the page scrolls sideways: ' + document.documentElement.scrollWidth);
  return found;
})()`

// Overflowing is what does not fit on the screen.
func (p *Page) Overflowing() []string {
	p.t.Helper()
	return Evaluate[[]string](p, overflowing)
}

// axe names the file of axe-core, which hack/axe.sh downloads; without it Check does not look for
// what it finds.
const axe = "REDQUAKE_AXE"

// Check fails the test if the page has had an error or has asked for anything, or is not Readable.
func (p *Page) Check(widths ...int) {
	p.t.Helper()
	p.Readable(widths...)
	errors, requests := p.Errors(), p.Requests()
	if len(errors)+len(requests) > 0 {
		p.t.Errorf("errors %q, requests %q", errors, requests)
	}
}

// Readable fails the test if something of the page cannot be read on a phone or a wide screen, in
// light or dark, or does not fit on a screen of one of the widths, or, where REDQUAKE_AXE names its
// file, if axe-core finds something in light or dark.
func (p *Page) Readable(widths ...int) {
	p.t.Helper()
	if file := os.Getenv(axe); file != "" {
		for _, view := range []View{{}, {Dark: true}} {
			p.Show(view)
			for _, found := range p.inaccessible(file) {
				p.t.Errorf("dark %v: %s", view.Dark, found)
			}
		}
	}
	for _, width := range []int{1280, 400} {
		for _, dark := range []bool{false, true} {
			view := View{Width: width, Dark: dark}
			p.Show(view)
			p.screen(view)
			for _, found := range p.Unreadable() {
				p.t.Errorf("at %d px, dark %v: %s", width, dark, found)
			}
		}
	}
	for _, width := range widths {
		p.Show(View{Width: width})
		for _, found := range p.Overflowing() {
			p.t.Errorf("at %d px: %s", width, found)
		}
	}
}

// inaccessible is what axe-core finds, with every folded part open.
func (p *Page) inaccessible(axe string) []string {
	p.t.Helper()
	script, err := os.ReadFile(axe)
	if err != nil {
		p.t.Fatal(err)
	}
	Evaluate[bool](p, string(script)+
		"\n;document.querySelectorAll('details').forEach(d => d.open = true); true")
	return Evaluate[[]string](p,
		`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': `+
			`' + n.html.slice(0, 120) + ' ' + n.failureSummary.slice(0, 200))))`)
}

// Ready is how long a page took until its script was ready, from the begin of its navigation;
// without a script until it was parsed.
func (p *Page) Ready() time.Duration {
	p.t.Helper()
	ms := Evaluate[float64](p,
		`+(document.documentElement.dataset.ready || performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart)`)
	return time.Duration(ms * float64(time.Millisecond))
}

// Picture writes a picture of the page, or of its first height pixels if height is above 0, as PNG.
func (p *Page) Picture(file string, width, height int) {
	p.t.Helper()
	var png []byte
	if height > 0 {
		p.do("set the screen", chromedp.EmulateViewport(int64(width), int64(height)))
		png = run(p, "take a picture", chromedp.CaptureScreenshot())
	} else {
		png = run(p, "take a picture", chromedp.FullScreenshot(100))
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// Key presses a key in the element that has the focus.
func (p *Page) Key(key string) {
	p.t.Helper()
	p.do(fmt.Sprintf("press %q", key), chromedp.KeyEvent(key))
}
