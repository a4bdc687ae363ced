//go:build gallery

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/browser"
)

// Every report of the gallery opens in a browser, without an error on the console and without a request to a network. With REDQUAKE_PICTURES_OUT it takes
// pictures of them for docs/gallery.
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
				page.Picture(filepath.Join(pictures, strings.TrimSuffix(filepath.Base(file), ".html")+".png"), 1200, 1400)
			}
			t.Logf("%d kB, ready in %s", info.Size()/1000, page.Ready())
		})
	}
}
