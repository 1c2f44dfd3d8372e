{{/* What a platform adds to the pods of all charts, from the values of `job`; k8s/lib/platform.sh does the same for
overlays. */}}

{{/* Labels of pods. Input: root, name, component. */}}
{{- define "dtrain.pod-labels" -}}
{{- $labels := dict "app.kubernetes.io/name" "dtrain" "app.kubernetes.io/instance" .name
  "app.kubernetes.io/component" .component "app.kubernetes.io/part-of" "dtrain" -}}
{{- if eq .root.Values.job.istio "no" -}}
{{- $labels = merge $labels (dict "sidecar.istio.io/inject" "false" "istio.io/dataplane-mode" "none") -}}
{{- end -}}
{{- include "dtrain.added" (dict "key" "job.labels" "own" $labels "more" .root.Values.job.labels) -}}
{{- end -}}

{{/* Labels and annotations of a job's pods. Input: root, name, component. */}}
{{- define "dtrain.pod-metadata" -}}
{{- $job := .root.Values.job -}}
{{- $spot := and $job.spot (eq .component "worker") -}}
{{- /* No sidecar proxy: its fsGroup would make the ssh key group-readable, and it does not support MPI traffic. */ -}}
{{- $annotations := dict "sidecar.istio.io/inject" "false" "cluster-autoscaler.kubernetes.io/safe-to-evict" "false" -}}
{{- if not $spot }}{{ $_ := set $annotations "karpenter.sh/do-not-disrupt" "true" }}{{ end -}}
{{- if and $job.topology (has .component (list "worker" "training")) -}}
{{- if not $job.queue }}{{ fail "job.topology needs job.queue, a queue of Kueue" }}{{ end -}}
{{- $_ := set $annotations "kueue.x-k8s.io/podset-preferred-topology" $job.topology -}}
{{- end -}}
labels: {{- include "dtrain.pod-labels" . | nindent 2 }}
annotations:
  {{- include "dtrain.added" (dict "key" "job.annotations" "own" $annotations "more" $job.annotations) | nindent 2 }}
{{- end -}}

{{/* Two maps as one; a key of both is an error. Input: key (of the values), own, more. */}}
{{- define "dtrain.added" -}}
{{- range keys .more -}}
{{- if hasKey $.own . }}{{ fail (printf "%s: %s is set by the chart" $.key .) }}{{ end -}}
{{- end -}}
{{- merge (dict) .own .more | toYaml -}}
{{- end -}}

{{/* Fields of the specification of all pods. Input: the root. */}}
{{- define "dtrain.pod-spec" -}}
{{- $job := .Values.job -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $job.user_id | int64 }}
  runAsGroup: {{ $job.group_id | int64 }}
  fsGroup: {{ $job.fs_id | int64 }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with $job.priority_class }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $job.service_account }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with $job.image_pull_secrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . | quote }}}
  {{- end }}
{{- end }}
{{- with $job.topology_spread }}
topologySpreadConstraints:
  {{- range . }}
  {{- $default := dict "maxSkew" 1 "whenUnsatisfiable" "ScheduleAnyway" }}
  {{- if not .labelSelector }}
  {{- $default = merge $default (dict "labelSelector" (dict "matchLabels" (dict "app.kubernetes.io/part-of" "dtrain"))
      "matchLabelKeys" (list "app.kubernetes.io/instance" "app.kubernetes.io/component")) }}
  {{- end }}
  - {{- merge (dict) . $default | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Grace period, tolerations, affinity and node selector of pods. Input: root, component, gpus, instance_type, tolerations
(more). */}}
{{- define "dtrain.placement" -}}
{{- $job := .root.Values.job -}}
{{- $grace := $job.termination_grace_seconds | int64 -}}
{{- $affinity := $job.affinity | default dict -}}
{{- $tolerations := concat (.tolerations | default list) ($job.tolerations | default list) -}}
{{- if gt (int .gpus) 0 }}{{ $tolerations = prepend $tolerations (dict "key" "nvidia.com/gpu" "operator" "Exists" "effect" "NoSchedule") }}{{ end -}}
{{- if $job.spot -}}
{{- if $affinity.nodeAffinity }}{{ fail "job.affinity: job.spot sets the node affinity" }}{{ end -}}
{{- $karpenter := dict "key" "karpenter.sh/capacity-type" "operator" (ternary "In" "NotIn" (eq .component "worker")) "values" (list "spot") -}}
{{- $managed := dict "key" "eks.amazonaws.com/capacityType" "operator" (ternary "In" "NotIn" (eq .component "worker")) "values" (list "SPOT") -}}
{{- $terms := list (dict "matchExpressions" (list $karpenter $managed)) -}}
{{- if eq .component "worker" -}}
{{- /* Shorter than EC2's notice of two minutes. */ -}}
{{- $grace = min $grace 110 -}}
{{- $terms = list (dict "matchExpressions" (list $karpenter)) (dict "matchExpressions" (list $managed)) -}}
{{- end -}}
{{- $required := dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- $affinity = merge (dict "nodeAffinity" $required) $affinity -}}
{{- end -}}
terminationGracePeriodSeconds: {{ $grace }}
{{- with .instance_type }}
nodeSelector: {node.kubernetes.io/instance-type: {{ . | quote }}}
{{- end }}
{{- with $affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Environment variables of a container with those of job.env. Input: root, env (text). */}}
{{- define "dtrain.env" -}}
{{- $names := list -}}
{{- range fromYamlArray .env }}{{ $names = append $names .name }}{{ end -}}
{{- include "dtrain.variables-once" (dict "key" "job.env" "variables" .root.Values.job.env "taken" $names) -}}
{{- range .root.Values.job.env -}}
{{- if and .value (regexMatch "PASSWORD|SECRET|TOKEN|ACCESS_KEY" .name) -}}
{{- fail (printf "job.env: %s would be readable in the pod's specification: use valueFrom" .name) -}}
{{- end -}}
{{- end -}}
{{- .env | trim }}
{{- with .root.Values.job.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The end of a flow mapping of resources. Input: the root. */}}
{{- define "dtrain.ephemeral" -}}
{{- with .Values.job.ephemeral_storage }}, ephemeral-storage: {{ . | quote }}{{ end -}}
{{- end -}}

