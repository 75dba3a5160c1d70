{{/* Combinations that cannot work stop the rendering, each with the reason. */}}
{{- define "auricle.refuse" -}}
{{- $engine := include "auricle.engine" . | fromYaml -}}
{{- $accelerator := include "auricle.accelerator" . | fromYaml -}}
{{- $cloud := include "auricle.cloud" . | fromYaml -}}
{{- $gpus := include "auricle.gpus" . | int -}}
{{- $kind := .Values.engine.kind -}}
{{- if and (gt $gpus 0) (eq (toString $engine.gpu) "false") -}}
{{- fail (printf "engine.kind %s computes on CPUs: set accelerator.type to cpu" $kind) -}}
{{- end -}}
{{- if and $engine.gpus (gt $gpus ($engine.gpus | int)) -}}
{{- fail (printf "engine.kind %s takes one GPU: its agent loads models into one process, not into one for each GPU" $kind) -}}
{{- end -}}
{{- if and (gt $gpus 0) (gt $gpus ($accelerator.perNode | int)) -}}
{{- fail (printf "tensorParallel × pipelineParallel is %d, a node has %v GPUs: pods over several nodes (LeaderWorkerSet) are not supported" $gpus $accelerator.perNode) -}}
{{- end -}}
{{- if and (gt $gpus 1) (contains "mig-" .Values.accelerator.resource) -}}
{{- fail "MIG slices do not work together: tensorParallel and pipelineParallel must be 1" -}}
{{- end -}}
{{- if and .Values.confidential.enabled (ne .Values.mode "production") -}}
{{- fail "confidential.enabled needs mode production: an attestation that a pod issues for itself shows nothing" -}}
{{- end -}}
{{- if and .Values.confidential.enabled (not $cloud.confidential) -}}
{{- fail (printf "confidential.enabled: cloud %s has no nodes whose memory and GPU are both encrypted and attested" .Values.cloud) -}}
{{- end -}}
{{- if and .Values.confidential.enabled (not (or .Values.confidential.runtimeClassName .Values.confidential.nodeSelector)) -}}
{{- fail "confidential.enabled needs confidential.runtimeClassName or confidential.nodeSelector" -}}
{{- end -}}
{{- if and (or (ne .Values.gateway.kind "none") (eq .Values.mode "production")) (not .Values.tls.secret) -}}
{{- fail "tls.secret is required in production and with a gateway: TLS ends in the agent" -}}
{{- end -}}
{{- $name := include "auricle.name" . -}}
{{- if or (gt (len $name) 50) (not (regexMatch "^[a-z]([a-z0-9-]*[a-z0-9])?$" $name)) -}}
{{- fail (printf "pool.name %s: a pool's name is a DNS label of up to 50 characters, so that its pods are hosts" $name) -}}
{{- end -}}
{{- if gt (.Values.scaling.minReplicas | int) (.Values.scaling.maxReplicas | int) -}}
{{- fail "scaling.minReplicas is more than scaling.maxReplicas" -}}
{{- end -}}
{{- $_ := required "trust.configMap is required: the ConfigMap with the public keys" .Values.trust.configMap -}}
{{- $token := .Values.poolToken -}}
{{- if not (or $token.secret (and $token.provider.url $token.provider.assertionFile)) -}}
{{- fail "poolToken.secret is required: the Secret with the pool token or the client secret" -}}
{{- end -}}
{{- if and $token.provider.url (eq .Values.scaling.kind "keda") .Values.scaling.demand (not .Values.scaling.demandSecret) -}}
{{- fail "scaling.demand shows functions the pool token of a Secret: poolToken.provider.url needs scaling.demandSecret" -}}
{{- end -}}
{{- $release := list .Values.functions.releaseUrl .Values.functions.releaseVault | compact | len -}}
{{- if or (gt $release 1) (and .Values.functions.url (eq $release 0)) -}}
{{- fail "functions.url takes one of functions.releaseUrl and functions.releaseVault" -}}
{{- end -}}
{{- end -}}
