package plan

import (
	"strings"
	"testing"
)

func TestOnlyReads(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "get {key}": true, "SET {key} {value}": false, "SCAN 0": true, "OBJECT ENCODING {key}": true,
		"OBJECT": false, "object freq {key}": true, "XINFO STREAM {key}": true,
		"MEMORY USAGE {key}": true, "MEMORY PURGE": false, "XREADGROUP GROUP a b STREAMS {key} >": false,
		"EVAL_RO return 0": true, "EVAL return 0": false,
		"JSON.GET {key}": true, "JSON.SET {key} $ 1": false, "ft.search index *": true, "FT.CURSOR READ index 1": true,
		"FT.CURSOR DEL index 1": false, "TS.MRANGE - + FILTER a=b": true,
		"TS.ADD {key} * 1": false, "BF.EXISTS {key} a": true, "BF.ADD {key} a": false, "TDIGEST.QUANTILE {key} 0.5": true,
		"GETEX {key}": false, "GETDEL {key}": false,
	} {
		if got := onlyReads(strings.Fields(text)); got != want {
			t.Errorf("%q only reads: %t", text, got)
		}
	}
}
