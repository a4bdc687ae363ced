package contract_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// sample is a kind's own record.
type sample struct {
	Old   map[string]string `json:"old"`
	Count *int              `json:"count,omitempty"`
}

func TestRecordRoundTrip(t *testing.T) {
	target := &v1alpha1.FaultTarget{Pod: "redis-0"}
	if _, found, err := contract.Load[sample](target); found || err != nil {
		t.Errorf("of a target without a record: found %v, %v", found, err)
	}
	want := sample{Old: map[string]string{"save": `3600 1 "x"`, "": ""}, Count: new(3)}
	if err := contract.Save(target, want); err != nil {
		t.Fatal(err)
	}
	got, found, err := contract.Load[sample](target.DeepCopy())
	if !found || err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, found %v, %v", got, found, err)
	}
}

// An unreadable record is an error that names the pod and the reason, not an empty record.
func TestUnreadableRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		stored   v1alpha1.RevertRecord
		wantText string
	}{
		"a later version": {v1alpha1.RevertRecord{Version: 2, Data: `{"old":{}}`}, "version 2"},
		"no version":      {v1alpha1.RevertRecord{Data: `{"old":{}}`}, "version 0"},
		"no JSON":         {v1alpha1.RevertRecord{Version: 1, Data: `{"old":`}, "cannot be read as sample"},
		"nothing":         {v1alpha1.RevertRecord{Version: 1}, "cannot be read as sample"},
		"of another kind": {
			v1alpha1.RevertRecord{Version: 1, Data: `{"statefulSet":"redis"}`},
			`unknown field "statefulSet"`,
		},
		"of another type":     {v1alpha1.RevertRecord{Version: 1, Data: `{"old":[1]}`}, "cannot be read as sample"},
		"two where one is to": {v1alpha1.RevertRecord{Version: 1, Data: `{"old":{}}{"old":{"a":"b"}}`}, "after its end"},
	} {
		record, found, err := contract.Load[sample](&v1alpha1.FaultTarget{Pod: "redis-0", Revert: &tc.stored})
		if err == nil || found || record.Old != nil || !strings.Contains(err.Error(), tc.wantText) ||
			!strings.Contains(err.Error(), "redis-0") {
			t.Errorf("%s: %+v, found %v, %v; want an error that contains %q", name, record, found, err, tc.wantText)
		}
	}
}

// A record that is too long for the status is refused, and the stored one stays.
func TestRecordTooLong(t *testing.T) {
	target := &v1alpha1.FaultTarget{Pod: "redis-0"}
	if err := contract.Save(target, sample{Old: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	before := target.Revert.Data
	err := contract.Save(target, sample{Old: map[string]string{"a": strings.Repeat("b", contract.LongestRecord)}})
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || !p.Lasting || !strings.Contains(p.Message, "16384") || target.Revert.Data != before {
		t.Errorf("%v, and the record is %d bytes long", err, len(target.Revert.Data))
	}
}
