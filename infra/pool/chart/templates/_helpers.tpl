{{/* Names and labels. Every template of the chart takes them from here. */}}

{{- define "auricle.name" -}}
{{- .Values.pool.name | default .Release.Name -}}
{{- end -}}

{{/* Seconds that work in flight has after SIGTERM. */}}
{{- define "auricle.drainSeconds" -}}
{{- .Values.drain.seconds | default (mul 60 .Values.scaling.streamMinutes) | int -}}
{{- end -}}

{{/* Labels that select the pods; they never change in the life of a release. */}}
{{- define "auricle.selector" -}}
app.kubernetes.io/name: auricle-pool
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "auricle.labels" -}}
{{ include "auricle.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
auricle/pool: {{ include "auricle.name" . }}
{{- end -}}

{{/* Presets, as YAML: read them with fromYaml. */}}
{{- define "auricle.engine" -}}
{{- $kind := .Values.engine.kind -}}
{{- $preset := get (.Files.Get "presets/engines.yaml" | fromYaml) $kind -}}
{{- with $preset.refuse -}}{{- fail . -}}{{- end -}}
{{- toYaml $preset -}}
{{- end -}}

{{- define "auricle.accelerator" -}}
{{- get (.Files.Get "presets/accelerators.yaml" | fromYaml) .Values.accelerator.type | toYaml -}}
{{- end -}}

{{- define "auricle.cloud" -}}
{{- get (.Files.Get "presets/clouds.yaml" | fromYaml) .Values.cloud | toYaml -}}
{{- end -}}

{{/* GPUs of a pod; 0 on CPU pools. */}}
{{- define "auricle.gpus" -}}
{{- if eq .Values.accelerator.type "cpu" -}}0
{{- else -}}{{- mul .Values.accelerator.tensorParallel .Values.accelerator.pipelineParallel -}}
{{- end -}}
{{- end -}}

{{/* Image reference of (dict "image" IMAGE "preset" PRESET "root" $). */}}
{{- define "auricle.image" -}}
{{- $repository := .image.repository | default .preset.image -}}
{{- if hasPrefix "REGISTRY/" $repository -}}
{{- $registry := required "registry is required: the one that infra/pool/image was pushed to" .root.Values.registry -}}
{{- $repository = $repository | replace "REGISTRY" $registry -}}
{{- end -}}
{{- if .image.digest -}}{{ $repository }}@{{ .image.digest }}
{{- else -}}{{ $repository }}:{{ .image.tag | default .preset.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Host of pod (dict "ordinal" N "root" $), the same that the agent announces. */}}
{{- define "auricle.host" -}}
{{ include "auricle.name" .root }}-{{ .ordinal }}.{{ .root.Values.gateway.domain }}
{{- end -}}

{{/* Seconds that a start may take before the kubelet begins again. */}}
{{- define "auricle.startSeconds" -}}
{{- add 120 (mul (.Values.models.gibibytes | int) (.Values.models.loadSecondsPerGibibyte | int)) -}}
{{- end -}}

{{- define "auricle.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "auricle.testSelector" -}}
app.kubernetes.io/name: auricle-pool-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
