{{/* The labels of every object. */}}
{{- define "redquake.labels" -}}
app.kubernetes.io/name: redquake
app.kubernetes.io/part-of: redquake
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The manager's pods. */}}
{{- define "redquake.managers" -}}
app.kubernetes.io/name: redquake
app.kubernetes.io/component: manager
{{- end }}

{{- define "redquake.image" -}}
{{- $i := .Values.image -}}
{{ $i.repository }}{{ if $i.digest }}@{{ $i.digest }}{{ else }}:{{ $i.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The manager's --faults: what differs from the default, in which all kinds are on that taint no node, delete no data and fill no volume. */}}
{{- define "redquake.faults" -}}
{{- $list := list "*" -}}
{{- range $type, $on := .Values.faults -}}
{{- $taints := has $type (list "NodeLoss" "VolumeAttachDelay" "ZoneLoss") -}}
{{- if and $on $taints -}}
{{- $list = append $list $type -}}
{{- else if not (or $on $taints (has $type (list "DiskFull" "VolumeLoss"))) -}}
{{- $list = append $list (printf "-%s" $type) -}}
{{- end -}}
{{- end -}}
{{- if gt (len $list) 1 -}}{{ join "," $list }}{{- end -}}
{{- end }}

{{- define "redquake.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What the schema cannot say of values that do not fit together. */}}
{{- define "redquake.check" -}}
{{- if and .Values.networkPolicy.loadPods (not .Values.namespaces) }}
{{- fail "networkPolicy.loadPods: set namespaces, or apply config/network-policy in each namespace with load pods" }}
{{- end }}
{{- range list "serviceMonitor" "alerts" }}
{{- if and (get $.Values.metrics .).enabled (not $.Values.metrics.enabled) }}
{{- fail (printf "metrics.%s: set metrics.enabled" .) }}
{{- end }}
{{- end }}
{{- end }}
