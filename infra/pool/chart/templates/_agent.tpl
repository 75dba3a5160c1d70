{{/* Environment of the agent: exactly the names of infra/pool/agent/settings/schema.ts. */}}
{{- define "auricle.agentEnvironment" -}}
{{- $engine := include "auricle.engine" . | fromYaml -}}
{{- $cloud := include "auricle.cloud" . | fromYaml -}}
{{- $accelerator := include "auricle.accelerator" . | fromYaml -}}
{{- $gpus := include "auricle.gpus" . | int -}}
{{- $url := printf "http://127.0.0.1:%v" $engine.port -}}
- { name: AURICLE_AGENT, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
{{- $env := dict
  "AURICLE_POOL" (include "auricle.name" .)
  "AURICLE_ZONE" (required "pool.zone is required: the residency zone of the pool token" .Values.pool.zone)
  "AURICLE_REGION" (required "pool.region is required, for example westeurope" .Values.pool.region)
  "AURICLE_PRICE" .Values.pool.price
  "AURICLE_LOCATION" .Values.pool.location
  "AURICLE_PLATFORM" $cloud.platform
  "AURICLE_ACCELERATOR" (ternary "gpu" "cpu" (gt $gpus 0))
  "AURICLE_DEVICE" (ternary .Values.accelerator.type "" (gt $gpus 0))
  "AURICLE_MODE" .Values.mode
  "AURICLE_PORT" .Values.agent.port
  "AURICLE_ENDPOINT" (include "auricle.endpoint" .)
  "AURICLE_STREAMS" .Values.agent.streams
  "AURICLE_SLOTS" .Values.agent.slots
  "AURICLE_WORKERS" (.Values.agent.workers | default (div (add .Values.agent.streams 249) 250))
  "AURICLE_DRAIN_MS" (mul 1000 (include "auricle.drainSeconds" . | int))
  "AURICLE_STATE_DIR" "/var/lib/auricle"
  "AURICLE_EDGE_URL" (required "edge.url is required: the address of the edge" .Values.edge.url)
  "AURICLE_EDGE_KEYS_FILE" "/etc/auricle/trust/edge-keys.json"
-}}
{{- $secret := printf "/etc/auricle/token/%s" .Values.poolToken.key -}}
{{- with .Values.poolToken.provider -}}
{{- if .url -}}
{{- $_ := set $env "AURICLE_TOKEN_URL" .url -}}
{{- $_ := set $env "AURICLE_TOKEN_CLIENT" (required "poolToken.provider.client is required with its url" .client) -}}
{{- $_ := set $env "AURICLE_TOKEN_SCOPE" .scope -}}
{{- $_ := set $env "AURICLE_TOKEN_AUDIENCE" .audience -}}
{{- $_ := set $env "AURICLE_TOKEN_ASSERTION_FILE" .assertionFile -}}
{{- if not .assertionFile -}}{{- $_ := set $env "AURICLE_TOKEN_SECRET_FILE" $secret -}}{{- end -}}
{{- else -}}
{{- $_ := set $env "AURICLE_POOL_TOKEN_FILE" $secret -}}
{{- end -}}
{{- end -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $env "AURICLE_TLS_CERTIFICATE_FILE" "/etc/auricle/tls/tls.crt" -}}
{{- $_ := set $env "AURICLE_TLS_KEY_FILE" "/etc/auricle/tls/tls.key" -}}
{{- end -}}
{{- if eq $engine.protocol "openai" -}}
{{- $_ := set $env "AURICLE_ENGINE" (printf "openai:%s" $url) -}}
{{- $_ := set $env "AURICLE_ENGINE_MODELS" (join "," .Values.engine.models) -}}
{{- $languages := required (printf "engine.languages is required with engine.kind %s" .Values.engine.kind) (join "," .Values.engine.languages) -}}
{{- $_ := set $env "AURICLE_ENGINE_LANGUAGES" $languages -}}
{{- if .Values.engine.keySecret -}}{{- $_ := set $env "AURICLE_ENGINE_KEY_FILE" "/etc/auricle/engine/key" -}}{{- end -}}
{{- else -}}
{{- $_ := set $env "AURICLE_ENGINE_URL" $url -}}
{{- $_ := set $env "AURICLE_ENGINE_METRICS_URL" (printf "http://127.0.0.1:%v/metrics" $engine.metricsPort) -}}
{{- $_ := set $env "AURICLE_MODELS" "/models/mounted" -}}
{{- $_ := set $env "AURICLE_MODEL_NAMES" (join "," .Values.models.names) -}}
{{- $_ := set $env "AURICLE_ENGINE_REPOSITORY" "/models/engine" -}}
{{- $_ := set $env "AURICLE_TARGET" .Values.models.target -}}
{{- /* The store takes 80 % of its volume: the rest is for a fetch in progress and the audit outbox. */ -}}
{{- $_ := set $env "AURICLE_STORE_BYTES" (div (mul .Values.state.gibibytes 1073741824 8) 10) -}}
{{- if .Values.models.hostPath -}}{{- $_ := set $env "AURICLE_MODEL_STORE" "/models/store" -}}{{- end -}}
{{- /* Models take 80 % of the GPUs: contexts, activations and fragments need the rest (A19). */ -}}
{{- $memory := .Values.accelerator.gibibytes | default $accelerator.gibibytes -}}
{{- if $memory -}}{{- $_ := set $env "AURICLE_ENGINE_BYTES" (div (mul ($memory | int) (max 1 $gpus) 1073741824 8) 10) -}}{{- end -}}
{{- /* Copies for a next load, beside those of loaded models: the volume below has room for three times the models. */ -}}
{{- $_ := set $env "AURICLE_RAM_BYTES" (mul (max 1 (.Values.models.gibibytes | int)) 1073741824) -}}
{{- end -}}
{{- if .Values.functions.url -}}
{{- $_ := set $env "AURICLE_FUNCTIONS_URL" .Values.functions.url -}}
{{- $_ := set $env "AURICLE_JOBS_QUEUE" .Values.functions.queue -}}
{{- $_ := set $env "SQS_REGION" (required "functions.sqsRegion is required with functions.url" .Values.functions.sqsRegion) -}}
{{- $_ := set $env "SQS_ENDPOINT" .Values.functions.sqsEndpoint -}}
{{- with .Values.functions.awsRoleArn -}}
{{- $_ := set $env "AWS_ROLE_ARN" . -}}
{{- $_ := set $env "AWS_WEB_IDENTITY_TOKEN_FILE" "/var/run/secrets/aws/token" -}}
{{- end -}}
{{- end -}}
{{- if or .Values.functions.releaseUrl .Values.functions.releaseVault -}}
{{- $_ := set $env "AURICLE_RELEASE_URL" .Values.functions.releaseUrl -}}
{{- $_ := set $env "AURICLE_RELEASE_VAULT" .Values.functions.releaseVault -}}
{{- $_ := set $env "AURICLE_ZONE_KEYS_FILE" "/etc/auricle/trust/zone-keys.json" -}}
{{- end -}}
{{- if eq .Values.mode "production" -}}
{{- $_ := set $env "AURICLE_ATTESTATION_URL" (required "attestation.url is required in production: the attestation service in the pod" .Values.attestation.url) -}}
{{- $_ := set $env "AURICLE_ATTESTATION_PROVIDER" .Values.attestation.provider -}}
{{- else -}}
{{- $_ := required "attestation.developmentSecret is required in mode development" .Values.attestation.developmentSecret -}}
{{- $_ := set $env "AURICLE_ATTESTATION_KEY_FILE" "/etc/auricle/attestation/key.json" -}}
{{- end -}}
{{- range $name, $value := merge (deepCopy .Values.agent.settings) $env }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- { name: {{ $name }}, value: {{ include "auricle.text" $value | quote }} }
{{- end }}
{{- end }}
- { name: AURICLE_SERVICE_KEYS, valueFrom: { configMapKeyRef: { name: {{ .Values.trust.configMap }}, key: service-keys.json, optional: {{ ne .Values.mode "production" }} } } }
{{- if eq $engine.protocol "kserve" }}
- { name: AURICLE_MODEL_SIGNERS, valueFrom: { configMapKeyRef: { name: {{ .Values.trust.configMap }}, key: model-signers.json, optional: {{ ne .Values.mode "production" }} } } }
{{- end }}
{{- end -}}

{{/* Text of a value: whole numbers without an exponent, which YAML gives large ones; `on`, which YAML reads as true, as on. */}}
{{- define "auricle.text" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}
{{- else if kindIs "float64" . }}{{ if eq (floor .) . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* Address of the agent for the edge; the kubelet fills in the pod's name. */}}
{{- define "auricle.endpoint" -}}
{{- if eq .Values.gateway.kind "none" -}}
{{ include "auricle.scheme" . }}://$(AURICLE_AGENT).{{ include "auricle.name" . }}.{{ .Release.Namespace }}.svc:{{ .Values.agent.port }}
{{- else -}}
https://$(AURICLE_AGENT).{{ required "gateway.domain is required with a gateway" .Values.gateway.domain }}{{ if ne (int .Values.gateway.port) 443 }}:{{ .Values.gateway.port }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "auricle.scheme" -}}
{{- ternary "https" "http" (ne .Values.tls.secret "") -}}
{{- end -}}