{{/* A PodDisruptionBudget that protects the launcher, whose workers are on spot instances. Input: root, name. */}}
{{- define "dtrain.spot-budget" -}}
{{- if .root.Values.job.spot }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name | quote }}
  namespace: {{ include "dtrain.namespace" .root | quote }}
  labels: {{- include "dtrain.labels" .root | nindent 4 }}
spec:
  minAvailable: 1
  selector:
    matchLabels: {app.kubernetes.io/instance: {{ .name | quote }}, app.kubernetes.io/component: launcher}
{{- end }}
{{- end -}}

{{/* PodMonitor and NetworkPolicy of live metrics on port 9400, as in k8s/components/metrics. Input: root, name. */}}
{{- define "dtrain.monitoring" -}}
{{- with .root.Values.job.monitoring }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ printf "%s-metrics" $.name | quote }}
  namespace: {{ include "dtrain.namespace" $.root | quote }}
  labels: {{- include "dtrain.labels" $.root | nindent 4 }}
spec:
  podSelector:
    matchLabels: {app.kubernetes.io/instance: {{ $.name | quote }}}
  policyTypes: [Ingress]
  ingress:
    - from:
        - namespaceSelector:
            matchLabels: {kubernetes.io/metadata.name: {{ . | quote }}}
      ports:
        - {port: 9400, protocol: TCP}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ $.name | quote }}
  namespace: {{ include "dtrain.namespace" $.root | quote }}
  labels: {{- include "dtrain.labels" $.root | nindent 4 }}
spec:
  jobLabel: app.kubernetes.io/name
  selector:
    matchLabels: {app.kubernetes.io/instance: {{ $.name | quote }}}
  podMetricsEndpoints:
    {{- (index ($.root.Subcharts.job.Files.Get "files/pod-monitor.yaml" | fromYaml) "spec").podMetricsEndpoints | toYaml | nindent 4 }}
{{- end }}
{{- end -}}

{{/* Flags of live metrics, as a JSON list. Input: the root. */}}
{{- define "dtrain.metrics-flags" -}}
{{- ternary (list "--metrics_port=9400" "--metrics_address=0.0.0.0") list (ne .Values.job.monitoring "") | toJson -}}
{{- end -}}

{{/* Fails for values of `job` that a chart does not support. Input: root, keys. */}}
{{- define "dtrain.not-supported" -}}
{{- range .keys -}}
{{- if get $.root.Values.job . }}{{ fail (printf "job.%s: the chart %s does not support it" . $.root.Chart.Name) }}{{ end -}}
{{- end -}}
{{- end -}}
