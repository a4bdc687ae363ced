package output

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/redquake/redquake/internal/report/page"
)

// FormOf is the form of a report by the extension of its file. An extension that has none is an
// error.
func FormOf(path string) (page.Form, error) {
	extension := strings.ToLower(filepath.Ext(path))
	var known []string
	for _, f := range page.Forms {
		if f.Extension == extension {
			return f, nil
		}
		known = append(known, f.Extension)
	}
	return page.Form{}, fmt.Errorf(
		"the extension of %s must be one of %s, which says what form the report has", path,
		strings.Join(known, ", "))
}
