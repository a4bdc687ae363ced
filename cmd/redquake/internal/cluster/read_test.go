package cluster

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A ConfigMap that an earlier load test of the same name has left is none of the present one's.
func TestRecordOfAnEarlierLoadTest(t *testing.T) {
	t.Parallel()
	object := func(uid string, owners ...metav1.OwnerReference) []byte {
		text, err := json.Marshal(metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: "run", UID: types.UID(uid), OwnerReferences: owners},
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	stored := object("c", metav1.OwnerReference{Kind: "RedisLoadTest", Name: "run", UID: "first", Controller: new(true)})
	for name, c := range map[string]struct {
		stored, test []byte
		want         bool
	}{
		"its own":           {stored, object("first"), true},
		"of an earlier one": {stored, object("second"), false},
		"of nobody":         {object("c"), object("second"), true},
	} {
		if isOf(c.stored, c.test) != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
}
