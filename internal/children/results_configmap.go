package children

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result"
)

// ResultsSeriesKey is the key of binaryData that holds the encoded series. The series itself
// records what was coarsened and what is missing.
const ResultsSeriesKey = "series"

// ResultsDocumentKey is the key of data that holds the result of a test that is over: JSON of
// package result, described in docs/record.md.
const ResultsDocumentKey = "result.json"

// MaxResultsDocument bounds that JSON, in bytes: beside the record, a ConfigMap has room for as
// much.
const MaxResultsDocument = 96 << 10

// ResultsFaultsKey is the key of binaryData that holds the results of the faults on a test, as
// package result compresses them.
const ResultsFaultsKey = "faults.json.gz"

// MaxResultsFaults bounds these, in bytes: a ConfigMap holds 1 MiB, of which the record takes at
// most 900 KiB.
const MaxResultsFaults = 24 << 10

// ResultsConfigMap holds the record of a test so far: data is the encoded series.
func ResultsConfigMap(test *v1alpha1.RedisLoadTest, data []byte) *corev1.ConfigMap {
	return configMap(ofLoadTest(test, ResultsName(test.Name), ComponentResults),
		ResultsSeriesKey, data)
}

// configMap holds data under a key.
func configMap(meta metav1.ObjectMeta, key string, data []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   configMapType,
		ObjectMeta: meta,
		BinaryData: map[string][]byte{key: data},
	}
}

// ResultsIn are the results that a ConfigMap of ResultsConfigMap has beside the record, as far as
// they are stored.
func ResultsIn(stored *corev1.ConfigMap) (kept result.Run, err error) {
	if kept.Faults, err = result.KeptFaults(stored.BinaryData[ResultsFaultsKey]); err != nil {
		return kept, fmt.Errorf("%s of ConfigMap %s: %w", ResultsFaultsKey, stored.Name, err)
	}
	if text, ok := stored.Data[ResultsDocumentKey]; ok {
		if kept.Load, err = result.DecodeLoad([]byte(text)); err != nil {
			return kept, fmt.Errorf("%s of ConfigMap %s %w", ResultsDocumentKey, stored.Name, err)
		}
	}
	return kept, nil
}

var configMapType = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
