package load

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/redquake/redquake/internal/testing/memnet"
)

// A load that never began leaves no empty record behind, and an earlier record as it was.
func TestRecordOfALoadThatNeverBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "run.record")
		if _, _, err := loadInMemory(t.Context(), t, memnet.New(), "--record", file); err == nil {
			t.Fatal("the load ran without a server")
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("the file is there: %v", err)
		}
		if err := os.WriteFile(file, []byte("earlier"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _ = loadInMemory(t.Context(), t, memnet.New(), "--record", file)
		if text, err := os.ReadFile(file); err != nil || string(text) != "earlier" {
			t.Errorf("%q, %v", text, err)
		}
	})
}
