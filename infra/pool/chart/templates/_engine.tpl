{{/* The engine: a native sidecar, so that it starts before its agent and stops after it. */}}
{{- define "auricle.engineContainer" -}}
{{- $engine := include "auricle.engine" . | fromYaml -}}
{{- $gpus := include "auricle.gpus" . | int -}}
- name: engine
  restartPolicy: Always
  image: {{ include "auricle.engineImage" . }}
  imagePullPolicy: IfNotPresent
  {{- with .Values.engine.command | default $engine.command }}
  command: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with concat ($engine.args | default list) .Values.engine.args }}
  args: {{- toYaml . | replace "REPOSITORY" "/models/engine" | nindent 4 }}
  {{- end }}
  env:
    {{- $several := ternary (dict "NCCL_ALGO" "Tree" "NCCL_PROTO" "Simple") dict (gt $gpus 1) }}
    {{- range $name, $value := merge (deepCopy .Values.engine.env) ($engine.env | default dict) $several (dict "HOME" "/tmp") }}
    - { name: {{ $name }}, value: {{ $value | toString | replace "REPOSITORY" "/models/engine" | quote }} }
    {{- end }}
  {{- with .Values.engine.envSecrets }}
  envFrom:
    {{- range . }}
    - { secretRef: { name: {{ . }} } }
    {{- end }}
  {{- end }}
  startupProbe:
    exec: { command: {{ .Values.engine.alive | default $engine.alive | toJson }} }
    periodSeconds: 5
    timeoutSeconds: 10
    failureThreshold: {{ div (add 4 (include "auricle.startSeconds" . | int)) 5 }}
  livenessProbe:
    exec: { command: {{ .Values.engine.alive | default $engine.alive | toJson }} }
    periodSeconds: 20
    timeoutSeconds: 10
    failureThreshold: 3
  securityContext: {{- include "auricle.securityContext" . | nindent 4 }}
  {{- $resources := deepCopy .Values.engine.resources }}
  {{- /* The kubelet counts its folder of models as this container's. */}}
  {{- $disk := printf "%dGi" (add 8 (mul 3 (max 1 (.Values.models.gibibytes | int)))) }}
  {{- $_ := set $resources.limits "ephemeral-storage" $disk }}
  {{- $_ := set $resources.requests "ephemeral-storage" $disk }}
  {{- if and (gt $gpus 0) (eq .Values.accelerator.mode "dra") }}
  {{- $_ := set $resources "claims" (list (dict "name" "gpus")) }}
  {{- else if gt $gpus 0 }}
  {{- $_ := set $resources.limits .Values.accelerator.resource $gpus }}
  {{- $_ := set $resources.requests .Values.accelerator.resource $gpus }}
  {{- end }}
  resources: {{- toYaml $resources | nindent 4 }}
  volumeMounts:
    - { name: engine-tmp, mountPath: /tmp }
    - { name: shared-memory, mountPath: /dev/shm }
    {{- if eq $engine.protocol "kserve" }}
    - { name: engine-models, mountPath: /models/engine, readOnly: true }
    {{- end }}
{{- end -}}

{{- define "auricle.engineImage" -}}
{{- $engine := include "auricle.engine" . | fromYaml -}}
{{- if not (or $engine.image .Values.engine.image.repository) -}}
{{- fail (printf "engine.image.repository is required with engine.kind %s" .Values.engine.kind) -}}
{{- end -}}
{{- include "auricle.image" (dict "image" .Values.engine.image "preset" $engine "root" .) -}}
{{- end -}}
