{{/* Grafana's JSON of observability/dashboard.yaml: three panels in a line, green within the target. */}}
{{- define "auricle.dashboard" -}}
{{- $panels := list -}}
{{- $y := 0 -}}
{{- $id := 0 -}}
{{- $source := dict "type" "prometheus" "uid" "${source}" -}}
{{- range $row := .Files.Get "observability/dashboard.yaml" | fromYamlArray -}}
{{- $id = add1 $id -}}
{{- $panels = append $panels (dict "id" $id "type" "row" "title" $row.row "gridPos" (dict "x" 0 "y" $y "w" 24 "h" 1)) -}}
{{- $y = add1 $y -}}
{{- range $index, $panel := $row.panels -}}
{{- $id = add1 $id -}}
{{- $steps := list (dict "value" nil "color" "green") -}}
{{- $about := "" -}}
{{- with $panel.target -}}
{{- $about = printf "Missed: %s" $panel.action -}}
{{- if hasKey . "min" -}}
{{- $steps = list (dict "value" nil "color" "red") (dict "value" .min "color" "green") -}}
{{- end -}}
{{- if hasKey . "max" -}}
{{- $steps = append $steps (dict "value" .max "color" "red") -}}
{{- end -}}
{{- end -}}
{{- $defaults := dict "unit" $panel.unit "thresholds" (dict "mode" "absolute" "steps" $steps)
  "custom" (dict "thresholdsStyle" (dict "mode" (ternary "line" "off" (hasKey $panel "target")))) -}}
{{- $place := dict "x" (mul 8 (mod $index 3)) "y" (add $y (mul 7 (div $index 3))) "w" 8 "h" 7 -}}
{{- $target := dict "refId" "A" "expr" $panel.query "legendFormat" $panel.legend -}}
{{- $panels = append $panels (dict "id" $id "type" "timeseries" "title" $panel.title "description" $about
  "datasource" $source "gridPos" $place "targets" (list $target) "fieldConfig" (dict "defaults" $defaults)) -}}
{{- end -}}
{{- $y = add $y (mul 7 (div (add 2 (len $row.panels)) 3)) -}}
{{- end -}}
{{- $variables := list (dict "type" "datasource" "name" "source" "query" "prometheus") -}}
{{- range $name := list "namespace" "pod" -}}
{{- $query := printf "label_values(auricle_agent_engine_ready, %s)" $name -}}
{{- $variables = append $variables (dict "type" "query" "name" $name "datasource" $source "query" $query "refresh" 2
  "includeAll" true "multi" true "allValue" ".*" "current" (dict "text" "All" "value" "$__all")) -}}
{{- end -}}
{{- dict "uid" "auricle-pools" "title" "Auricle pools" "schemaVersion" 39 "refresh" "30s"
  "time" (dict "from" "now-3h" "to" "now") "templating" (dict "list" $variables) "panels" $panels | toJson -}}
{{- end -}}
