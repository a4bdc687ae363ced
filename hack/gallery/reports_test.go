//go:build gallery

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/browser"
)

// onlyThroughput removes everything from a report but the panel of the throughput and its axis, and returns their
// height.
const onlyThroughput = `(() => {
  const curves = document.querySelector("#curves");
  curves.querySelectorAll(".inner > *").forEach((e, i) => { if (i > 1 && !e.matches(".xaxis")) e.remove(); });
  for (let e = curves; e !== document.body; e = e.parentElement) for (const other of [...e.parentElement.children]) ` +
	`if (other !== e) other.remove();
  return curves.getBoundingClientRect().bottom;
})()`

// Every report of the gallery opens in a browser, without an error on the console and without a request to a network.
// With REDQUAKE_PICTURES_OUT it takes pictures of them for docs/gallery.
func TestReportsOpen(t *testing.T) {
	folder := os.Getenv("REDQUAKE_GALLERY")
	if folder == "" {
		t.Fatal("REDQUAKE_GALLERY is the folder with the reports: make gallery sets it")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.html"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reports in %s: %v", folder, err)
	}
	b := browser.Start(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			page := b.OpenFile(t, file, browser.View{})
			if problems := append(page.Errors(), page.Requests()...); len(problems) > 0 {
				t.Errorf("errors and requests: %q", problems)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if pictures := os.Getenv("REDQUAKE_PICTURES_OUT"); pictures != "" {
				name := strings.TrimSuffix(filepath.Base(file), ".html")
				page.Picture(filepath.Join(pictures, name+".png"), 1200, 1400)
				if name == "pvc-multi-attach" { // the outage of which the words can be read
					height := browser.Evaluate[float64](page, onlyThroughput)
					page.Picture(filepath.Join(pictures, "dip.png"), 1200, int(height)+40)
				}
			}
			t.Logf("%d kB, ready in %s", info.Size()/1000, page.Ready())
		})
	}
}
