package load

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// A load writes its report in the form of the extension, and refuses an extension that has none before it begins.
func TestReportOfALoad(t *testing.T) {
	for _, form := range page.Forms {
		synctest.Test(t, func(t *testing.T) {
			network := memnet.New()
			memredis.Start(t, network, inMemory, memredis.Options{})
			file := filepath.Join(t.TempDir(), "report"+form.Extension)
			if _, _, err := loadInMemory(t.Context(), t, network, "--rate", "100", "--duration", "3s", "--report",
				file); err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			clitest.IsForm(t, form.Name, string(text), thisMachine)
		})
	}
	if _, err := open(&loadflags.Flags{Outputs: loadflags.Outputs{Report: "report.pdf"}}); err == nil ||
		err.Error() !=
			"--report: the extension of report.pdf must be one of .md, .html, .json, .xml, .csv, .txt, which says what form the report has" {
		t.Error(err)
	}
}
