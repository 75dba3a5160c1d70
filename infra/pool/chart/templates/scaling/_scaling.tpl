{{/* Live streams, and utterances at and before the engine, that one pod is given. */}}
{{- define "auricle.streamsPerPod" -}}
{{- .Values.scaling.streamsPerPod | default (max 1 (div (mul .Values.agent.streams 7) 10)) -}}
{{- end -}}
{{- define "auricle.utterancesPerPod" -}}
{{- .Values.scaling.utterancesPerPod | default (max 1 (div (mul .Values.agent.slots 3) 4)) -}}
{{- end -}}

{{/* Series of the agents of this pool. */}}
{{- define "auricle.series" -}}
namespace="{{ .Release.Namespace }}",pod=~"{{ include "auricle.name" . }}-[0-9]+",container="agent"
{{- end -}}

{{/* Models of the pool as callers name them, as JSON. */}}
{{- define "auricle.modelNames" -}}
{{- $names := list -}}
{{- range concat .Values.models.names .Values.engine.models -}}
{{- $names = append $names (first (splitList "=" .)) -}}
{{- end -}}
{{- if not $names -}}
{{- fail "scaling.demand and scaling.queues need the names of the pool's models: models.names or engine.models" -}}
{{- end -}}
{{- $names | uniq | toJson -}}
{{- end -}}

{{/* Queue of the jobs of model (dict "model" NAME "root" $), as functions name it. */}}
{{- define "auricle.queue" -}}
{{- $word := regexReplaceAll "[^A-Za-z0-9_-]" .model "_" | trunc 24 -}}
{{ .root.Values.functions.queue }}-{{ .root.Values.pool.zone }}-{{ $word }}-{{ sha256sum .model | trunc 10 }}
{{- end -}}

{{/* Pods come at once, and go one a minute once the load was lower for the length of a stream. */}}
{{- define "auricle.behavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  policies:
    - { type: Percent, value: 100, periodSeconds: 15 }
    - { type: Pods, value: 4, periodSeconds: 15 }
  selectPolicy: Max
scaleDown:
  stabilizationWindowSeconds: {{ mul 60 .Values.scaling.streamMinutes }}
  policies: [{ type: Pods, value: 1, periodSeconds: 60 }]
{{- end -}}
