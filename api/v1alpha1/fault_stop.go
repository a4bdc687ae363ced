package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StopConditions end a fault before its time. They are evaluated once before the injection, and
// from the injection until the revert begins.
// +kubebuilder:validation:XValidation:rule="has(self.outage) || has(self.errorRate) || has(self.lostWrites) || has(self.queries)",message="set at least one of outage, errorRate, lostWrites, queries"
type StopConditions struct {
	// outage is the time without a success from which the fault is reverted: of the load, its reads or
	// its writes, of one shard of a cluster, or of the probe. It is also reverted if the load's record
	// cannot be read. Between 100ms and 24h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="must be between 100ms and 24h"
	// +kubebuilder:validation:Type=string
	Outage *metav1.Duration `json:"outage,omitempty"`

	// errorRate is the share of failed, unknown and dropped requests in any second from which the
	// fault is reverted, such as 50%. It is also reverted if the load's record cannot be read. Above
	// 0%, at most 100%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0+([.]0+)?%$')",message="must be above 0%"
	ErrorRate *string `json:"errorRate,omitempty"`

	// lostWrites is the number of lost acknowledged ledger writes from which the fault is reverted, as
	// far as they are known while the load runs: the load pods look once a second for writes that were
	// acknowledged and are absent. It is also reverted if the load's record cannot be read, or keys
	// may have been evicted; that Redis does not answer is no loss. The load test must have
	// verify.acknowledgedWrites. At least 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	LostWrites *int64 `json:"lostWrites,omitempty"`

	// queries are queries of Prometheus whose results are limited.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Queries []StopQuery `json:"queries,omitempty"`
}

// StopQuery is a query whose result is limited. No answer, no data, NaN and an error are beyond
// every limit.
// +kubebuilder:validation:XValidation:rule="has(self.above) != has(self.below)",message="set above or below: one of them is the limit of the result"
type StopQuery struct {
	// name of the query, for messages.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// prometheus is the server that evaluates the query.
	// +required
	Prometheus PrometheusServer `json:"prometheus,omitzero"`

	// query is an expression in PromQL. Its result must be a scalar or an instant vector, of which no
	// element may be beyond the limit.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query,omitempty"`

	// above is the limit above which the fault is reverted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$`
	Above *string `json:"above,omitempty"`

	// below is the limit below which the fault is reverted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$`
	Below *string `json:"below,omitempty"`

	// every is the time from one evaluation to the next. An answer that takes nine tenths of it, or
	// 10s, is none. Between 1s and 1m.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1m')",message="must be between 1s and 1m"
	// +kubebuilder:validation:Type=string
	Every metav1.Duration `json:"every,omitzero"`
}

// PrometheusServer is a Prometheus, or another server with its API for queries.
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || self.url.startsWith('https://')",message="tls needs a url that begins with https://"
type PrometheusServer struct {
	// url of the server, to which /api/v1/query is appended. The operator sends requests to it if its
	// flag --prometheus-hosts names the host, and follows no redirect.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~%!$&'()*+,;=:@/-]*)?$`
	URL string `json:"url,omitempty"`

	// authSecretRef is a Secret with the key token, a bearer token, or with the keys username and
	// password. It is read for every query.
	// +optional
	AuthSecretRef *SecretReference `json:"authSecretRef,omitempty"`

	// tls are the trusted certificates and the client certificate. Defaults to the system's roots.
	// +optional
	TLS *RedisTLS `json:"tls,omitempty"`
}
