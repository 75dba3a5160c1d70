{{/* Room for what the engine loads from: loaded models, copies for a next load, a revision on its way. */}}
{{- define "auricle.engineModels" -}}
{{- mul 3 (max 1 (.Values.models.gibibytes | int)) }}Gi
{{- end -}}

{{/* Volumes of a pod. Secrets are mounted as folders, so that renewed ones arrive in running pods. */}}
{{- define "auricle.volumes" -}}
{{- $engine := include "auricle.engine" . | fromYaml -}}
- { name: trust, configMap: { name: {{ .Values.trust.configMap }} } }
{{- with .Values.poolToken.secret }}
- { name: token, secret: { secretName: {{ . }}, defaultMode: 0440 } }
{{- end }}
{{- if .Values.functions.awsRoleArn }}
- { name: aws, projected: { sources: [{ serviceAccountToken: { audience: sts.amazonaws.com, path: token } }] } }
{{- end }}
{{- with .Values.tls.secret }}
- { name: tls, secret: { secretName: {{ . }}, defaultMode: 0440 } }
{{- end }}
{{- with .Values.engine.keySecret }}
- { name: engine-key, secret: { secretName: {{ . }}, defaultMode: 0440 } }
{{- end }}
{{- if eq .Values.mode "development" }}
- { name: attestation, secret: { secretName: {{ .Values.attestation.developmentSecret }}, defaultMode: 0440 } }
{{- end }}
- { name: tmp, emptyDir: {} }
- { name: engine-tmp, emptyDir: {} }
- { name: shared-memory, emptyDir: { medium: Memory, sizeLimit: {{ .Values.engine.sharedMemory }} } }
{{- if eq $engine.protocol "kserve" }}
- { name: engine-models, emptyDir: { sizeLimit: {{ include "auricle.engineModels" . }} } }
{{- if .Values.models.claim }}
- { name: models, persistentVolumeClaim: { claimName: {{ .Values.models.claim }}, readOnly: true } }
{{- else }}
- { name: models, emptyDir: {} }
{{- end }}
{{- with .Values.models.hostPath }}
- { name: store, hostPath: { path: {{ . }}, type: Directory } }
{{- end }}
{{- end }}
{{- end -}}

{{- define "auricle.agentMounts" -}}
{{- $engine := include "auricle.engine" . | fromYaml -}}
- { name: state, mountPath: /var/lib/auricle }
- { name: trust, mountPath: /etc/auricle/trust, readOnly: true }
{{- if .Values.poolToken.secret }}
- { name: token, mountPath: /etc/auricle/token, readOnly: true }
{{- end }}
{{- if .Values.functions.awsRoleArn }}
- { name: aws, mountPath: /var/run/secrets/aws, readOnly: true }
{{- end }}
{{- if .Values.tls.secret }}
- { name: tls, mountPath: /etc/auricle/tls, readOnly: true }
{{- end }}
{{- if .Values.engine.keySecret }}
- { name: engine-key, mountPath: /etc/auricle/engine, readOnly: true }
{{- end }}
{{- if eq .Values.mode "development" }}
- { name: attestation, mountPath: /etc/auricle/attestation, readOnly: true }
{{- end }}
- { name: tmp, mountPath: /tmp }
{{- if eq $engine.protocol "kserve" }}
- { name: engine-models, mountPath: /models/engine }
- { name: models, mountPath: /models/mounted, readOnly: true }
{{- if .Values.models.hostPath }}
- { name: store, mountPath: /models/store }
{{- end }}
{{- end }}
{{- end -}}

{{/* Nodes: the cloud's tolerations for GPUs, the accelerator by its product, spread over zones and nodes. */}}
{{- define "auricle.placement" -}}
{{- $cloud := include "auricle.cloud" . | fromYaml -}}
{{- $accelerator := include "auricle.accelerator" . | fromYaml -}}
{{- $selector := merge (deepCopy .Values.nodeSelector) (ternary .Values.confidential.nodeSelector dict .Values.confidential.enabled) -}}
{{- with $selector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat .Values.tolerations (ternary $cloud.tolerations list (gt (include "auricle.gpus" . | int) 0)) }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- with $accelerator.products }}
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - { key: nvidia.com/gpu.product, operator: In, values: {{ toJson . }} }
  {{- end }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector: { matchLabels: {{ include "auricle.selector" . | fromYaml | toJson }} }
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: { matchLabels: {{ include "auricle.selector" . | fromYaml | toJson }} }
{{- end -}}
