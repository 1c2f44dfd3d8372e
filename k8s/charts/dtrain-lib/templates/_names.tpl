{{/* The job's name, the release's name. Host names derive from it; the last worker's is the longest.
Input: root, workers (0 for a single-pod job). */}}
{{- define "dtrain.name" -}}
{{- $name := .root.Release.Name -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "the release name %q becomes part of host names: expected lower-case letters, digits and hyphens, beginning with a letter" $name) -}}
{{- end -}}
{{- $last := printf "%s-worker-%d" $name (max 0 (sub (int .workers) 1)) -}}
{{- if gt (len $last) 63 -}}
{{- fail (printf "the release name is too long: the host name of the last worker, %s, has %d characters; 63 are allowed" $last (len $last)) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* Labels of all objects of a release; the component is an annotation of the chart. Input: the root. */}}
{{- define "dtrain.labels" -}}
app.kubernetes.io/name: dtrain
app.kubernetes.io/part-of: dtrain
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ index .Chart.Annotations "app.kubernetes.io/component" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Namespace of the objects: global.namespace, else the release's, which is kubeflow unless `helm -n` names another than
default. Input: the root. */}}
{{- define "dtrain.namespace" -}}
{{- $namespace := (.Values.global).namespace | default (eq .Release.Namespace "default" | ternary "kubeflow" .Release.Namespace) -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" $namespace) -}}
{{- fail (printf "the namespace %q: expected at most 63 lower-case letters, digits and hyphens" $namespace) -}}
{{- end -}}
{{- $namespace -}}
{{- end -}}

{{/* The image: `image`, else dtrain-KIND. Input: root, image, kind. */}}
{{- define "dtrain.image" -}}
{{- $registry := (.root.Values.global).registry | default "" -}}
{{- range list (.image | default "") $registry -}}
{{- if not (regexMatch "^([A-Za-z0-9][-A-Za-z0-9._/:@+]*)?$" .) -}}
{{- fail (printf "%q is not an image or registry name: expected letters, digits and -._/:@+" .) -}}
{{- end -}}
{{- end -}}
{{- if .image -}}
{{- if or (hasSuffix ":latest" .image) (not (regexMatch "[@:][^/]+$" .image)) -}}
{{- fail (printf "image %s: expected a version or digest instead of latest" .image) -}}
{{- end -}}
{{- .image -}}
{{- else -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
dtrain-{{ .kind }}:{{ .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The flag that reserves `reserve` MiB of each GPU for the system, like TF_DEVICE_MIN_SYS_MEMORY_IN_MB; empty for 0 or
without GPUs. Input: reserve, instance (of dtrain.instance), memory (GB per GPU, without an instance type). */}}
{{- define "dtrain.memory-flag" -}}
{{- if and (gt (int .reserve) 0) (gt (int .instance.gpus) 0) -}}
{{- $memory := .memory | default .instance.gpu_memory -}}
{{- if not $memory -}}
{{- fail "tf_device_min_sys_mem_mb: unknown GPU memory without an instance type: set gpu_memory_gb, or tf_device_min_sys_mem_mb to 0" -}}
{{- end -}}
{{- if ge (int .reserve) (mul 1024 (int $memory)) -}}
{{- fail (printf "tf_device_min_sys_mem_mb: %d MiB is not less than the GPU's %d GB" (int .reserve) (int $memory)) -}}
{{- end -}}
--gpu_memory_frac_for_testing={{ subf 1.0 (divf (float64 .reserve) (mulf 1024.0 (float64 $memory))) | printf "%.4f" }}
{{- end -}}
{{- end -}}
